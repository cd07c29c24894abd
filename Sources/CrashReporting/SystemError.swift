internal import CrashModel
private import Glibc

/// A system call that failed.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// `errno`.
  package var number: Int32
  /// What was being done, to which file: `creating /var/lib/orderd/crashes`.
  package var operation: String

  package init(number: Int32, _ operation: String) {
    self.number = number
    self.operation = operation
  }

  /// From `errno` as it stands, so to be made before anything else is called.
  static func last(_ operation: @autoclosure () -> String) -> SystemError {
    let number = errno
    return SystemError(number: number, operation())
  }

  package var description: String { "\(operation): \(errnoText(number))" }
}
