/// A list in which each value stands once, and is found by its contents.
///
/// Not a dictionary: what is kept here are millions of small fixed numbers of our own making, for which a hash that
/// withstands an attacker's choice of keys is most of the work of the table.
struct InternedList<Element: InternedElement> {
  private(set) var elements: [Element] = []
  /// Index in `elements` plus one, by hash; a power of two of them, at most half full.
  private var slots: [UInt32] = Array(repeating: 0, count: 1024)

  /// - Returns: the value's index.
  mutating func index(of element: Element) -> UInt32 {
    let mask = slots.count - 1
    var slot = Int(truncatingIfNeeded: element.mixed >> 32) & mask
    while slots[slot] != 0 {
      let index = slots[slot] - 1
      if elements[Int(index)] == element { return index }
      slot = (slot + 1) & mask
    }
    let index = UInt32(truncatingIfNeeded: elements.count)
    elements.append(element)
    slots[slot] = index + 1
    if elements.count * 2 > slots.count { grow() }
    return index
  }

  /// Adds a value that is not looked for, and so may stand twice.
  mutating func append(_ element: Element) -> UInt32 {
    elements.append(element)
    return UInt32(truncatingIfNeeded: elements.count - 1)
  }

  private mutating func grow() {
    let mask = slots.count * 4 - 1
    var larger = [UInt32](repeating: 0, count: mask + 1)
    for entry in slots where entry != 0 {
      var slot = Int(truncatingIfNeeded: elements[Int(entry) - 1].mixed >> 32) & mask
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
