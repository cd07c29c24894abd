/// Writes JSON as bytes, front to back, without an intermediate tree.
///
/// Commas and, when asked for, line breaks are placed by the writer; the caller keeps `begin` and `end` in balance and
/// writes a key before each value of an object. The output is valid UTF-8, and holds nothing that would fool whoever looks
/// at it in a terminal: besides U+0000...U+001F (as RFC 8259 demands), `HiddenScalars` are written as escapes.
///
/// A value type: not to be shared between threads while it is written to.
///
/// ```swift
/// var writer = JSONWriter()
/// writer.beginObject()
/// writer.key("line")
/// writer.integer(7)
/// writer.endObject()
/// writer.bytes  // {"line":7}
/// ```
public struct JSONWriter: Sendable {
  /// What was written so far.
  public private(set) var bytes: [UInt8] = []
  private let pretty: Bool
  private var depth = 0
  /// A value stands before the place of the next one in the same container.
  private var needsComma = false
  /// The next value belongs to a key that was just written.
  private var afterKey = false

  /// - Parameter pretty: one member a line, indented by two spaces; otherwise all on one line.
  public init(pretty: Bool = false) { self.pretty = pretty }

  /// Forgets what was written and keeps the memory, for the next document.
  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    depth = 0
    needsComma = false
    afterKey = false
  }

  /// Adds a byte that is no part of the document, such as the line feed behind it.
  public mutating func newline() {
    bytes.append(UInt8(ascii: "\n"))
    needsComma = false
  }

  public mutating func beginObject() { begin(UInt8(ascii: "{")) }
  public mutating func endObject() { end(UInt8(ascii: "}")) }
  public mutating func beginArray() { begin(UInt8(ascii: "[")) }
  public mutating func endArray() { end(UInt8(ascii: "]")) }

  /// A key that needs no escaping.
  public mutating func key(_ key: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    key.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(UInt8(ascii: "\""))
    colon()
  }

  /// A key from outside.
  public mutating func key(_ key: String) {
    separate()
    quote(key)
    colon()
  }

  public mutating func string(_ value: String) {
    separate()
    quote(value)
    needsComma = true
  }

  /// Text of unknown making: what is not UTF-8 in it becomes U+FFFD.
  public mutating func string(repairing value: some Collection<UInt8>) {
    string(String(decoding: value, as: UTF8.self))
  }

  public mutating func integer(_ value: some BinaryInteger) {
    separate()
    // Without a String per number: reports hold thousands of small ones.
    if let small = UInt64(exactly: value) {
      decimal(small)
    } else {
      bytes.append(contentsOf: String(value).utf8)
    }
    needsComma = true
  }

  public mutating func bool(_ value: Bool) {
    separate()
    bytes.append(contentsOf: (value ? "true" : "false").utf8)
    needsComma = true
  }

  /// A string of `0x` and the hex digits that the value needs, at least `digits`.
  public mutating func hex(_ value: UInt64, digits: Int = 1) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: "0"))
    bytes.append(UInt8(ascii: "x"))
    let needed = max(digits, (64 - value.leadingZeroBitCount + 3) / 4, 1)
    for position in stride(from: min(needed, 16) - 1, through: 0, by: -1) {
      let digit = UInt8(truncatingIfNeeded: value >> UInt64(4 * position)) & 15
      bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
    bytes.append(UInt8(ascii: "\""))
    needsComma = true
  }

  private mutating func begin(_ bracket: UInt8) {
    separate()
    bytes.append(bracket)
    depth += 1
    needsComma = false
  }

  private mutating func end(_ bracket: UInt8) {
    depth -= 1
    if pretty, needsComma { breakLine() }
    bytes.append(bracket)
    needsComma = true
  }

  private mutating func separate() {
    if afterKey {
      afterKey = false
      return
    }
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    if pretty, depth > 0 { breakLine() }
  }

  private mutating func colon() {
    bytes.append(UInt8(ascii: ":"))
    if pretty { bytes.append(UInt8(ascii: " ")) }
    afterKey = true
    needsComma = false
  }

  private mutating func breakLine() {
    bytes.append(UInt8(ascii: "\n"))
    bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * max(depth, 0)))
  }

  private mutating func decimal(_ value: UInt64) {
    if value < 10 {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value))
      return
    }
    let start = bytes.count
    var rest = value
    while rest > 0 {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    }
    bytes[start...].reverse()
  }

  private mutating func quote(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    var text = text
    text.withUTF8 { escape($0) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Copies in runs: most text needs no escape at all, and one append of a run is many times faster than one of each
  /// byte.
  private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
    var runStart = 0
    var index = 0
    while index < text.count {
      let byte = text[index]
      var length = 1
      var scalar = UInt32(byte)
      if byte >= 0x80 {
        (scalar, length) = Self.scalar(in: text, at: index)
        guard HiddenScalars.contains(scalar) else {
          index += length
          continue
        }
      } else if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte != 0x7F {
        index += 1
        continue
      }
      bytes.append(contentsOf: text[runStart..<index])
      bytes.append(UInt8(ascii: "\\"))
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
      case 0x08: bytes.append(UInt8(ascii: "b"))
      case 0x09: bytes.append(UInt8(ascii: "t"))
      case 0x0A: bytes.append(UInt8(ascii: "n"))
      case 0x0C: bytes.append(UInt8(ascii: "f"))
      case 0x0D: bytes.append(UInt8(ascii: "r"))
      default:
        if scalar < 0x1_0000 {
          unicodeEscape(scalar)
        } else {
          // JSON's escapes are UTF-16.
          unicodeEscape(0xD800 + ((scalar - 0x1_0000) >> 10))
          bytes.append(UInt8(ascii: "\\"))
          unicodeEscape(0xDC00 + ((scalar - 0x1_0000) & 0x3FF))
        }
      }
      index += length
      runStart = index
    }
    bytes.append(contentsOf: text[runStart...])
  }

  /// The scalar that begins with a byte of at least 0x80, and its length. The bytes come from a `String` and so are valid
  /// UTF-8; the end is looked at nevertheless, as it costs nothing beside the rest.
  private static func scalar(in text: UnsafeBufferPointer<UInt8>, at index: Int) -> (value: UInt32, length: Int) {
    let lead = text[index]
    let length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
    guard index + length <= text.count else { return (0xFFFD, 1) }
    var value = UInt32(lead) & (length == 2 ? 0x1F : length == 3 ? 0x0F : 0x07)
    for byte in text[index + 1..<index + length] { value = value << 6 | UInt32(byte & 0x3F) }
    return (value, length)
  }

  private mutating func unicodeEscape(_ value: UInt32) {
    bytes.append(UInt8(ascii: "u"))
    for shift in [12, 8, 4, 0] {
      let digit = UInt8(truncatingIfNeeded: value >> UInt32(shift)) & 15
      bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}
