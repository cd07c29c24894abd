internal import CrashFormats
private import Glibc

/// Messages on standard error: `symbolicate: FILE: what; where it looked; what to do`.
final class Diagnostics {
  private let verbosity: Options.Verbosity
  /// Messages that were given, so that a thousand reports of one build do not say a thousand times what is missing.
  private var given: Set<String> = []
  private static let limit = 10_000

  /// Off the screen before anything else is written there.
  var progress: Progress?

  /// Gets what would be written, in a process whose parent writes it.
  var recorder: ((WorkerMessage.Kind, [String]) -> Void)?

  init(verbosity: Options.Verbosity) { self.verbosity = verbosity }

  /// Something that leaves nothing to show.
  func fatal(_ message: String) { tell(.fatal, [message], message) }

  func error(_ subject: String, _ message: String) {
    if verbosity > .quiet { tell(.error, [subject, message], "\(subject): \(message)") }
  }

  func errorOnce(_ message: String) {
    guard verbosity > .quiet, given.count < Self.limit, given.insert(message).inserted else { return }
    tell(.once, [message], message)
  }

  func detail(_ subject: String, _ message: String) {
    if verbosity == .verbose { tell(.detail, [subject, message], "\(subject): \(message)") }
  }

  private func tell(_ kind: WorkerMessage.Kind, _ parts: [String], _ text: @autoclosure () -> String) {
    if let recorder { recorder(kind, parts) } else { write(text()) }
  }

  private func write(_ message: String) {
    progress?.erase()
    let line = Array("symbolicate: \(Printable.line(message))\n".utf8)
    var written = 0
    while written < line.count {
      let count = line.withUnsafeBytes {
        Glibc.write(STDERR_FILENO, $0.baseAddress?.advanced(by: written), $0.count - written)
      }
      // Nowhere is left to complain to.
      if count < 0, errno != EINTR { return }
      written += max(count, 0)
    }
  }
}
