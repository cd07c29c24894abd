internal import CLibdw
private import Glibc

/// What is asked of a single debug information entry (DIE), through libdw.
enum DebugInformationEntry {
  /// Calls `body` for each address range of the entry, whether it has one (`DW_AT_low_pc`) or a list (`DW_AT_ranges`).
  static func forEachRange(of die: inout Dwarf_Die, _ body: (AddressRange) -> Void) {
    var offset = 0
    var base: Dwarf_Addr = 0
    var low: Dwarf_Addr = 0
    var high: Dwarf_Addr = 0
    while true {
      offset = dwarf_ranges(&die, offset, &base, &low, &high)
      guard offset > 0 else { return }
      body(AddressRange(low: low, high: high))
    }
  }

  /// The name by which the linker knows the function, which an inlined or out-of-line copy has from the entry that it
  /// refers to.
  static func linkageName(_ die: inout Dwarf_Die) -> String? {
    integrated(&die, DW_AT_linkage_name) ?? integrated(&die, DW_AT_MIPS_linkage_name)
  }

  static func name(_ die: inout Dwarf_Die) -> String? { integrated(&die, DW_AT_name) }

  /// `linkageName`, as the file has it.
  static func linkageNameBytes(_ die: inout Dwarf_Die) -> UnsafePointer<CChar>? {
    integratedBytes(&die, DW_AT_linkage_name) ?? integratedBytes(&die, DW_AT_MIPS_linkage_name)
  }

  /// `name`, as the file has it.
  static func nameBytes(_ die: inout Dwarf_Die) -> UnsafePointer<CChar>? { integratedBytes(&die, DW_AT_name) }

  static func declarationLine(_ die: inout Dwarf_Die) -> Int? {
    var attribute = Dwarf_Attribute()
    guard dwarf_attr_integrate(&die, UInt32(DW_AT_decl_line), &attribute) != nil else { return nil }
    return number(&attribute)
  }

  /// A number of 64 bits that stands for no amount.
  static func bits(_ die: inout Dwarf_Die, _ code: Int) -> UInt64? {
    var attribute = Dwarf_Attribute()
    var value: Dwarf_Word = 0
    guard dwarf_attr(&die, UInt32(code), &attribute) != nil, dwarf_formudata(&attribute, &value) == 0 else { return nil }
    return value
  }

  static func number(_ die: inout Dwarf_Die, _ code: Int) -> Int? {
    var attribute = Dwarf_Attribute()
    guard dwarf_attr(&die, UInt32(code), &attribute) != nil else { return nil }
    return number(&attribute)
  }

  static func string(_ die: inout Dwarf_Die, _ code: Int) -> String? {
    var attribute = Dwarf_Attribute()
    guard dwarf_attr(&die, UInt32(code), &attribute) != nil else { return nil }
    return dwarf_formstring(&attribute).map { String(cString: $0) }
  }

  /// A string that names a file, which need not be text.
  static func bytes(_ die: inout Dwarf_Die, _ code: Int) -> [UInt8]? {
    var attribute = Dwarf_Attribute()
    guard dwarf_attr(&die, UInt32(code), &attribute) != nil, let text = dwarf_formstring(&attribute) else { return nil }
    return Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
  }

  private static func number(_ attribute: inout Dwarf_Attribute) -> Int? {
    var value: Dwarf_Word = 0
    return dwarf_formudata(&attribute, &value) == 0 ? Int(exactly: value) : nil
  }

  private static func integrated(_ die: inout Dwarf_Die, _ code: Int) -> String? {
    integratedBytes(&die, code).map { String(cString: $0) }
  }

  /// In the file's mapping, as long as it is open.
  private static func integratedBytes(_ die: inout Dwarf_Die, _ code: Int) -> UnsafePointer<CChar>? {
    var attribute = Dwarf_Attribute()
    guard dwarf_attr_integrate(&die, UInt32(code), &attribute) != nil else { return nil }
    return dwarf_formstring(&attribute)
  }
}
