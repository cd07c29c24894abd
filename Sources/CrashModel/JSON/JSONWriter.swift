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
  private var buffer = JSONBuffer(capacity: 1_024)
  /// Of the bytes that were written so far.
  public private(set) var count = 0
  private let pretty: Bool
  private var depth = 0
  /// A value stands before the place of the next one in the same container.
  private var needsComma = false
  /// The next value belongs to a key that was just written.
  private var afterKey = false

  /// - Parameter pretty: one member a line, indented by two spaces; otherwise all on one line.
  public init(pretty: Bool = false) { self.pretty = pretty }

  /// What was written so far, as a copy.
  public var bytes: [UInt8] { withBytes { Array($0) } }

  /// What was written so far, without a copy; valid within `body`.
  public func withBytes<Result, Failure>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    try withExtendedLifetime(buffer) { () throws(Failure) in
      try body(UnsafeRawBufferPointer(start: buffer.base, count: count))
    }
  }

  /// Forgets what was written and keeps the memory, for the next document.
  public mutating func removeAll() {
    count = 0
    depth = 0
    needsComma = false
    afterKey = false
  }

  /// Adds a byte that is no part of the document, such as the line feed behind it.
  public mutating func newline() {
    append(UInt8(ascii: "\n"))
    needsComma = false
  }

  public mutating func beginObject() { begin(UInt8(ascii: "{")) }
  public mutating func endObject() { end(UInt8(ascii: "}")) }
  public mutating func beginArray() { begin(UInt8(ascii: "[")) }
  public mutating func endArray() { end(UInt8(ascii: "]")) }

  /// A key that needs no escaping.
  public mutating func key(_ key: StaticString) {
    key.withUTF8Buffer { text in
      let length = text.count
      let place = next(length &+ 3)
      place[0] = UInt8(ascii: "\"")
      if let start = text.baseAddress { (place + 1).update(from: start, count: length) }
      place[length &+ 1] = UInt8(ascii: "\"")
      place[length &+ 2] = UInt8(ascii: ":")
      count &+= length &+ 3
    }
    didWriteKey()
  }

  /// A key from outside.
  public mutating func key(_ key: String) {
    quote(key)
    append(UInt8(ascii: ":"))
    didWriteKey()
  }

  public mutating func string(_ value: String) {
    quote(value)
    needsComma = true
  }

  /// Text of unknown making: what is not UTF-8 in it becomes U+FFFD.
  public mutating func string(repairing value: some Collection<UInt8>) {
    string(String(decoding: value, as: UTF8.self))
  }

  /// A string of bytes that are known to need no escaping.
  ///
  /// - Parameter write: writes exactly `length` bytes.
  @inline(__always)
  mutating func string(length: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Void) {
    let place = next(length &+ 2)
    place[0] = UInt8(ascii: "\"")
    write(place + 1)
    place[length &+ 1] = UInt8(ascii: "\"")
    count &+= length &+ 2
    needsComma = true
  }

  public mutating func integer(_ value: some BinaryInteger) {
    // Without a String per number: reports hold thousands of small ones.
    if let small = UInt64(exactly: value) {
      decimal(small)
    } else {
      copy(String(value))
    }
    needsComma = true
  }

  public mutating func bool(_ value: Bool) {
    copy(value ? "true" : "false")
    needsComma = true
  }

  /// A string of `0x` and the hex digits that the value needs, at least `digits`.
  public mutating func hex(_ value: UInt64, digits: Int = 1) {
    let needed = min(max(digits, (64 &- value.leadingZeroBitCount &+ 3) / 4, 1), 16)
    string(length: needed &+ 2) { place in
      place[0] = UInt8(ascii: "0")
      place[1] = UInt8(ascii: "x")
      var rest = value
      var index = needed &+ 1
      while index >= 2 {
        let digit = UInt8(truncatingIfNeeded: rest) & 15
        place[index] = digit &+ (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") &- 10)
        rest >>= 4
        index &-= 1
      }
    }
  }

  // MARK: Places

  /// Where the next `length` bytes go, in memory that is nobody else's. Whoever fills them adds them to `count`.
  @inline(__always)
  private mutating func room(_ length: Int) -> UnsafeMutablePointer<UInt8> {
    if !isKnownUniquelyReferenced(&buffer) || buffer.capacity &- count < length { moveBuffer(length) }
    return buffer.base + count
  }

  @inline(never)
  private mutating func moveBuffer(_ length: Int) {
    let larger = JSONBuffer(capacity: max(buffer.capacity * 2, count + length))
    larger.base.update(from: buffer.base, count: count)
    buffer = larger
  }

  /// The same behind what separates a key or a value from the one before it.
  @inline(__always)
  private mutating func next(_ length: Int) -> UnsafeMutablePointer<UInt8> {
    if afterKey {
      afterKey = false
      return room(length)
    }
    if pretty { return nextOnNewLine(length) }
    guard needsComma else { return room(length) }
    let place = room(length &+ 1)
    place[0] = UInt8(ascii: ",")
    count &+= 1
    return place + 1
  }

  private mutating func nextOnNewLine(_ length: Int) -> UnsafeMutablePointer<UInt8> {
    if needsComma { append(UInt8(ascii: ",")) }
    if depth > 0 { breakLine() }
    return room(length)
  }

  private mutating func append(_ byte: UInt8) {
    room(1)[0] = byte
    count &+= 1
  }

  private mutating func begin(_ bracket: UInt8) {
    next(1)[0] = bracket
    count &+= 1
    depth &+= 1
    needsComma = false
  }

  private mutating func end(_ bracket: UInt8) {
    depth &-= 1
    if pretty, needsComma { breakLine() }
    append(bracket)
    needsComma = true
  }

  @inline(__always)
  private mutating func didWriteKey() {
    if pretty { append(UInt8(ascii: " ")) }
    afterKey = true
    needsComma = false
  }

  private mutating func breakLine() {
    append(UInt8(ascii: "\n"))
    for _ in 0..<2 * max(depth, 0) { append(UInt8(ascii: " ")) }
  }

  // MARK: Values

  /// Text that is no JSON string.
  private mutating func copy(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
      let place = next(bytes.count)
      if let start = bytes.baseAddress { place.update(from: start, count: bytes.count) }
      count &+= bytes.count
    }
  }

  private mutating func decimal(_ value: UInt64) {
    var digits = 1
    var rest = value / 10
    while rest > 0 {
      digits &+= 1
      rest /= 10
    }
    let place = next(digits)
    rest = value
    var index = digits
    repeat {
      index &-= 1
      place[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while index > 0
    count &+= digits
  }

  private mutating func quote(_ text: String) {
    // In the text's own memory: `withUTF8` wants a copy that may change, which is two counts of references for each string.
    let isWritten: Void? = text.utf8.withContiguousStorageIfAvailable { quote($0) }
    if isWritten != nil { return }
    var copy = text
    copy.withUTF8 { quote($0) }
  }

  private mutating func quote(_ bytes: UnsafeBufferPointer<UInt8>) {
    let place = next(bytes.count &+ 2)
    place[0] = UInt8(ascii: "\"")
    count &+= 1
    if PlainText.copy(bytes, to: place + 1) {
      place[bytes.count &+ 1] = UInt8(ascii: "\"")
      count &+= bytes.count &+ 1
    } else {
      escape(bytes)
      append(UInt8(ascii: "\""))
    }
  }

  /// Copies in runs: one append of a run is many times faster than one of each byte.
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
      copy(text[runStart..<index])
      append(UInt8(ascii: "\\"))
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): append(byte)
      case 0x08: append(UInt8(ascii: "b"))
      case 0x09: append(UInt8(ascii: "t"))
      case 0x0A: append(UInt8(ascii: "n"))
      case 0x0C: append(UInt8(ascii: "f"))
      case 0x0D: append(UInt8(ascii: "r"))
      default:
        if scalar < 0x1_0000 {
          unicodeEscape(scalar)
        } else {
          // JSON's escapes are UTF-16.
          unicodeEscape(0xD800 + ((scalar - 0x1_0000) >> 10))
          append(UInt8(ascii: "\\"))
          unicodeEscape(0xDC00 + ((scalar - 0x1_0000) & 0x3FF))
        }
      }
      index += length
      runStart = index
    }
    copy(text[runStart...])
  }

  private mutating func copy(_ piece: Slice<UnsafeBufferPointer<UInt8>>) {
    let bytes = UnsafeBufferPointer(rebasing: piece)
    guard let start = bytes.baseAddress else { return }
    room(bytes.count).update(from: start, count: bytes.count)
    count &+= bytes.count
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
    append(UInt8(ascii: "u"))
    for shift in [12, 8, 4, 0] {
      let digit = UInt8(truncatingIfNeeded: value >> UInt32(shift)) & 15
      append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}
