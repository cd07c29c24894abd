/// The strings of a table, each once, as the table has them: a length of four bytes and the bytes.
///
/// Found by their bytes, and before that by where they stand in the file: linkers keep one copy of a name, and most
/// functions that are asked for were asked for before. Not a dictionary of `String`: making one of a name of 300 bytes,
/// validating, hashing and comparing it was a third of the work of a table.
struct InternedStrings {
  private(set) var bytes: [UInt8] = []
  /// More than indices of 31 bits can tell apart.
  private(set) var isFull = false

  /// Upper half of the hash, and the offset in `bytes` plus one; 0 for a free slot. A power of two of them, at most half full.
  private var slots: [UInt64] = Array(repeating: 0, count: 4096)
  private var count = 0
  private var pointers = InternedList<Pointer>()
  private var offsetsOfPointers: [UInt32] = []
  /// The names come from a file that anyone may have made: without it, names could be chosen that all fall into one slot.
  private let seed = UInt64.random(in: .min ... .max) | 1

  private struct Pointer: InternedElement {
    var address: UInt

    var mixed: UInt64 { InternedHash.mix(0, UInt64(address)) }
  }

  /// - Parameter text: stays where it is, and as it is, as long as this list is used.
  mutating func offset(of text: UnsafePointer<CChar>) -> UInt32 {
    let index = Int(pointers.index(of: Pointer(address: UInt(bitPattern: text))))
    if index < offsetsOfPointers.count { return offsetsOfPointers[index] }
    let offset = self.offset(of: UnsafeRawBufferPointer(start: text, count: CString.length(text)))
    offsetsOfPointers.append(offset)
    return offset
  }

  mutating func offset(of text: UnsafeRawBufferPointer) -> UInt32 {
    let tag = hash(text) & ~UInt64(UInt32.max)
    var slot = Int(truncatingIfNeeded: tag >> 32) & (slots.count - 1)
    while slots[slot] != 0 {
      let offset = UInt32(truncatingIfNeeded: slots[slot]) &- 1
      if slots[slot] & ~UInt64(UInt32.max) == tag, isEqual(text, at: Int(offset)) { return offset }
      slot = (slot + 1) & (slots.count - 1)
    }
    guard let offset = UInt32(exactly: bytes.count), offset < 1 << 31 else {
      isFull = true
      return AddressTableLayout.none
    }
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: text.count).littleEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: text)
    slots[slot] = tag | UInt64(offset + 1)
    count += 1
    if count * 2 > slots.count { grow() }
    return offset
  }

  private func isEqual(_ text: UnsafeRawBufferPointer, at offset: Int) -> Bool {
    bytes.withUnsafeBytes { bytes in
      let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
      guard length == text.count else { return false }
      return CString.isEqual(text, UnsafeRawBufferPointer(rebasing: bytes[offset + 4..<offset + 4 + length]))
    }
  }

  private mutating func grow() {
    let mask = slots.count * 4 - 1
    var larger = [UInt64](repeating: 0, count: mask + 1)
    for entry in slots where entry != 0 {
      var slot = Int(truncatingIfNeeded: entry >> 32) & mask
      while larger[slot] != 0 { slot = (slot + 1) & mask }
      larger[slot] = entry
    }
    slots = larger
  }

  /// Eight bytes at a step, folded by a product of 128 bits.
  private func hash(_ text: UnsafeRawBufferPointer) -> UInt64 {
    func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
      let product = a.multipliedFullWidth(by: b)
      return product.high ^ product.low
    }
    var state = seed ^ UInt64(truncatingIfNeeded: text.count)
    var offset = 0
    while offset + 8 <= text.count {
      state = fold(state ^ text.loadUnaligned(fromByteOffset: offset, as: UInt64.self), 0x9e37_79b9_7f4a_7c15 ^ seed)
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < text.count {
      rest = rest << 8 | UInt64(text[offset])
      offset += 1
    }
    return fold(state ^ rest, 0xff51_afd7_ed55_8ccd ^ seed)
  }
}
