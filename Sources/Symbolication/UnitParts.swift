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

  init(_ unit: UnitMap.Unit, sections: ELFSections, strings: LineProgram.Strings, code: CodeRanges) {
    self.unit = unit
    self.code = code
    contents = UnitContents(unit, sections: sections)
    var die = unit.die
    program = DebugInformationEntry.number(&die, DW_AT_stmt_list).flatMap { LineProgram(strings, at: $0) }
    switch Int(dwarf_srclang(&die)) {
    // The last two are C++17 and C++20, which the header of this libdw does not know.
    case DW_LANG_C_plus_plus, DW_LANG_C_plus_plus_03, DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14, 0x2a, 0x2b:
      isCPlusPlus = true
    default: isCPlusPlus = false
    }
  }

  /// The names of the function whose entry is at an offset.
  func names(at offset: Int) -> Names {
    var names = Names()
    guard var die = contents?.entry(at: offset) else { return names }
    names.linkageName = DebugInformationEntry.linkageName(&die)
    if names.linkageName == nil { names.name = DebugInformationEntry.name(&die) }
    names.declarationLine = DebugInformationEntry.declarationLine(&die)
    return names
  }

  /// The same as bytes of the file, for those who copy them.
  struct NameBytes {
    /// The linkage name, or the name where there is none.
    var name: UnsafePointer<CChar>?
    var isLinkageName: Bool
    var declarationLine: Int?
  }

  func nameBytes(at offset: Int) -> NameBytes {
    var names = NameBytes(name: nil, isLinkageName: false, declarationLine: nil)
    guard var die = contents?.entry(at: offset) else { return names }
    names.name = DebugInformationEntry.linkageNameBytes(&die)
    names.isLinkageName = names.name != nil
    if names.name == nil { names.name = DebugInformationEntry.nameBytes(&die) }
    names.declarationLine = DebugInformationEntry.declarationLine(&die)
    return names
  }
}
