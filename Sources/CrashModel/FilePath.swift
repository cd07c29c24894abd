/// The name of a file as the kernel knows it: bytes without a NUL, in no encoding.
///
/// A `String` would replace what is not UTF-8 and then name another file, or none. Names stay bytes from where they come
/// (the command line, `readdir`) to the call that opens them; text is made of them only to be read by people.
package struct FilePath: Hashable, Sendable, Comparable, CustomStringConvertible {
  package let bytes: [UInt8]

  package init(bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

  package init(_ text: String) { bytes = Array(text.utf8) }

  /// C would take the bytes up to the NUL, which are another file's name. Only a name from a document can hold one.
  package var hasNUL: Bool { bytes.contains(0) }

  /// What stands behind the last slash.
  package var lastComponent: ArraySlice<UInt8> {
    bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes[($0 + 1)...] } ?? bytes[...]
  }

  /// What stands before the last slash; `.` for a name alone.
  package var directory: FilePath {
    bytes.lastIndex(of: UInt8(ascii: "/")).map { FilePath(bytes: bytes[..<$0]) } ?? FilePath(".")
  }

  /// The path of an entry of this directory.
  package func appending(_ name: some Collection<UInt8>) -> FilePath {
    let slash = bytes.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
    return FilePath(bytes: bytes + slash + name)
  }

  package func appending(_ name: String) -> FilePath { appending(Array(name.utf8)) }

  package func hasSuffix(_ suffix: StaticString) -> Bool {
    suffix.withUTF8Buffer { bytes.count >= $0.count && bytes.suffix($0.count).elementsEqual($0) }
  }

  package func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    (bytes + [0]).withUnsafeBytes { buffer in
      // An array of at least one byte has an address; the empty name is the one that no file has.
      guard let base = buffer.assumingMemoryBound(to: CChar.self).baseAddress else { return "".withCString(body) }
      return body(base)
    }
  }

  /// As text for a message: bytes that are not UTF-8 as `\xff`. Not to be opened: two files can have the same text.
  ///
  /// What else a terminal must not see is left to whoever prints it.
  package var description: String {
    if let text = String(validating: bytes, as: UTF8.self) { return text }
    var text = ""
    var rest = bytes[...]
    while let first = rest.first {
      // A scalar has at most four bytes; the shortest valid beginning is one.
      let length = (1...4).first { String(validating: rest.prefix($0), as: UTF8.self) != nil }
      if let length {
        text += String(decoding: rest.prefix(length), as: UTF8.self)
      } else {
        text += "\\x" + (first < 16 ? "0" : "") + String(first, radix: 16)
      }
      rest = rest.dropFirst(length ?? 1)
    }
    return text
  }

  package static func < (left: FilePath, right: FilePath) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }
}
