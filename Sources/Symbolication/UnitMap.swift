internal import CLibdw
private import Glibc

/// Which compilation unit an address belongs to.
///
/// Made from the ranges that each unit states about itself, not from `.debug_aranges`: neither swiftc nor clang writes
/// that section, and libdw's own look-ups, which depend on it, find nothing in their files.
///
/// The units' headers and first entries are read by bytes; libdw is asked for a unit when an address lies in it.
struct UnitMap {
  /// A unit with code, as libdw has it.
  struct Unit {
    let die: Dwarf_Die
    let version: Int
    /// The unit's functions stand in another file (`.dwo`); this one has only its addresses.
    let isSkeleton: Bool
  }

  private struct Place {
    /// Offset of the unit's own entry.
    var entry: Int
    var version: Int
    var isSkeleton: Bool
  }

  private let dwarf: OpaquePointer
  private let places: [Place]
  let owners: RangeOwners

  /// - Parameter sections: the file's, decompressed.
  init(_ dwarf: OpaquePointer, sections: ELFSections, code: CodeRanges) {
    self.dwarf = dwarf
    var places: [Place] = []
    var ranges: [(range: AddressRange, owner: Int32)] = []
    var reader = UnitCodeReader(dwarf, sections)
    let information = sections.bytes(".debug_info")
    var offset = 0
    while offset < information.count {
      guard let header = UnitHeader(information, at: offset) else {
        guard let end = UnitHeader.end(information, at: offset) else { break }
        offset = end
        continue
      }
      // Behind the header, so that this comes to an end.
      offset = header.end
      guard ![DW_UT_type, DW_UT_split_type, DW_UT_partial].contains(Int(header.type)) else { continue }
      let unit = Int32(clamping: places.count)
      let before = ranges.count
      let isSkeleton = reader.read(header) { range in
        if code.isLive(range) { ranges.append((range, unit)) }
      }
      if ranges.count > before {
        places.append(Place(entry: header.firstEntry, version: header.format.version, isSkeleton: isSkeleton))
      }
    }
    self.places = places
    owners = RangeOwners(ranges)
  }

  /// Number of the unit that `address` belongs to.
  func unit(of address: UInt64) -> Int? { owners.owner(of: address) }

  /// Of units with code.
  var count: Int { places.count }

  var skeletonCount: Int { places.count { $0.isSkeleton } }

  /// - Returns: nil where libdw does not find the unit, as the header of one before it is damaged.
  subscript(number: Int) -> Unit? {
    let place = places[number]
    var die = Dwarf_Die()
    guard dwarf_offdie(dwarf, Dwarf_Off(place.entry), &die) != nil else { return nil }
    return Unit(die: die, version: place.version, isSkeleton: place.isSkeleton)
  }
}
