internal import CrashFormats
private import Glibc

/// One line on a terminal that says how far the work is, from half a second on; gone at the end.
///
/// Drawn by the thread that works, at the places where it comes by (`step`, `wait`): the process forks to read debug files,
/// and must have no other thread. Never where standard error is no terminal.
final class Progress {
  private let descriptor: CInt
  private let started = Progress.now()
  private var lastDrawn: UInt64 = 0
  private var isShown = false
  private let unit: Unit
  private var count = 0
  private var place = ""

  /// What is counted.
  enum Unit {
    case report, file, address

    fileprivate func text(_ count: Int) -> String {
      let names: (one: String, more: String) =
        switch self {
        case .report: ("report", "reports")
        case .file: ("file", "files")
        case .address: ("address", "addresses")
        }
      return "\(count) \(count == 1 ? names.one : names.more)"
    }
  }

  private static let delay: UInt64 = 500_000_000
  private static let interval: UInt64 = 100_000_000

  /// - Returns: nil where nobody would see it.
  init?(verbosity: Options.Verbosity, counting unit: Unit = .report, descriptor: CInt = STDERR_FILENO) {
    guard verbosity > .quiet, isatty(descriptor) == 1 else { return nil }
    if let terminal = getenv("TERM"), String(cString: terminal) == "dumb" { return nil }
    self.descriptor = descriptor
    self.unit = unit
  }

  /// More was read.
  ///
  /// - Parameter place: where it is from, or what is at work now.
  func step(_ place: String = "", count: Int = 1) {
    self.count += count
    self.place = place
    draw(activity: "reading")
  }

  /// Something takes its time.
  func wait(_ activity: String) { draw(activity: activity) }

  private func draw(activity: String) {
    let now = Progress.now()
    guard now &- started >= Self.delay, now &- lastDrawn >= Self.interval else { return }
    lastDrawn = now
    isShown = true
    let seconds = (now &- started) / 1_000_000_000
    let text = "symbolicate: \(activity), \(unit.text(count)), \(seconds) s" + (place.isEmpty ? "" : ": \(place)")
    // A line that wraps could not be erased by one return of the carriage.
    put("\r\u{1b}[K" + Printable.truncated(Printable.line(text), toWidth: width - 1))
  }

  /// Takes the line off the screen; the next step may draw it again.
  func erase() {
    guard isShown else { return }
    isShown = false
    put("\r\u{1b}[K")
  }

  private var width: Int {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 1 else { return 80 }
    return Int(size.ws_col)
  }

  private func put(_ text: String) {
    let bytes = Array(text.utf8)
    // Whatever comes of it: it is decoration, and a part of it does no harm.
    _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
  }

  private static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
  }
}
