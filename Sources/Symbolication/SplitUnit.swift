internal import CLibdw

/// The half of a compilation unit that the compiler put into a file of its own (split DWARF): its entries and their names.
///
/// Read here and not by libdw, which has no way to be given the file: it opens whatever lies at the path in the unit, does
/// not know packages (`.dwp`, before 0.191), and looks nowhere else.
struct SplitUnit {
  /// The unit's parts of the sections, as a package's index or the whole file has them.
  struct Sections {
    var info: UnsafeRawBufferPointer
    var abbreviations: UnsafeRawBufferPointer
    var lines: UnsafeRawBufferPointer
    var stringOffsets: UnsafeRawBufferPointer
    var rangeLists: UnsafeRawBufferPointer
    var strings: UnsafeRawBufferPointer
  }

  private struct Shape {
    var attributes: [(name: UInt32, form: UInt32, constant: Int64)]
  }

  private enum Value {
    case number(UInt64)
    case text(String?)
    case reference(Int)
  }

  /// What an entry says of its function, or refers to.
  private struct Entry {
    var linkageName: String?
    var name: String?
    var declarationLine: Int?
    var origin: Int?
    var specification: Int?
  }

  let sections: Sections
  let header: UnitHeader
  /// The unit's id, which its skeleton has too.
  let id: UInt64
  /// `DW_LANG_…`.
  let language: Int?
  private let shapes: [UInt64: Shape]
  private let stringOffsetsBase: Int
  private let lineOffset: Int
  /// The file that the bytes belong to.
  private let owner: SplitFile

  /// - Returns: nil where no unit that can be read is at `offset`, or none with an id.
  init?(_ sections: Sections, at offset: Int, of owner: SplitFile) {
    guard let header = UnitHeader(sections.info, at: offset),
      header.format.version < 5 || Int(header.type) == DW_UT_split_compile
    else { return nil }
    self.sections = sections
    self.header = header
    self.owner = owner
    shapes = Self.shapes(sections.abbreviations, at: header.abbreviationOffset)
    // In DWARF 5 each unit's part begins with a header of length, version and padding.
    stringOffsetsBase = header.format.version < 5 ? 0 : header.format.is64Bit ? 16 : 8
    var id = header.splitID
    var language: Int?
    var lineOffset = 0
    var reader = Reader(
      sections: sections, header: header, shapes: shapes, stringOffsetsBase: stringOffsetsBase)
    reader.read(at: header.firstEntry) { name, value in
      guard case .number(let number) = value else { return }
      switch Int(name) {
      case DW_AT_GNU_dwo_id: id = id ?? number
      case DW_AT_language: language = Int(clamping: number)
      case DW_AT_stmt_list: lineOffset = Int(clamping: number)
      default: break
      }
    }
    guard let id else { return nil }
    self.id = id
    self.language = language
    self.lineOffset = lineOffset
  }

  /// The table of files that `DW_AT_call_file` counts in; nil where the unit has none of its own.
  var fileTable: LineProgram? {
    guard !sections.lines.isEmpty else { return nil }
    return LineProgram(
      LineProgram.Strings(
        line: sections.lines, lineStrings: UnsafeRawBufferPointer(start: nil, count: 0), strings: sections.strings),
      at: lineOffset)
  }

  /// The names of the function whose entry is at an offset, those included that it has from the entries it refers to.
  func names(at offset: Int) -> UnitParts.Names {
    var names = UnitParts.Names()
    var plainName: String?
    var next: Int? = offset
    var reader = Reader(sections: sections, header: header, shapes: shapes, stringOffsetsBase: stringOffsetsBase)
    // An inlined copy refers to the function, that to its declaration. References in a circle end here.
    for _ in 0..<8 {
      guard let offset = next else { break }
      var entry = Entry()
      reader.read(at: offset) { name, value in
        switch (Int(name), value) {
        case (DW_AT_linkage_name, .text(let text)), (DW_AT_MIPS_linkage_name, .text(let text)):
          entry.linkageName = text
        case (DW_AT_name, .text(let text)): entry.name = text
        case (DW_AT_decl_line, .number(let line)): entry.declarationLine = Int(exactly: line)
        case (DW_AT_abstract_origin, .reference(let offset)): entry.origin = offset
        case (DW_AT_specification, .reference(let offset)): entry.specification = offset
        default: break
        }
      }
      names.linkageName = names.linkageName ?? entry.linkageName
      plainName = plainName ?? entry.name
      names.declarationLine = names.declarationLine ?? entry.declarationLine
      next = entry.origin ?? entry.specification
    }
    if names.linkageName == nil { names.name = plainName }
    return names
  }

