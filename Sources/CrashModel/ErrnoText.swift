private import Glibc

/// What the system calls an error number, as a part of a sentence: `permission denied`.
///
/// Thread-safe, which `strerror` is not by POSIX.
///
/// - Parameter number: an `errno`.
package func errnoText(_ number: Int32) -> String {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
    guard let base = buffer.baseAddress else { return "error \(number)" }
    base.pointee = 0
    // Swift imports the POSIX form of `strerror_r`.
    guard strerror_r(number, base, buffer.count) == 0, base.pointee != 0 else { return "error \(number)" }
    let text = String(cString: base)
    // `RPC struct is bad` begins with a name.
    let isName = text.utf8.dropFirst().first.map { Byte.isUpper($0) } ?? false
    return isName ? text : text.prefix(1).lowercased() + text.dropFirst()
  }
}
