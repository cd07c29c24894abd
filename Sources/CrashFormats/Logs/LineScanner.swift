internal import CrashModel
private import Glibc

/// Takes one line of text apart, front to back. Bytes and not characters: a log may hold anything, and what the formats
/// consist of is ASCII.
struct LineScanner {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  var text: String { String(decoding: rest, as: UTF8.self) }

  func starts(with text: StaticString) -> Bool { rest.starts(with: text) }

  /// - Returns: how many spaces and tabs there were.
  @discardableResult
  mutating func skipSpaces() -> Int {
    let before = rest.count
    rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
    return before - rest.count
  }

  mutating func skip(_ text: StaticString) -> Bool {
    guard starts(with: text) else { return false }
    rest = rest.dropFirst(text.utf8CodeUnitCount)
    return true
  }

  mutating func skip(_ count: Int) { rest = rest.dropFirst(count) }

  mutating func decimal() -> UInt64? {
    var value: UInt64 = 0
    var digits = 0
    for byte in rest {
      guard byte.isASCIIDigit else { break }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
      guard !overflow, !carry else { return nil }
      value = sum
      digits += 1
    }
    guard digits > 0 else { return nil }
    rest = rest.dropFirst(digits)
    return value
  }

  /// `0x` and at most 16 digits that count, which nothing of a word follows.
  mutating func hex() -> UInt64? {
    guard rest.count > 2, rest[rest.startIndex] == UInt8(ascii: "0"),
      rest[rest.startIndex + 1] | 0x20 == UInt8(ascii: "x")
    else { return nil }
    let digits = rest.dropFirst(2).prefix { $0.isHexDigit }
    guard !digits.isEmpty, let value = Hex.value(String(decoding: digits, as: UTF8.self)) else { return nil }
    rest = rest[digits.endIndex...]
    return value
  }

  /// Up to the next space or tab; may be empty.
  mutating func word() -> ArraySlice<UInt8> {
    let word = rest.prefix { $0 != 0x20 && $0 != 0x09 }
    rest = rest[word.endIndex...]
    return word
  }

  /// What stands before `text`, which is skipped too; nil where it does not occur.
  mutating func up(to text: StaticString) -> ArraySlice<UInt8>? {
    guard let index = rest.firstIndex(of: text) else { return nil }
    let before = rest[..<index]
    rest = rest[(index + text.utf8CodeUnitCount)...]
    return before
  }
}

extension UInt8 {
  var isASCIIDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
  var isASCIILetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 }
  var isHexDigit: Bool { isASCIIDigit || UInt8(ascii: "a")...UInt8(ascii: "f") ~= self | 0x20 }
}

extension ArraySlice<UInt8> {
  var string: String { String(decoding: self, as: UTF8.self) }

  func starts(with text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    guard count >= length else { return false }
    return withUnsafeBytes { bytes in
      bytes.baseAddress.map { memcmp($0, text.utf8Start, length) == 0 } ?? (length == 0)
    }
  }

  func ends(with text: StaticString) -> Bool {
    guard count >= text.utf8CodeUnitCount else { return false }
    return suffix(text.utf8CodeUnitCount).starts(with: text)
  }

  func equals(_ text: StaticString) -> Bool { count == text.utf8CodeUnitCount && starts(with: text) }

  func firstIndex(of text: StaticString) -> Int? {
    text.withUTF8Buffer { literal in
      guard let first = literal.first, count >= literal.count else { return nil }
      var start = startIndex
      while let found = self[start...].firstIndex(of: first), endIndex - found >= literal.count {
        if zip(literal, self[found...]).allSatisfy(==) { return found }
        start = found + 1
      }
      return nil
    }
  }

  func lastIndex(of text: StaticString) -> Int? {
    text.withUTF8Buffer { literal in
      guard let first = literal.first, count >= literal.count else { return nil }
      var end = endIndex - literal.count + 1
      while let found = self[..<end].lastIndex(of: first) {
        if zip(literal, self[found...]).allSatisfy(==) { return found }
        end = found
      }
      return nil
    }
  }

  func contains(_ text: StaticString) -> Bool { firstIndex(of: text) != nil }

  /// Where the last group of parentheses begins, which debuggers write arguments into: C++ has others in the name. What
  /// stands in quotes is a value, in which any may stand.
  var argumentsStart: Int? {
    let group = ends(with: " const") ? dropLast(6) : self
    guard group.last == UInt8(ascii: ")") else { return firstIndex(of: " (") }
    var depth = 0
    var isQuoted = false
    for index in group.indices.reversed() {
      switch self[index] {
      case UInt8(ascii: "\""):
        let isEscaped = index > startIndex && self[index - 1] == UInt8(ascii: "\\")
        if !isEscaped { isQuoted.toggle() }
      case UInt8(ascii: ")") where !isQuoted: depth += 1
      case UInt8(ascii: "(") where !isQuoted:
        depth -= 1
        if depth == 0 { return index }
      default: break
      }
    }
    return firstIndex(of: " (")
  }

  /// Without spaces, tabs and carriage returns around it.
  var trimmed: ArraySlice<UInt8> {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d || byte == 0x0a }
    guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
      return self[endIndex...]
    }
    return self[first...last]
  }
}
