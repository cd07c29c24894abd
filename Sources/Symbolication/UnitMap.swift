internal import CLibdw
private import Glibc

/// Which compilation unit an address belongs to.
///
/// Made from the ranges that each unit states about itself, not from `.debug_aranges`: neither swiftc nor clang writes
/// that section, and libdw's own look-ups, which depend on it, find nothing in their files.
struct UnitMap {
  struct Unit {
    let handle: OpaquePointer
    let die: Dwarf_Die
    let version: Int
    /// The unit's functions stand in another file (`.dwo`); this one has only its addresses.
    let isSkeleton: Bool
  }

  let units: [Unit]
  let owners: RangeOwners

  init(_ dwarf: OpaquePointer, code: CodeRanges) {
    var units: [Unit] = []
    var ranges: [(range: AddressRange, owner: Int32)] = []
    var current: OpaquePointer?
    while true {
      var next: OpaquePointer?
      var version: Dwarf_Half = 0
      var type: UInt8 = 0
      var die = Dwarf_Die()
      // No sub-DIE is asked for. swiftc writes a unit for each clang module it imported, which looks like split DWARF whose
      // other half is a `.pcm` of the compiler's cache; libdw would open each of them, hundreds for one address.
      guard dwarf_get_units(dwarf, current, &next, &version, &type, &die, nil) == 0, let next else { break }
      current = next
      guard die.addr != nil, type != UInt8(DW_UT_type), type != UInt8(DW_UT_partial) else { continue }
      // Split or module, a skeleton without addresses of its own answers nothing. Asking it for its ranges would make libdw
      // look for the other file, so its attributes are looked at first.
      guard dwarf_hasattr(&die, UInt32(DW_AT_ranges)) != 0 || dwarf_hasattr(&die, UInt32(DW_AT_high_pc)) != 0 else {
        continue
      }
      // Before DWARF 5 libdw takes one with entries of its own (`clang -fsplit-dwarf-inlining`) for a unit that is whole.
      let isSkeleton =
        type == UInt8(DW_UT_skeleton) || version < 5 && dwarf_hasattr(&die, UInt32(DW_AT_GNU_dwo_id)) != 0
      let unit = Int32(clamping: units.count)
      let before = ranges.count
      DebugInformationEntry.forEachRange(of: &die) { range in
        if code.isLive(range) { ranges.append((range, unit)) }
      }
      if ranges.count > before {
        units.append(Unit(handle: next, die: die, version: Int(version), isSkeleton: isSkeleton))
      }
    }
    self.units = units
    owners = RangeOwners(ranges)
  }

  /// Index in `units` of the unit that `address` belongs to.
  func unit(of address: UInt64) -> Int? { owners.owner(of: address) }
}
