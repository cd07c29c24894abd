/// A list in which each value stands once, and is found by its contents.
///
/// Not a dictionary: what is kept here are millions of small fixed numbers of our own making, for which a hash that
/// withstands an attacker's choice of keys is most of the work of the table.
struct InternedList<Element: InternedElement> {
  private(set) var elements: [Element] = []
  /// Upper half of the hash, and the index in `elements` plus one; 0 for a free slot. A power of two of them, at most half
  /// full. With the hash beside it, an element that is not the one is seldom looked at: each look is a miss of the cache.
  private var slots: [UInt64] = []

  /// - Returns: the value's index.
  mutating func index(of element: Element) -> UInt32 {
    if slots.isEmpty { slots = Array(repeating: 0, count: 64) }
    let tag = element.mixed & ~UInt64(UInt32.max)
    let mask = slots.count - 1
    var slot = Int(truncatingIfNeeded: tag >> 32) & mask
    while slots[slot] != 0 {
      let index = UInt32(truncatingIfNeeded: slots[slot]) &- 1
      if slots[slot] & ~UInt64(UInt32.max) == tag, elements[Int(index)] == element { return index }
      slot = (slot + 1) & mask
    }
    let index = UInt32(truncatingIfNeeded: elements.count)
    elements.append(element)
    slots[slot] = tag | UInt64(index + 1)
    interned += 1
    if interned * 2 > slots.count { grow() }
    return index
  }

  /// How many of the elements can be found.
  private var interned = 0

  /// Adds a value that is not looked for, and so may stand twice.
  mutating func append(_ element: Element) -> UInt32 {
    elements.append(element)
    return UInt32(truncatingIfNeeded: elements.count - 1)
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
}

protocol InternedElement: Equatable {
  /// A hash whose upper half is well mixed.
  var mixed: UInt64 { get }
}

extension AddressTableLayout.Entry: InternedElement {
  var mixed: UInt64 {
    InternedHash.mix(
      InternedHash.mix(position.mixed, UInt64(function) << 32 | UInt64(parent)), UInt64(nearest))
  }
}

extension AddressTableLayout.Position: InternedElement {
  var mixed: UInt64 { InternedHash.mix(UInt64(file) << 32 | UInt64(line), UInt64(column)) }
}

extension AddressTableLayout.Function: InternedElement {
  var mixed: UInt64 {
    InternedHash.mix(UInt64(name) << 32 | UInt64(declarationLine), hasDebugInformation ? 1 : 0)
  }
}

enum InternedHash {
  @inline(__always)
  static func mix(_ state: UInt64, _ value: UInt64) -> UInt64 {
    let product = (state ^ value &* 0xff51_afd7_ed55_8ccd) &* 0x9e37_79b9_7f4a_7c15
    return product ^ product >> 29
  }
}
