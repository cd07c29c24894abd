private import Glibc

/// What the system calls an error number, as a part of a sentence: `permission denied`.
///
/// Any thread: since glibc 2.32 `strerror` answers with a constant or with memory of the thread's own. Not `strerror_r`, of
/// which Swift imports one of two forms, as `_GNU_SOURCE` is defined or not.
///
/// - Parameter number: an `errno`.
package func errnoText(_ number: Int32) -> String {
  guard let words = strerror(number) else { return "error \(number)" }
  let text = String(cString: words)
  // `RPC struct is bad` begins with a name.
  let isName = text.utf8.dropFirst().first.map { Byte.isUpper($0) } ?? false
  return isName ? text : text.prefix(1).lowercased() + text.dropFirst()
}
