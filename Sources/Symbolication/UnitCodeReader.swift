internal import CLibdw

/// Finds out where the code of units lies, by what each says in its own entry.
///
/// Where an entry says it in a way that is not understood here, libdw is asked.
struct UnitCodeReader {
  private let dwarf: OpaquePointer
  private let information: UnsafeRawBufferPointer
  private let addresses: UnsafeRawBufferPointer
  private let pairs: UnsafeRawBufferPointer
  private let lists: UnsafeRawBufferPointer
  private var entries: UnitEntryReader

  private struct Claim {
    enum Address {
      case value(UInt64)
      /// In the unit's part of `.debug_addr`, of which the entry may say later where it begins.
      case index(UInt64)
    }

    var low: Address?
    var high: Address?
    /// The same as a distance.
    var length: UInt64?
    var list: (value: UInt64, isIndex: Bool)?
    var addressBase: UInt64 = 0
    var listBase: UInt64 = 0
    var hasSplitID = false
    var isStrange = false
  }

  /// - Parameter sections: decompressed.
  init(_ dwarf: OpaquePointer, _ sections: ELFSections) {
    self.dwarf = dwarf
    information = sections.bytes(".debug_info")
    addresses = sections.bytes(".debug_addr")
    pairs = sections.bytes(".debug_ranges")
    lists = sections.bytes(".debug_rnglists")
    entries = UnitEntryReader(sections.bytes(".debug_abbrev"))
  }

  /// - Parameter body: gets the ranges that the unit claims.
  /// - Returns: whether the unit's functions stand in another file.
  mutating func read(_ header: UnitHeader, _ body: (AddressRange) -> Void) -> Bool {
    var claim = Claim()
    var cursor = ByteCursor(information, at: header.firstEntry, end: header.end)
    let tag = entries.read(&cursor, shapes: header.abbreviationOffset, format: header.format) {
      Self.take($0, &$1, header.format, &claim)
    }
    guard let tag, !claim.isStrange else { return askLibdw(header, body) }
    // Before DWARF 5 their headers are like those of all others.
    if tag == DW_TAG_partial_unit || tag == DW_TAG_type_unit { return false }
    var rangeLists = RangeLists(format: header.format)
    rangeLists.addresses = addresses
    rangeLists.addressBase = Int(clamping: claim.addressBase)
    rangeLists.ranges = header.format.version >= 5 ? lists : pairs
    rangeLists.rangesBase = Int(clamping: claim.listBase)
    func value(_ address: Claim.Address?) -> UInt64? {
      switch address {
      case .value(let value)?: value
      case .index(let index)?: rangeLists.address(at: index)
      case nil: nil
      }
    }
    let low = value(claim.low)
    if let list = claim.list {
      rangeLists.baseAddress = low ?? 0
      rangeLists.forEachRange(list.value, isIndex: list.isIndex, body)
    } else if let low, let high = claim.length.map({ low &+ $0 }) ?? value(claim.high), low < high {
      body(AddressRange(low: low, high: high))
    }
    return Self.isSkeleton(header, hasSplitID: claim.hasSplitID)
  }

  /// Before DWARF 5 libdw takes one with entries of its own (`clang -fsplit-dwarf-inlining`) for a unit that is whole.
  private static func isSkeleton(_ header: UnitHeader, hasSplitID: Bool) -> Bool {
    Int(header.type) == DW_UT_skeleton || header.format.version < 5 && hasSplitID
  }

  /// - Returns: whether the cursor is behind the value.
  private static func take(
    _ attribute: UnitEntryReader.Attribute, _ cursor: inout ByteCursor, _ format: UnitFormat, _ claim: inout Claim
  ) -> Bool {
    func taken(_ isTaken: Bool) -> Bool {
      if !isTaken { claim.isStrange = true }
      return isTaken
    }
    func number() -> UInt64? { attribute.number(&cursor, format: format) }
    switch attribute.name {
    case DW_AT_low_pc:
      claim.low = address(attribute, &cursor)
      return taken(claim.low != nil)
    case DW_AT_high_pc where AbbreviationTable.isAddress(attribute.form):
      claim.high = address(attribute, &cursor)
      return taken(claim.high != nil)
    case DW_AT_high_pc:
      claim.length = number()
      return taken(claim.length != nil)
    case DW_AT_ranges where Int(attribute.form) == DW_FORM_rnglistx:
      claim.list = (cursor.uleb(), true)
      return true
    case DW_AT_ranges:
      claim.list = number().map { ($0, false) }
      return taken(claim.list != nil)
    case DW_AT_addr_base, DW_AT_GNU_addr_base:
      let base = number()
      claim.addressBase = base ?? 0
      return taken(base != nil)
    case DW_AT_rnglists_base:
      let base = number()
      claim.listBase = base ?? 0
      return taken(base != nil)
    case DW_AT_GNU_dwo_id:
      claim.hasSplitID = true
      return false
    // What offsets in a list are relative to where there is no `DW_AT_low_pc`.
    case DW_AT_entry_pc: return taken(false)
    default: return false
    }
  }

  private static func address(
    _ attribute: UnitEntryReader.Attribute, _ cursor: inout ByteCursor
  ) -> Claim.Address? {
    switch Int(attribute.form) {
    case DW_FORM_addr: .value(cursor.u64())
    case DW_FORM_addrx, DW_FORM_GNU_addr_index: .index(cursor.uleb())
    case DW_FORM_addrx1: .index(UInt64(cursor.u8()))
    case DW_FORM_addrx2: .index(UInt64(cursor.u16()))
    case DW_FORM_addrx3: .index(UInt64(cursor.u24()))
    case DW_FORM_addrx4: .index(UInt64(cursor.u32()))
    default: nil
    }
  }

  private func askLibdw(_ header: UnitHeader, _ body: (AddressRange) -> Void) -> Bool {
    var die = Dwarf_Die()
    guard dwarf_offdie(dwarf, Dwarf_Off(header.firstEntry), &die) != nil else { return false }
    let tag = Int(dwarf_tag(&die))
    // Asking a skeleton without addresses of its own for its ranges would make libdw look for the other file: swiftc writes
    // one for each clang module, with a `.pcm` of the compiler's cache as that file.
    guard tag != DW_TAG_partial_unit, tag != DW_TAG_type_unit,
      dwarf_hasattr(&die, UInt32(DW_AT_ranges)) != 0 || dwarf_hasattr(&die, UInt32(DW_AT_high_pc)) != 0
    else { return false }
    DebugInformationEntry.forEachRange(of: &die, body)
    return Self.isSkeleton(header, hasSplitID: dwarf_hasattr(&die, UInt32(DW_AT_GNU_dwo_id)) != 0)
  }
}
