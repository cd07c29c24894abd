internal import CLibdw
private import Glibc

/// The bytes of one unit and what they are relative to, found through libdw and then read directly.
///
/// libdw's own walk (`dwarf_child`, `dwarf_siblingof`) reads an entry with children again to find what follows it, and
/// looks each shape up in a hash table: 150 ns an entry, where a straight scan takes a tenth of it.
struct UnitContents {
  let dwarf: OpaquePointer
  /// The entry of the unit itself; of the split unit where there is one.
  let die: Dwarf_Die
  let info: UnsafeRawBufferPointer
  /// Offset in `info` of the unit's header, which references within the unit count from.
  let header: Int
  /// Offset in `info` of the unit's own entry, and of its end.
  let entries: Range<Int>
  let format: UnitFormat
  let abbreviations: AbbreviationTable
  /// In a `.dwo` file; addresses and ranges are then left to libdw, which knows both files.
  let isSplit: Bool
  /// What offsets in a range list are relative to.
  let baseAddress: UInt64
  let addresses: UnsafeRawBufferPointer
  let addressBase: Int
  let ranges: UnsafeRawBufferPointer
  let rangesBase: Int

  /// - Returns: nil where the unit is damaged or of an unknown version.
  init?(_ unit: UnitMap.Unit, sections fileSections: ELFSections) {
    var die = unit.die
    if unit.isSkeleton {
      var split = Dwarf_Die()
      // Opens the `.dwo` file. Only reached for a unit that has addresses, and so never for a clang module.
      guard dwarf_cu_info(unit.handle, nil, nil, nil, &split, nil, nil, nil) == 0, split.addr != nil else { return nil }
      die = split
      isSplit = true
    } else {
      isSplit = false
    }
    guard let cu = die.cu, let dwarf = dwarf_cu_getdwarf(cu), let elf = dwarf_getelf(dwarf),
      let sections = isSplit ? ELFSections(elf) : fileSections
    else { return nil }
    self.dwarf = dwarf
    self.die = die
    info = isSplit ? sections.bytes(".debug_info.dwo") : sections.bytes(".debug_info", ".zdebug_info")
    let abbreviationBytes =
      isSplit ? sections.bytes(".debug_abbrev.dwo") : sections.bytes(".debug_abbrev", ".zdebug_abbrev")
    let entry = dwarf_dieoffset(&die)
    let header = entry &- dwarf_cuoffset(&die)
    guard let firstEntry = Int(exactly: entry), let start = Int(exactly: header), start < firstEntry else { return nil }
    self.header = start

    var cursor = ByteCursor(info, at: start)
    var length = UInt64(cursor.u32())
    let is64Bit = length == 0xffff_ffff
    if is64Bit { length = cursor.u64() }
    let contents = cursor.offset
    let end = min(info.count, contents.addingReportingOverflow(Int(clamping: length)).partialValue)
    let version = Int(cursor.u16())
    var abbreviationOffset: UInt64
    let addressSize: UInt8
    if version >= 5 {
      _ = cursor.u8()
      addressSize = cursor.u8()
      abbreviationOffset = cursor.sectionOffset(is64Bit: is64Bit)
    } else {
      abbreviationOffset = cursor.sectionOffset(is64Bit: is64Bit)
      addressSize = cursor.u8()
    }
    guard !cursor.failed, (2...5).contains(version), addressSize == 8, firstEntry < end else { return nil }
    entries = firstEntry..<end
    format = UnitFormat(version: version, is64Bit: is64Bit, addressSize: 8)
    guard
      let abbreviations = AbbreviationTable(
        abbreviationBytes, at: Int(clamping: abbreviationOffset), format: format)
    else { return nil }
    self.abbreviations = abbreviations

    var low: Dwarf_Addr = 0
    baseAddress = dwarf_lowpc(&die, &low) == 0 ? low : 0
    addresses = sections.bytes(".debug_addr", ".zdebug_addr")
    addressBase =
      DebugInformationEntry.number(&die, DW_AT_addr_base) ?? DebugInformationEntry.number(&die, DW_AT_GNU_addr_base)
      ?? 0
    ranges =
      version >= 5
      ? sections.bytes(".debug_rnglists", ".zdebug_rnglists") : sections.bytes(".debug_ranges", ".zdebug_ranges")
    rangesBase = DebugInformationEntry.number(&die, DW_AT_rnglists_base) ?? 0
  }

  /// The entry at an offset in `info`, for libdw.
  func entry(at offset: Int) -> Dwarf_Die? {
    var die = Dwarf_Die()
    guard dwarf_offdie(dwarf, Dwarf_Off(offset), &die) != nil else { return nil }
    return die
  }

  /// The address with this number in the unit's part of `.debug_addr`.
  @inline(__always)
  func address(at index: UInt64) -> UInt64? {
    guard index < UInt64(addresses.count) else { return nil }
    var cursor = ByteCursor(addresses, at: addressBase &+ Int(index) &* 8)
    let value = cursor.u64()
    return cursor.failed ? nil : value
  }
}
