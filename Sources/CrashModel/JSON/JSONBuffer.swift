/// The memory of a `JSONWriter`: bytes, of which the writer knows how many are written.
///
/// Not an array of bytes: that asks for each append whether it is shared, whether it is full and how long it is, which for
/// the ten thousand small pieces of a report is most of the time that writing takes.
///
/// Unchecked, as the pointer hides what the compiler would have to see: a writer changes the bytes only while it is the
/// buffer's one owner, and gives itself another buffer otherwise, as the standard library's arrays do.
final class JSONBuffer: @unchecked Sendable {
  let base: UnsafeMutablePointer<UInt8>
  let capacity: Int

  init(capacity: Int) {
    base = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  deinit { base.deallocate() }
}

/// Copies text as it looks for what JSON does not take as it is.
enum PlainText {
  private static let least = UInt8(0x20)
  /// From the space to the tilde: what lies outside is a control character, or no ASCII.
  private static let span = UInt8(0x5E)

  /// - Parameters:
  ///   - target: room for as many bytes as the text has.
  /// - Returns: whether all of it is printable ASCII without quotes and backslashes, which nearly all names are.
  ///   Otherwise what is at `target` has no meaning.
  @inline(__always)
  static func copy(_ text: UnsafeBufferPointer<UInt8>, to target: UnsafeMutablePointer<UInt8>) -> Bool {
    let count = text.count
    guard count >= 16 else { return copyShort(text, to: target) }
    guard let source = UnsafeRawPointer(text.baseAddress) else { return true }
    let target = UnsafeMutableRawPointer(target)
    var isOther = SIMDMask<SIMD16<Int8>>(repeating: false)
    var offset = 0
    while offset &+ 16 <= count {
      copyPiece(from: source + offset, to: target + offset, &isOther)
      offset &+= 16
    }
    // The rest together with bytes that were copied already.
    if offset < count { copyPiece(from: source + (count &- 16), to: target + (count &- 16), &isOther) }
    let halves = unsafeBitCast(isOther, to: SIMD2<UInt64>.self)
    return halves[0] | halves[1] == 0
  }

  @inline(__always)
  private static func copyPiece(
    from source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, _ isOther: inout SIMDMask<SIMD16<Int8>>
  ) {
    let piece = source.loadUnaligned(as: SIMD16<UInt8>.self)
    isOther .|= (piece &- SIMD16(repeating: least)) .> SIMD16(repeating: span)
    isOther .|= piece .== SIMD16(repeating: UInt8(ascii: "\""))
    isOther .|= piece .== SIMD16(repeating: UInt8(ascii: "\\"))
    target.storeBytes(of: piece, as: SIMD16<UInt8>.self)
  }

  @inline(__always)
  private static func copyShort(_ text: UnsafeBufferPointer<UInt8>, to target: UnsafeMutablePointer<UInt8>) -> Bool {
    var isOther = false
    for index in 0..<text.count {
      let byte = text[index]
      isOther = isOther || byte &- least > span || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
      target[index] = byte
    }
    return !isOther
  }
}
