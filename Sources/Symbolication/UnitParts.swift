internal import CLibdw

/// A unit and what belongs to it: its entries, its line program, its language.
struct UnitParts {
  let unit: UnitMap.Unit
  /// Nil where the unit is damaged; its lines may still be there.
  let contents: UnitContents?
  let program: LineProgram?
  let code: CodeRanges
  let isCPlusPlus: Bool

  /// A function's names, which are the same for all addresses in it.
  struct Names {
    var linkageName: String?
    /// Where there is no linkage name.
    var name: String?
    var declarationLine: Int?
  }

  init(
    _ unit: UnitMap.Unit, sections: ELFSections, splitUnits: SplitUnitSearch,
    lastAbbreviations: LastAbbreviationTable, strings: LineProgram.Strings, code: CodeRanges
  ) {
    self.unit = unit
    self.code = code
    let contents = UnitContents(
      unit, sections: sections, splitUnits: splitUnits, lastAbbreviations: lastAbbreviations)
    self.contents = contents
    var die = unit.die
    program = DebugInformationEntry.number(&die, DW_AT_stmt_list).flatMap { LineProgram(strings, at: $0) }
    // Not `dwarf_srclang`, which looks for the other half of a split unit to find it there.
    let language = contents?.split?.language ?? DebugInformationEntry.number(&die, DW_AT_language) ?? 0
    switch language {
    // The last two are C++17 and C++20, which the header of this libdw does not know.
    case DW_LANG_C_plus_plus, DW_LANG_C_plus_plus_03, DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14, 0x2a, 0x2b:
      isCPlusPlus = true
    default: isCPlusPlus = false
    }
  }

  /// The names of the function whose entry is at an offset.
  func names(at offset: Int) -> Names { contents?.names(at: offset) ?? Names() }

  /// The same as bytes of the file, for those who copy them.
  struct NameBytes {
    /// The linkage name, or the name where there is none.
    var name: UnsafePointer<CChar>?
    var isLinkageName: Bool
    var declarationLine: Int?
  }

  /// - Returns: nil for the entry of a split unit, whose names do not come from libdw.
  func nameBytes(at offset: Int) -> NameBytes? {
    guard let contents, contents.split == nil else { return nil }
    return contents.nameBytes(at: offset)
  }
}
