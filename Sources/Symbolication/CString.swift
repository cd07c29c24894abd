private import Glibc

/// What is asked of bytes that C handed over.
enum CString {
  static func length(_ text: UnsafePointer<CChar>) -> Int { strlen(text) }

  static func isEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count, let first = a.baseAddress, let second = b.baseAddress else { return a.count == b.count }
    return memcmp(first, second, a.count) == 0
  }
}
