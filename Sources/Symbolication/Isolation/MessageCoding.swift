internal import CrashModel

/// Puts values one after the other, for `MessageReader`.
struct MessageWriter {
  private(set) var bytes: [UInt8] = []

  mutating func byte(_ value: UInt8) { bytes.append(value) }

  mutating func flag(_ value: Bool) { bytes.append(value ? 1 : 0) }

  /// LEB128, as most numbers are small.
  mutating func number(_ value: UInt64) {
    var value = value
    while value >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
      value >>= 7
    }
    bytes.append(UInt8(value))
  }

  mutating func append(_ other: MessageWriter) { bytes += other.bytes }

  mutating func number(_ value: Int) { number(UInt64(clamping: value)) }

  mutating func blob(_ value: some Collection<UInt8>) {
    number(value.count)
    bytes += value
  }

  mutating func text(_ value: String) { blob(value.utf8) }

  mutating func optional<Value>(_ value: Value?, _ put: (inout MessageWriter, Value) -> Void) {
    flag(value != nil)
    if let value { put(&self, value) }
  }

  mutating func list<Element>(_ values: some Collection<Element>, _ put: (inout MessageWriter, Element) -> Void) {
    number(values.count)
    for value in values { put(&self, value) }
  }

  /// Sorted, without repetitions: by their distances.
  mutating func addresses(_ values: [UInt64]) {
    var last: UInt64 = 0
    list(values) { writer, value in
      writer.number(value &- last)
      last = value
    }
  }
}

/// Takes apart what `MessageWriter` put together, and what somebody else did.
///
/// After the first value that is not there everything is 0 and empty, and `isWhole` is false: one check at the end is
/// enough. No list is longer than the bytes that are left, so that no number in a message makes it large.
struct MessageReader {
  private var cursor: ByteCursor

  init(_ bytes: UnsafeRawBufferPointer) { cursor = ByteCursor(bytes) }

  /// All bytes were read, and every value was there.
  var isWhole: Bool { cursor.isAtEnd && !cursor.failed }

  mutating func fail() { cursor = ByteCursor(cursor.bytes, at: -1) }

  mutating func byte() -> UInt8 { cursor.u8() }

  mutating func flag() -> Bool {
    let value = cursor.u8()
    if value > 1 { fail() }
    return value == 1
  }

  mutating func number() -> UInt64 { cursor.uleb() }

  mutating func integer() -> Int {
    guard let value = Int(exactly: number()) else {
      fail()
      return 0
    }
    return value
  }

  mutating func integer32() -> UInt32 {
    guard let value = UInt32(exactly: number()) else {
      fail()
      return 0
    }
    return value
  }

  mutating func blob() -> UnsafeRawBufferPointer {
    let count = integer()
    let start = cursor.offset
    cursor.skip(count)
    guard !cursor.failed else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(rebasing: cursor.bytes[start..<start + count])
  }

  /// With broken UTF-8 repaired.
  mutating func text() -> String { String(decoding: blob(), as: UTF8.self) }

  mutating func optional<Value>(_ take: (inout MessageReader) -> Value) -> Value? { flag() ? take(&self) : nil }

  /// Each element has one byte at least.
  mutating func list<Element>(_ take: (inout MessageReader) -> Element) -> [Element] {
    let count = integer()
    guard count <= cursor.end - cursor.offset else {
      fail()
      return []
    }
    var values: [Element] = []
    for _ in 0..<count where !cursor.failed { values.append(take(&self)) }
    return values
  }

  mutating func addresses() -> [UInt64] {
    var last: UInt64 = 0
    return list { reader in
      last &+= reader.number()
      return last
    }
  }
}
