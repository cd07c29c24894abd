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

  package var description: String { "\(operation): \(Self.text(number))" }

  /// `strerror` is not thread-safe; Swift imports the POSIX form of `strerror_r`.
  static func text(_ number: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress else { return "error \(number)" }
      base.pointee = 0
      guard strerror_r(number, base, buffer.count) == 0, base.pointee != 0 else { return "error \(number)" }
      return String(cString: base)
    }
  }
}
