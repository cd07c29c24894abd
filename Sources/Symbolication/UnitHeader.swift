internal import CLibdw
private import Glibc

/// The header of a unit in `.debug_info`, DWARF 2 to 5.
struct UnitHeader {
  /// Offset in the section of the header, which references within the unit count from.
  let start: Int
  /// Offset of the unit's own entry.
  let firstEntry: Int
  /// Offset of what follows the unit.
  let end: Int
  let format: UnitFormat
  let abbreviationOffset: Int
  /// `DW_UT_…`; before DWARF 5 that of an ordinary unit.
  let type: UInt8
  /// Of a split unit or its skeleton, in DWARF 5; before that it is an attribute.
  let splitID: UInt64?

  /// - Returns: nil where the header is cut off, of an unknown version or for other than 64-bit addresses.
  init?(_ info: UnsafeRawBufferPointer, at start: Int) {
    var cursor = ByteCursor(info, at: start)
    var length = UInt64(cursor.u32())
    let is64Bit = length == 0xffff_ffff
    if is64Bit { length = cursor.u64() }
    self.start = start
    end = min(info.count, cursor.offset.addingReportingOverflow(Int(clamping: length)).partialValue)
    let version = Int(cursor.u16())
    let abbreviations: UInt64
    let addressSize: UInt8
    var id: UInt64?
    if version >= 5 {
      type = cursor.u8()
      addressSize = cursor.u8()
      abbreviations = cursor.sectionOffset(is64Bit: is64Bit)
      switch Int(type) {
      case DW_UT_skeleton, DW_UT_split_compile: id = cursor.u64()
      case DW_UT_type, DW_UT_split_type:
        // The type's signature, and where its entry is.
        _ = cursor.u64()
        _ = cursor.sectionOffset(is64Bit: is64Bit)
      default: break
      }
    } else {
      type = UInt8(DW_UT_compile)
      abbreviations = cursor.sectionOffset(is64Bit: is64Bit)
      addressSize = cursor.u8()
    }
    guard !cursor.failed, (2...5).contains(version), addressSize == 8, cursor.offset < end,
      let offset = Int(exactly: abbreviations)
    else { return nil }
    splitID = id
    firstEntry = cursor.offset
    abbreviationOffset = offset
    format = UnitFormat(version: version, is64Bit: is64Bit, addressSize: 8)
  }

  /// Where the unit that follows one with a header that cannot be read would begin; nil where that cannot be told.
  static func end(_ info: UnsafeRawBufferPointer, at start: Int) -> Int? {
    var cursor = ByteCursor(info, at: start)
    var length = UInt64(cursor.u32())
    if length == 0xffff_ffff { length = cursor.u64() }
    cursor.skip(length)
    return cursor.failed || length == 0 ? nil : cursor.offset
  }
}
