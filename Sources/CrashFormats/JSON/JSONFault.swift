/// The first place where a text stops being JSON.
///
/// A second, slow reading that is made for error messages only: strict RFC 8259, without recursion.
struct JSONFault {
  var offset: Int
  var what: String

  /// - Returns: nil where the text is JSON.
  static func first(in bytes: UnsafeRawBufferPointer) -> JSONFault? {
    var scanner = Scanner(bytes: bytes)
    return scanner.document()
  }

  private enum Expected {
    case value
    case valueOrEnd
    case key
    case keyOrEnd
    case commaOrEnd
  }

  private struct Scanner {
    let bytes: UnsafeRawBufferPointer
    var position = 0
    /// The closing brackets that are due, innermost last.
    var open: [UInt8] = []

    init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func fault(_ what: String) -> JSONFault { JSONFault(offset: position, what: what) }

    private func unexpected(_ expected: String) -> JSONFault {
      guard let byte = current else { return fault("the text ends, expected \(expected)") }
      return fault("expected \(expected), found \(Self.name(of: byte))")
    }

    private static func name(of byte: UInt8) -> String {
      0x21..<0x7F ~= byte ? "'\(Character(Unicode.Scalar(byte)))'" : "byte 0x\(String(byte, radix: 16))"
    }

    private mutating func skipSpace() {
      while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    mutating func document() -> JSONFault? {
      var expected = Expected.value
      while true {
        skipSpace()
        if expected == .commaOrEnd {
          guard let close = open.last else { return current == nil ? nil : unexpected("the end of the text") }
          if current == UInt8(ascii: ",") {
            position += 1
            expected = close == UInt8(ascii: "}") ? .key : .value
          } else if current == close {
            position += 1
            open.removeLast()
          } else {
            return unexpected(close == UInt8(ascii: "}") ? "',' or '}'" : "',' or ']'")
          }
          continue
        }
        if expected == .keyOrEnd || expected == .valueOrEnd, let close = open.last, current == close {
          position += 1
          open.removeLast()
          expected = .commaOrEnd
          continue
        }
        if expected == .key || expected == .keyOrEnd {
          guard current == UInt8(ascii: "\"") else { return unexpected("a key") }
          if let fault = string() { return fault }
          skipSpace()
          guard current == UInt8(ascii: ":") else { return unexpected("':'") }
          position += 1
          expected = .value
          continue
        }
        switch current {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
          let isObject = current == UInt8(ascii: "{")
          guard open.count < JSONParser.maximumDepth - 1 else {
            return fault("nested deeper than \(JSONParser.maximumDepth) levels")
          }
          open.append(UInt8(ascii: isObject ? "}" : "]"))
          position += 1
          expected = isObject ? .keyOrEnd : .valueOrEnd
        case UInt8(ascii: "\""):
          if let fault = string() { return fault }
          expected = .commaOrEnd
        case let byte? where byte == UInt8(ascii: "-") || isDigit(byte):
          if let fault = number() { return fault }
          expected = .commaOrEnd
        default:
          if let fault = word() { return fault }
          expected = .commaOrEnd
        }
      }
    }

    private mutating func word() -> JSONFault? {
      for word in ["true", "false", "null"] where bytes[position...].starts(with: word.utf8) {
        position += word.utf8.count
        return nil
      }
      return unexpected("a value")
    }

    private mutating func number() -> JSONFault? {
      let start = position
      if current == UInt8(ascii: "-") { position += 1 }
      guard let first = current, isDigit(first) else { return unexpected("a digit") }
      position += 1
      if first == UInt8(ascii: "0") {
        if let next = current, isDigit(next) { return fault("a number with a leading zero") }
      } else {
        skipDigits()
      }
      var isInteger = true
      if current == UInt8(ascii: ".") {
        isInteger = false
        position += 1
        guard let digit = current, isDigit(digit) else { return unexpected("a digit") }
        skipDigits()
      }
      if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
        isInteger = false
        position += 1
        if current == UInt8(ascii: "-") || current == UInt8(ascii: "+") { position += 1 }
        guard let digit = current, isDigit(digit) else { return unexpected("a digit") }
        skipDigits()
      }
      let text = String(decoding: bytes[start..<position], as: UTF8.self)
      let fits = isInteger ? Int64(text) != nil || UInt64(text) != nil : Double(text)?.isFinite == true
      return fits ? nil : JSONFault(offset: start, what: "a number beyond 64 bits")
    }

    private func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

    private mutating func skipDigits() {
      while let byte = current, isDigit(byte) { position += 1 }
    }

    private mutating func string() -> JSONFault? {
      position += 1
      while let byte = current {
        switch byte {
        case UInt8(ascii: "\""):
          position += 1
          return nil
        case UInt8(ascii: "\\"):
          if let fault = escape() { return fault }
        case 0..<0x20: return fault("an unescaped control character (\(Self.name(of: byte))) in a string")
        case 0x20..<0x80: position += 1
        default:
          guard let length = sequenceLength() else { return fault("a byte that is not UTF-8 (\(Self.name(of: byte)))") }
          position += length
        }
      }
      return fault("the text ends inside a string")
    }

    private mutating func escape() -> JSONFault? {
      let start = position
      position += 1
      guard let kind = current else { return fault("the text ends inside a string") }
      position += 1
      switch kind {
      case UInt8(ascii: "u"):
        guard let unit = codeUnit() else { return JSONFault(offset: start, what: "a bad \\u escape") }
        if 0xD800..<0xDC00 ~= unit {
          guard bytes[min(position, bytes.count)...].starts(with: "\\u".utf8) else {
            return JSONFault(offset: start, what: "half of a surrogate pair")
          }
          position += 2
          guard let low = codeUnit(), 0xDC00..<0xE000 ~= low else {
            return JSONFault(offset: start, what: "half of a surrogate pair")
          }
        } else if 0xDC00..<0xE000 ~= unit {
          return JSONFault(offset: start, what: "half of a surrogate pair")
        }
        return nil
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
        UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
        return nil
      default: return JSONFault(offset: start, what: "an unknown escape")
      }
    }

    private mutating func codeUnit() -> UInt16? {
      guard bytes.count - position >= 4,
        let value = UInt16(String(decoding: bytes[position..<position + 4], as: UTF8.self), radix: 16),
        bytes[position] != UInt8(ascii: "+")
      else { return nil }
      position += 4
      return value
    }

    /// The length of the well-formed UTF-8 sequence at the position; nil where there is none (Unicode, table 3-7).
    private func sequenceLength() -> Int? {
      let first = bytes[position]
      let second: ClosedRange<UInt8>
      let length: Int
      switch first {
      case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
      case 0xE0: (length, second) = (3, 0xA0...0xBF)
      case 0xED: (length, second) = (3, 0x80...0x9F)
      case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
      case 0xF0: (length, second) = (4, 0x90...0xBF)
      case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
      case 0xF4: (length, second) = (4, 0x80...0x8F)
      default: return nil
      }
      guard bytes.count - position >= length, second ~= bytes[position + 1] else { return nil }
      for index in position + 2..<max(position + 2, position + length) where !(0x80...0xBF ~= bytes[index]) {
        return nil
      }
      return length
    }
  }
}
