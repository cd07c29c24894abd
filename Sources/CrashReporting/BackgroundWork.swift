private import CrashModel
private import Glibc

/// Whether something is being done for the spool, for those who want to wait for it.
final class BackgroundWork: Sendable {
  static let shared = BackgroundWork()

  private let pending = Lock(0)

  func begin() { pending.withLock { $0 += 1 } }

  func end() { pending.withLock { $0 -= 1 } }

  /// - Returns: whether the work was done in time.
  func wait(timeout: Duration) -> Bool {
    // A look every few milliseconds instead of a condition variable: this is for the end of short-lived programs and for
    // tests, and so a started process carries no more than one number for it.
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: timeout)
    while pending.withLock({ $0 }) > 0 {
      guard clock.now < deadline else { return false }
      usleep(2000)
    }
    return true
  }
}
