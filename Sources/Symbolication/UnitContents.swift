internal import CLibdw
private import CrashModel
private import Glibc

/// The bytes of one unit and what they are relative to, found through libdw and then read directly.
///
/// libdw's own walk (`dwarf_child`, `dwarf_siblingof`) reads an entry with children again to find what follows it, and
/// looks each shape up in a hash table: 150 ns an entry, where a straight scan takes a tenth of it.
struct UnitContents {
  /// The half in another file, which the entries are then of; nil for a unit that is whole.
  let split: SplitUnit?
  let info: UnsafeRawBufferPointer
  /// Offset in `info` of the unit's header, which references within the unit count from.
  let header: Int
  /// Offset in `info` of the unit's own entry, and of its end.
  let entries: Range<Int>
  let format: UnitFormat
  let abbreviations: AbbreviationTable
  let rangeLists: RangeLists
  private let dwarf: OpaquePointer

  /// - Returns: nil where the unit is damaged or of an unknown version.
  init?(
    _ unit: UnitMap.Unit, sections: ELFSections, splitUnits: SplitUnitSearch, lastAbbreviations: LastAbbreviationTable
  ) {
    var die = unit.die
    guard let cu = die.cu, let dwarf = dwarf_cu_getdwarf(cu) else { return nil }
    self.dwarf = dwarf
    let unitHeader: UnitHeader
    let abbreviationBytes: UnsafeRawBufferPointer
    // Only reached for a unit that has addresses, and so never for a clang module.
    if unit.isSkeleton, let skeleton = SplitUnitSearch.Skeleton(unit), let split = splitUnits.unit(of: skeleton) {
      self.split = split
      unitHeader = split.header
      info = split.sections.info
      abbreviationBytes = split.sections.abbreviations
    } else {
      // Without its other half a skeleton is all there is. clang can put the inlined functions of a unit there as well
      // (`-fsplit-dwarf-inlining`).
      split = nil
      info = sections.bytes(".debug_info")
      let start = dwarf_dieoffset(&die) &- dwarf_cuoffset(&die)
      guard let start = Int(exactly: start), let found = UnitHeader(info, at: start) else { return nil }
      unitHeader = found
      abbreviationBytes = sections.bytes(".debug_abbrev")
    }
    header = unitHeader.start
    entries = unitHeader.firstEntry..<unitHeader.end
    format = unitHeader.format
    // Those of another file are not kept, which may be closed before this one.
    let table =
      split == nil
      ? lastAbbreviations.table(abbreviationBytes, at: unitHeader.abbreviationOffset, format: format)
      : AbbreviationTable(abbreviationBytes, at: unitHeader.abbreviationOffset, format: format)
    guard let abbreviations = table else { return nil }
    self.abbreviations = abbreviations

    // These stand in the half that the program has, be there another one or not.
    var lists = RangeLists(format: unitHeader.format)
    var low: Dwarf_Addr = 0
    if dwarf_lowpc(&die, &low) == 0 { lists.baseAddress = low }
    lists.addresses = sections.bytes(".debug_addr")
    lists.addressBase =
      DebugInformationEntry.number(&die, DW_AT_addr_base) ?? DebugInformationEntry.number(&die, DW_AT_GNU_addr_base)
      ?? 0
    if let split, lists.format.version >= 5 {
      lists.ranges = split.sections.rangeLists
      // Behind the header, which has a length, four small numbers and the count of offsets.
      lists.rangesBase = lists.format.is64Bit ? 20 : 12
    } else if lists.format.version >= 5 {
      lists.ranges = sections.bytes(".debug_rnglists")
      lists.rangesBase = DebugInformationEntry.number(&die, DW_AT_rnglists_base) ?? 0
    } else {
      lists.ranges = sections.bytes(".debug_ranges")
      lists.rangesBase = split == nil ? 0 : DebugInformationEntry.number(&die, DW_AT_GNU_ranges_base) ?? 0
    }
    rangeLists = lists
  }

  /// The names of the function whose entry is at an offset in `info`.
  func names(at offset: Int) -> UnitParts.Names {
    if let split { return split.names(at: offset) }
    var names = UnitParts.Names()
    var die = Dwarf_Die()
    guard dwarf_offdie(dwarf, Dwarf_Off(offset), &die) != nil else { return names }
    names.linkageName = DebugInformationEntry.linkageName(&die)
    if names.linkageName == nil { names.name = DebugInformationEntry.name(&die) }
    names.declarationLine = DebugInformationEntry.declarationLine(&die)
    return names
  }

  /// As `names(at:)`, but the bytes of the file; not for split units.
  func nameBytes(at offset: Int) -> UnitParts.NameBytes {
    var names = UnitParts.NameBytes(name: nil, isLinkageName: false, declarationLine: nil)
    var die = Dwarf_Die()
    guard dwarf_offdie(dwarf, Dwarf_Off(offset), &die) != nil else { return names }
    names.name = DebugInformationEntry.linkageNameBytes(&die)
    names.isLinkageName = names.name != nil
    if names.name == nil { names.name = DebugInformationEntry.nameBytes(&die) }
    names.declarationLine = DebugInformationEntry.declarationLine(&die)
    return names
  }
}

extension SplitUnitSearch.Skeleton {
  /// - Returns: nil where the unit does not name its other half.
  init?(_ unit: UnitMap.Unit) {
    var die = unit.die
    var id: UInt64 = 0
    if unit.version < 5 {
      guard let found = DebugInformationEntry.bits(&die, DW_AT_GNU_dwo_id) else { return nil }
      id = found
    } else if dwarf_cu_info(die.cu, nil, nil, nil, nil, &id, nil, nil) != 0 {
      return nil
    }
    guard
      let name = DebugInformationEntry.bytes(&die, DW_AT_dwo_name)
        ?? DebugInformationEntry.bytes(&die, DW_AT_GNU_dwo_name), !name.isEmpty
    else { return nil }
    self.init(
      id: id, name: FilePath(bytes: name),
      compilationDirectory: DebugInformationEntry.bytes(&die, DW_AT_comp_dir).map { FilePath(bytes: $0) })
  }
}
