/// Bytes on their way out, in memory that is used again.
///
/// Not an array of bytes, whose append asks each time whether it is shared.
final class ByteBuffer {
  private(set) var count = 0
  private var capacity: Int
  private var base: UnsafeMutableRawPointer

  init(capacity: Int) {
    self.capacity = max(capacity, 64)
    base = .allocate(byteCount: self.capacity, alignment: 16)
  }

  deinit { base.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  /// Takes back what was written behind the first `length` bytes.
  func removeAll(behind length: Int = 0) { count = min(count, max(length, 0)) }

  @inline(__always)
  func append(_ byte: UInt8) {
    reserve(1)
    base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count &+= 1
  }

  @inline(__always)
  func append(_ text: StaticString) {
    let size = text.utf8CodeUnitCount
    reserve(size)
    (base + count).copyMemory(from: text.utf8Start, byteCount: size)
    count &+= size
  }

  func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    reserve(bytes.count)
    (base + count).copyMemory(from: start, byteCount: bytes.count)
    count &+= bytes.count
  }

  func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  func append(_ array: [UInt8]) { array.withUnsafeBytes { append($0) } }

  /// Appends bytes if all of them are printable ASCII, which nearly all names are. Looks at them as it copies.
  ///
  /// - Returns: whether they were; otherwise nothing was appended.
  @inline(__always)
  func appendPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let size = bytes.count
    guard let source = bytes.baseAddress else { return true }
    reserve(size)
    let target = base + count
    if size >= 16 {
      let first = SIMD16<UInt8>(repeating: 0x20)
      let limit = SIMD16<UInt8>(repeating: 0x5e)
      var isOther = SIMDMask<SIMD16<Int8>>(repeating: false)
      var offset = 0
      while offset &+ 16 <= size {
        let piece = source.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
        isOther .|= (piece &- first) .> limit
        target.storeBytes(of: piece, toByteOffset: offset, as: SIMD16<UInt8>.self)
        offset &+= 16
      }
      // The rest together with bytes that were copied already.
      let piece = source.loadUnaligned(fromByteOffset: size &- 16, as: SIMD16<UInt8>.self)
      isOther .|= (piece &- first) .> limit
      target.storeBytes(of: piece, toByteOffset: size &- 16, as: SIMD16<UInt8>.self)
      let halves = unsafeBitCast(isOther, to: SIMD2<UInt64>.self)
      guard halves[0] | halves[1] == 0 else { return false }
    } else {
      for offset in 0..<size {
        let byte = source.load(fromByteOffset: offset, as: UInt8.self)
        guard byte &- 0x20 <= 0x5e else { return false }
        target.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
      }
    }
    count &+= size
    return true
  }

  @inline(__always)
  func append(decimal value: UInt32) {
    reserve(10)
    var digits = 1
    var limit: UInt64 = 10
    while UInt64(value) >= limit {
      digits &+= 1
      limit &*= 10
    }
    var rest = value
    var offset = count &+ digits
    count = offset
    repeat {
      offset &-= 1
      let digit = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
      base.storeBytes(of: digit, toByteOffset: offset, as: UInt8.self)
      rest /= 10
    } while rest > 0
  }

  /// `0x` and at least `digits` lower-case digits.
  func append(hex value: UInt64, digits: Int = 1) {
    append("0x")
    let needed = max(digits, (64 - value.leadingZeroBitCount + 3) / 4, 1)
    for position in stride(from: min(needed, 16) - 1, through: 0, by: -1) {
      let digit = UInt8(truncatingIfNeeded: value >> UInt64(4 * position)) & 15
      append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }

  @inline(__always)
  private func reserve(_ size: Int) { if capacity &- count < size { grow(size) } }

  @inline(never)
  private func grow(_ size: Int) {
    let larger = max(capacity * 2, count + size)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    memory.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = memory
    capacity = larger
  }
}
