internal import CrashModel
private import Glibc

/// Whether something is being done for the spool, for those who want to wait for it.
// `@unchecked`: the number is reached under the lock only.
final class BackgroundWork: @unchecked Sendable {
  static let shared = BackgroundWork()

  private let lock = BareLock()
  private var pending = 0

  func begin() { add(1) }

  func end() { add(-1) }

  private func add(_ number: Int) {
    lock.lock()
    pending += number
    lock.unlock()
  }

  private var isAtWork: Bool {
    lock.lock()
    defer { lock.unlock() }
    return pending > 0
  }

  /// - Returns: whether the work was done in time.
  func wait(timeout: Duration) -> Bool {
    // A look every few milliseconds instead of a condition variable: this is for the end of short-lived programs and for
    // tests, and so a started process carries no more than one number for it.
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: timeout)
    while isAtWork {
      guard clock.now < deadline else { return false }
      usleep(2000)
    }
    return true
  }
}