  private static func shapes(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> [UInt64: Shape] {
    var shapes: [UInt64: Shape] = [:]
    var cursor = ByteCursor(bytes, at: offset)
    while true {
      let code = cursor.uleb()
      if code == 0 || cursor.failed { return shapes }
      _ = cursor.uleb()
      _ = cursor.u8()
      var shape = Shape(attributes: [])
      while true {
        let name = UInt32(truncatingIfNeeded: cursor.uleb())
        let form = UInt32(truncatingIfNeeded: cursor.uleb())
        guard !cursor.failed else { return shapes }
        let constant = form == UInt32(DW_FORM_implicit_const) ? cursor.sleb() : 0
        if name == 0, form == 0 { break }
        shape.attributes.append((name, form, constant))
      }
      if shapes[code] == nil { shapes[code] = shape }
    }
  }

  /// Reads the attributes of single entries.
  private struct Reader {
    let sections: Sections
    let header: UnitHeader
    let shapes: [UInt64: Shape]
    let stringOffsetsBase: Int

    /// Calls `body` for each attribute of the entry that is a number, a string or a reference within the section.
    mutating func read(at offset: Int, _ body: (UInt32, Value) -> Void) {
      guard offset >= header.firstEntry, offset < header.end else { return }
      var cursor = ByteCursor(sections.info, at: offset, end: header.end)
      guard let shape = shapes[cursor.uleb()] else { return }
      for attribute in shape.attributes {
        let value = value(&cursor, form: attribute.form, constant: attribute.constant)
        if cursor.failed { return }
        if let value { body(attribute.name, value) }
      }
    }

    private func value(_ cursor: inout ByteCursor, form: UInt32, constant: Int64) -> Value? {
      let format = header.format
      switch Int(form) {
      case DW_FORM_data1: return .number(UInt64(cursor.u8()))
      case DW_FORM_data2: return .number(UInt64(cursor.u16()))
      case DW_FORM_data4: return .number(UInt64(cursor.u32()))
      case DW_FORM_data8: return .number(cursor.u64())
      case DW_FORM_udata: return .number(cursor.uleb())
      case DW_FORM_sdata: return .number(UInt64(bitPattern: cursor.sleb()))
      case DW_FORM_sec_offset: return .number(cursor.sectionOffset(is64Bit: format.is64Bit))
      case DW_FORM_implicit_const: return .number(UInt64(bitPattern: constant))
      case DW_FORM_string:
        let start = cursor.skipString()
        return .text(cursor.failed ? nil : sections.info.string(at: start))
      case DW_FORM_strp:
        return .text(sections.strings.string(at: Int(clamping: cursor.sectionOffset(is64Bit: format.is64Bit))))
      case DW_FORM_strx, DW_FORM_GNU_str_index: return .text(string(cursor.uleb()))
      case DW_FORM_strx1: return .text(string(UInt64(cursor.u8())))
      case DW_FORM_strx2: return .text(string(UInt64(cursor.u16())))
      case DW_FORM_strx3: return .text(string(UInt64(cursor.u24())))
      case DW_FORM_strx4: return .text(string(UInt64(cursor.u32())))
      case DW_FORM_ref1: return reference(UInt64(cursor.u8()))
      case DW_FORM_ref2: return reference(UInt64(cursor.u16()))
      case DW_FORM_ref4: return reference(UInt64(cursor.u32()))
      case DW_FORM_ref8: return reference(cursor.u64())
      case DW_FORM_ref_udata: return reference(cursor.uleb())
      default:
        if let skip = AbbreviationTable.skip(form, format: format) {
          cursor.skip(skip, format: format)
        } else {
          cursor.skip(-1)
        }
        return nil
      }
    }

    private func reference(_ offset: UInt64) -> Value? {
      Int(exactly: offset).map { .reference(header.start &+ $0) }
    }

    private func string(_ index: UInt64) -> String? {
      let size = header.format.offsetSize
      guard index < UInt64(sections.stringOffsets.count / size) else { return nil }
      var cursor = ByteCursor(sections.stringOffsets, at: stringOffsetsBase &+ Int(index) &* size)
      let offset = cursor.sectionOffset(is64Bit: header.format.is64Bit)
      return cursor.failed ? nil : sections.strings.string(at: Int(clamping: offset))
    }
  }
}
