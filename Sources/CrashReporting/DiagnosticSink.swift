internal import CrashModel
private import Glibc

/// Where diagnostics go: to the host's hook, or as one line to standard error.
// `@unchecked`: the minutes are reached under the lock only.
final class DiagnosticSink: @unchecked Sendable {
  typealias Handler = @Sendable (Diagnostic) -> Void

  /// What all of the module's calls use.
  static let shared = DiagnosticSink()

  private let lock = BareLock()
  /// Per code: when its minute began, how many were let through in it, how many were not.
  private var minutes: [Diagnostic.Code: (start: Int, passed: Int, dropped: Int)] = [:]

  private static let perMinute = 10

  func send(_ diagnostic: Diagnostic) {
    let (passes, dropped) = count(diagnostic.code, now: Self.seconds())
    // The hook is called outside the lock: it may call into this module again.
    guard passes else { return }
    if let handler = ActiveRun.diagnostics { return handler(diagnostic) }
    let more = dropped > 0 ? " (and \(dropped) more like this)" : ""
    Self.writeLine(diagnostic.description + more)
  }

  private func count(_ code: Diagnostic.Code, now: Int) -> (passes: Bool, droppedBefore: Int) {
    lock.lock()
    defer { lock.unlock() }
    var minute = minutes[code] ?? (now, 0, 0)
    var dropped = 0
    if now - minute.start >= 60 {
      dropped = minute.dropped
      minute = (now, 0, 0)
    }
    let passes = minute.passed < Self.perMinute
    if passes { minute.passed += 1 } else { minute.dropped += 1 }
    minutes[code] = minute
    return (passes, dropped)
  }

  /// One write, so that lines of several threads do not mix, and none at all where it would have to wait: a logger that
  /// hangs must not hang the service.
  private static func writeLine(_ line: String) {
    var entry = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    guard poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLOUT) != 0 else { return }
    let bytes = Array((line.split(separator: "\n").joined(separator: " ") + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  private static func seconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec
  }
}
