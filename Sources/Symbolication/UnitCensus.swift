internal import CLibdw

/// How many units a `.debug_info` has, of which versions and languages.
///
/// Read from the units' headers and first entries alone, by bytes and not through libdw: a look at what a file holds is for
/// files of unknown making, many at a time, and shall open no other file that a unit names.
struct UnitCensus {
  private(set) var count = 0
  private(set) var versions: Set<Int> = []
  /// `DW_LANG_…`
  private(set) var languages: Set<UInt64> = []
  /// Units whose functions stand in a `.dwo` file.
  private(set) var splitCount = 0
  /// Where the section stops making sense; nil where it does not.
  private(set) var damage: String?

  /// Where that gives up, units are counted all the same, and their languages not looked for.
  private var entries: UnitEntryReader
  private let strings: UnsafeRawBufferPointer

  /// - Parameter sections: decompressed.
  init(_ sections: ELFSections) {
    entries = UnitEntryReader(sections.bytes(".debug_abbrev", ".zdebug_abbrev"))
    strings = sections.bytes(".debug_str", ".zdebug_str")
    let information = sections.bytes(".debug_info", ".zdebug_info")
    var offset = 0
    while offset < information.count {
      guard let next = readUnit(information, at: offset) else {
        damage = "the unit at offset \(offset) of .debug_info is damaged"
        return
      }
      offset = next
    }
  }

  /// - Returns: where the next unit begins; nil where this one is none.
  private mutating func readUnit(_ information: UnsafeRawBufferPointer, at start: Int) -> Int? {
    var cursor = ByteCursor(information, at: start)
    var length = UInt64(cursor.u32())
    let is64Bit = length == 0xffff_ffff
    if is64Bit { length = cursor.u64() }
    guard !cursor.failed, is64Bit || length < 0xffff_fff0, length <= UInt64(information.count - cursor.offset) else {
      return nil
    }
    let end = cursor.offset + Int(clamping: length)
    cursor = ByteCursor(information, at: cursor.offset, end: end)
    let version = Int(cursor.u16())
    guard 2...5 ~= version else { return nil }
    var type = UInt8(DW_UT_compile)
    var addressSize = 0
    if version == 5 {
      type = cursor.u8()
      addressSize = Int(cursor.u8())
    }
    let shapes = cursor.sectionOffset(is64Bit: is64Bit)
    if version < 5 { addressSize = Int(cursor.u8()) }
    switch Int(type) {
    case DW_UT_skeleton, DW_UT_split_compile: cursor.skip(8)
    case DW_UT_type, DW_UT_split_type: cursor.skip(is64Bit ? 16 : 12)
    default: break
    }
    guard !cursor.failed else { return nil }
    versions.insert(version)
    // Parts that other units import are no units of code.
    guard ![DW_UT_type, DW_UT_split_type, DW_UT_partial].contains(Int(type)) else { return end }
    count += 1
    readFirstEntry(
      &cursor, shapes: shapes,
      format: UnitFormat(version: version, is64Bit: is64Bit, addressSize: addressSize),
      isSplit: Int(type) == DW_UT_skeleton)
    return end
  }

  /// Takes the language from the unit's own entry.
  private mutating func readFirstEntry(
    _ cursor: inout ByteCursor, shapes: UInt64, format: UnitFormat, isSplit: Bool
  ) {
    var isSplit = isSplit
    let strings = strings
    var language: UInt64?
    _ = entries.read(&cursor, shapes: Int(clamping: shapes), format: format) { attribute, cursor in
      switch attribute.name {
      case DW_AT_language:
        language = attribute.number(&cursor, format: format)
        return language != nil
      case DW_AT_dwo_name, DW_AT_GNU_dwo_name:
        // swiftc's units for imported clang modules look like split ones whose other half is the compiler's own cache.
        var copy = cursor
        isSplit = !Self.string(&copy, attribute.form, strings, is64Bit: format.is64Bit).hasSuffix(".pcm")
        return false
      default: return false
      }
    }
    if let language { languages.insert(language) }
    if isSplit { splitCount += 1 }
  }

  /// Empty for the indirect forms of DWARF 5, which need a table that the other attributes name.
  private static func string(
    _ cursor: inout ByteCursor, _ form: UInt32, _ strings: UnsafeRawBufferPointer, is64Bit: Bool
  ) -> String {
    switch Int(form) {
    case DW_FORM_string: cursor.bytes.string(at: cursor.offset) ?? ""
    case DW_FORM_strp: strings.string(at: Int(clamping: cursor.sectionOffset(is64Bit: is64Bit))) ?? ""
    default: ""
    }
  }

  /// What people call a language; nil for one without a name here.
  static func name(ofLanguage code: UInt64) -> String? {
    switch Int(clamping: code) {
    case DW_LANG_Swift: "Swift"
    case DW_LANG_C, DW_LANG_C89, DW_LANG_C99, DW_LANG_C11, 0x2c: "C"
    // The last two are C++17 and C++20, which the header of this libdw does not know.
    case DW_LANG_C_plus_plus, DW_LANG_C_plus_plus_03, DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14, 0x2a, 0x2b:
      "C++"
    case DW_LANG_ObjC: "Objective-C"
    case DW_LANG_ObjC_plus_plus: "Objective-C++"
    case DW_LANG_Rust: "Rust"
    case DW_LANG_Go: "Go"
    case DW_LANG_Mips_Assembler: "assembler"
    default: nil
    }
  }
}
