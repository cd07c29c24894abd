private import Glibc

/// Reads little-endian values from bytes that nobody vouches for.
///
/// A read past the end gives 0 and sets `failed`; the caller checks once, where an error can be handled. Throwing from
/// each read costs a third of the time of the scan over a large `.debug_info`.
struct ByteCursor {
  let bytes: UnsafeRawBufferPointer
  private(set) var offset: Int
  let end: Int
  private(set) var failed = false

  /// - Parameters:
  ///   - offset: where to start; outside of the bytes the cursor has failed from the start.
  ///   - end: where to stop, at most the end of the bytes.
  init(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0, end: Int? = nil) {
    self.bytes = bytes
    self.end = min(max(end ?? bytes.count, 0), bytes.count)
    self.offset = offset
    if offset < 0 || offset > self.end {
      self.offset = self.end
      failed = true
    }
  }

  var isAtEnd: Bool { offset >= end }

  @inline(__always)
  private mutating func load<Value: FixedWidthInteger>(_ type: Value.Type) -> Value {
    let size = MemoryLayout<Value>.size
    guard end - offset >= size else { return fail() }
    defer { offset &+= size }
    return Value(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
  }

  @inline(never)
  private mutating func fail<Value: FixedWidthInteger>() -> Value {
    failed = true
    offset = end
    return 0
  }

  @inline(__always) mutating func u8() -> UInt8 { load(UInt8.self) }
  @inline(__always) mutating func u16() -> UInt16 { load(UInt16.self) }
  @inline(__always) mutating func u32() -> UInt32 { load(UInt32.self) }
  @inline(__always) mutating func u64() -> UInt64 { load(UInt64.self) }

  mutating func u24() -> UInt32 {
    let low = UInt32(u16())
    return low | UInt32(u8()) << 16
  }

  /// An unsigned LEB128 number; bits beyond the 64th are lost.
  @inline(__always)
  mutating func uleb() -> UInt64 {
    let first = u8()
    if first < 0x80 { return UInt64(first) }
    return ulebTail(UInt64(first & 0x7f))
  }

  private mutating func ulebTail(_ start: UInt64) -> UInt64 {
    var value = start
    var shift: UInt64 = 7
    while !failed {
      let byte = u8()
      if shift < 64 { value |= UInt64(byte & 0x7f) << shift }
      shift &+= 7
      if byte < 0x80 { break }
    }
    return value
  }

  /// A signed LEB128 number; bits beyond the 64th are lost.
  mutating func sleb() -> Int64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while !failed {
      let byte = u8()
      if shift < 64 { value |= UInt64(byte & 0x7f) << shift }
      shift &+= 7
      if byte < 0x80 {
        if byte & 0x40 != 0, shift < 64 { value |= ~0 << shift }
        break
      }
    }
    return Int64(bitPattern: value)
  }

  /// An offset of the unit's format: 4 bytes, or 8 in 64-bit DWARF.
  @inline(__always)
  mutating func sectionOffset(is64Bit: Bool) -> UInt64 { is64Bit ? u64() : UInt64(u32()) }

  @inline(__always)
  mutating func skip(_ count: Int) {
    guard count >= 0, count <= end - offset else {
      failed = true
      offset = end
      return
    }
    offset &+= count
  }

  @inline(__always)
  mutating func skip(_ count: UInt64) { skip(Int(clamping: count)) }

  /// Skips a string and its NUL, and returns where it began.
  @discardableResult
  mutating func skipString() -> Int {
    let start = offset
    while offset < end {
      let byte = bytes[offset]
      offset &+= 1
      if byte == 0 { return start }
    }
    failed = true
    return start
  }
}

extension UnsafeRawBufferPointer {
  /// Longer than any name or path; what is longer is cut, so that a megabyte without a NUL is not copied for each frame.
  static let maximumStringLength = 1 << 16

  /// The NUL-terminated string at `offset`, with broken UTF-8 repaired; nil where there is none.
  func string(at offset: Int) -> String? {
    guard offset >= 0, offset < count else { return nil }
    let rest = self[offset...].prefix(Self.maximumStringLength)
    guard let end = rest.firstIndex(of: 0) ?? (rest.endIndex < count ? rest.endIndex : nil) else { return nil }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  /// The same of a string of libdw's.
  static func string(_ text: UnsafePointer<CChar>, limit: Int = maximumStringLength) -> String {
    let length = strnlen(text, limit)
    return String(decoding: UnsafeRawBufferPointer(start: text, count: length), as: UTF8.self)
  }
}
