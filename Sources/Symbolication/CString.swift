private import Glibc

/// What is asked of bytes that C handed over.
enum CString {
  /// Up to the length at which names are cut.
  static func length(_ text: UnsafePointer<CChar>) -> Int {
    strnlen(text, UnsafeRawBufferPointer.maximumStringLength)
  }

  static func isEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count, let first = a.baseAddress, let second = b.baseAddress else { return a.count == b.count }
    return memcmp(first, second, a.count) == 0
  }
}
