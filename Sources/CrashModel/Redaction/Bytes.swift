/// Character classes and searches over UTF-8 bytes that the redaction rules share.
enum Byte {
  static func isDigit(_ byte: UInt8) -> Bool { byte &- 48 < 10 }
  static func isUpper(_ byte: UInt8) -> Bool { byte &- 65 < 26 }
  static func isLetter(_ byte: UInt8) -> Bool { (byte | 32) &- 97 < 26 }
  static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || isLetter(byte) }
  static func isHex(_ byte: UInt8) -> Bool { isDigit(byte) || (byte | 32) &- 97 < 6 }
  static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || byte &- 9 < 5 }
  static func isQuote(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") || byte == UInt8(ascii: "`")
  }
  /// Letters, digits, `-` and `_`: what keys and tokens are made of.
  static func isToken(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
  }
}

extension Span<UInt8> {
  /// Whether the ASCII text stands at `index`.
  func has(_ text: StaticString, at index: Int) -> Bool {
    let length = text.utf8CodeUnitCount
    guard index >= 0, count - index >= length else { return false }
    for offset in 0..<length where self[index + offset] != text.utf8Start[offset] { return false }
    return true
  }

  /// The first occurrence of `word` at or behind `start`.
  func find(_ word: StaticString, from start: Int) -> Int? {
    let first = word.utf8Start[0]
    var index = start
    while index < count {
      if self[index] == first, has(word, at: index) { return index }
      index += 1
    }
    return nil
  }

  /// Whether a byte of the range, which ends within the text, fulfils the condition.
  @inline(__always)
  func contains(in range: Range<Int>, where condition: (UInt8) -> Bool) -> Bool {
    for index in range where condition(self[index]) { return true }
    return false
  }

  /// The same without regard to case; `text` is in lower case, and a `_` in it stands for `-` and space too.
  func hasKey(_ text: StaticString, at index: Int) -> Bool {
    let length = text.utf8CodeUnitCount
    guard index >= 0, count - index >= length else { return false }
    for offset in 0..<length {
      let wanted = text.utf8Start[offset]
      let byte = self[index + offset]
      if wanted == UInt8(ascii: "_") {
        guard byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-") else { return false }
      } else if Byte.isLetter(wanted) {
        guard byte | 32 == wanted else { return false }
      } else if byte != wanted {
        return false
      }
    }
    return true
  }

  /// The first index at or behind `start` whose byte does not fulfil the condition.
  @inline(__always)
  func end(from start: Int, while condition: (UInt8) -> Bool) -> Int {
    var index = start
    while index < count, condition(self[index]) { index += 1 }
    return index
  }

  /// The end of what an earlier redaction put at `index`; nil where none did.
  func redactedEnd(at index: Int) -> Int? {
    guard index < count, self[index] == UInt8(ascii: "[") else { return nil }
    for token in Redactor.tokens where has(token, at: index) { return index + token.utf8CodeUnitCount }
    return nil
  }

  /// No letter, digit or `_` in front of `index`.
  func startsWord(_ index: Int) -> Bool {
    index == 0 || !(Byte.isAlphanumeric(self[index - 1]) || self[index - 1] == UInt8(ascii: "_"))
  }

  func endsWord(_ index: Int) -> Bool {
    index >= count || !(Byte.isAlphanumeric(self[index]) || self[index] == UInt8(ascii: "_"))
  }
}
