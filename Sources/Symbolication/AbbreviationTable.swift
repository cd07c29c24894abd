internal import CLibdw
private import Glibc

/// The shapes that the entries of one unit have, prepared for a scan that skips most of them.
struct AbbreviationTable {
  /// How to get past one or more attributes that are not asked for.
  enum Skip {
    case bytes(Int)
    case leb128
    case string
    case block1, block2, block4, blockLEB128
    /// The form itself stands in the entry (`DW_FORM_indirect`).
    case indirect
  }

  /// What an entry of a function is read for, and how to get past the rest.
  enum FunctionAttribute {
    case skip(Skip)
    case lowPC(form: UInt32)
    /// With the value of `DW_FORM_implicit_const`, which stands in the abbreviation.
    case highPC(form: UInt32, constant: Int64)
    case ranges(form: UInt32)
    /// Of the function that this is a copy of.
    case origin(form: UInt32)
    /// Where it was inlined.
    case callFile(form: UInt32, constant: Int64)
    case callLine(form: UInt32, constant: Int64)
    case callColumn(form: UInt32, constant: Int64)
  }

  struct Abbreviation {
    var tag: UInt32
    var hasChildren: Bool
    /// For entries of functions: what to read, in `functionAttributes`. Empty for all others.
    var functionAttributes: Range<Int>
    /// For all others: how to skip it.
    var skips: Range<Int>
    /// For entries whose size is the same each time: that size. -1 otherwise.
    var fixedSize: Int
  }

  private(set) var functionAttributes: [FunctionAttribute] = []
  private(set) var skips: [Skip] = []
  private var list: [Abbreviation] = []
  /// Index in `list` by code, for the codes 1, 2, … that compilers use; 0 for none.
  private var dense: [Int32] = []
  private var sparse: [UInt64: Int32] = [:]

  static func isFunction(_ tag: UInt32) -> Bool {
    tag == UInt32(DW_TAG_subprogram) || tag == UInt32(DW_TAG_inlined_subroutine)
  }

  static func isAddress(_ form: UInt32) -> Bool {
    switch Int(form) {
    case DW_FORM_addr, DW_FORM_addrx, DW_FORM_addrx1, DW_FORM_addrx2, DW_FORM_addrx3, DW_FORM_addrx4,
      DW_FORM_GNU_addr_index:
      true
    default: false
    }
  }

  /// - Returns: nil where a shape has a form that is not known, so that nothing behind it can be found.
  init?(_ bytes: UnsafeRawBufferPointer, at offset: Int, format: UnitFormat) {
    var cursor = ByteCursor(bytes, at: offset)
    while true {
      let code = cursor.uleb()
      if code == 0 || cursor.failed { break }
      let tag = UInt32(truncatingIfNeeded: cursor.uleb())
      let hasChildren = cursor.u8() != 0
      let isFunction = Self.isFunction(tag)
      let (firstAttribute, firstSkip) = (functionAttributes.count, skips.count)
      while true {
        let name = UInt32(truncatingIfNeeded: cursor.uleb())
        let form = UInt32(truncatingIfNeeded: cursor.uleb())
        guard !cursor.failed else { return nil }
        let constant = form == UInt32(DW_FORM_implicit_const) ? cursor.sleb() : 0
        if name == 0, form == 0 { break }
        guard let skip = Self.skip(form, format: format) else { return nil }
        if isFunction {
          functionAttributes.append(Self.functionAttribute(name, form: form, constant: constant, skip: skip))
        } else if case .bytes(let count) = skip, skips.count > firstSkip, case .bytes(let earlier)? = skips.last {
          skips[skips.count - 1] = .bytes(earlier &+ count)
        } else {
          skips.append(skip)
        }
      }
      var fixedSize = -1
      if !isFunction {
        if skips.count == firstSkip { fixedSize = 0 }
        if skips.count == firstSkip + 1, case .bytes(let count)? = skips.last { fixedSize = count }
      }
      add(
        Abbreviation(
          tag: tag, hasChildren: hasChildren, functionAttributes: firstAttribute..<functionAttributes.count,
          skips: firstSkip..<skips.count, fixedSize: fixedSize), code: code)
    }
  }

  private static func functionAttribute(
    _ name: UInt32, form: UInt32, constant: Int64, skip: Skip
  ) -> FunctionAttribute {
    switch Int(name) {
    case DW_AT_low_pc: .lowPC(form: form)
    case DW_AT_high_pc: .highPC(form: form, constant: constant)
    case DW_AT_ranges: .ranges(form: form)
    case DW_AT_abstract_origin: .origin(form: form)
    case DW_AT_call_file: .callFile(form: form, constant: constant)
    case DW_AT_call_line: .callLine(form: form, constant: constant)
    case DW_AT_call_column: .callColumn(form: form, constant: constant)
    default: .skip(skip)
    }
  }

  private mutating func add(_ abbreviation: Abbreviation, code: UInt64) {
    list.append(abbreviation)
    let index = Int32(clamping: list.count)
    if code == UInt64(dense.count) + 1 { dense.append(index) } else { sparse[code] = index }
  }

  @inline(__always)
  subscript(code: UInt64) -> Abbreviation? {
    if code &- 1 < UInt64(dense.count) { return list[Int(dense[Int(code &- 1)]) &- 1] }
    return sparse[code].map { list[Int($0) - 1] }
  }

  /// How to skip a value of the form; nil for a form that is not known.
  static func skip(_ form: UInt32, format: UnitFormat) -> Skip? {
    switch Int(form) {
    case DW_FORM_flag_present, DW_FORM_implicit_const: .bytes(0)
    case DW_FORM_data1, DW_FORM_ref1, DW_FORM_flag, DW_FORM_strx1, DW_FORM_addrx1: .bytes(1)
    case DW_FORM_data2, DW_FORM_ref2, DW_FORM_strx2, DW_FORM_addrx2: .bytes(2)
    case DW_FORM_strx3, DW_FORM_addrx3: .bytes(3)
    case DW_FORM_data4, DW_FORM_ref4, DW_FORM_strx4, DW_FORM_addrx4, DW_FORM_ref_sup4: .bytes(4)
    case DW_FORM_data8, DW_FORM_ref8, DW_FORM_ref_sig8, DW_FORM_ref_sup8: .bytes(8)
    case DW_FORM_data16: .bytes(16)
    case DW_FORM_addr: .bytes(format.addressSize)
    // DWARF 2 gave the reference the size of an address.
    case DW_FORM_ref_addr: .bytes(format.version <= 2 ? format.addressSize : format.offsetSize)
    case DW_FORM_strp, DW_FORM_line_strp, DW_FORM_sec_offset, DW_FORM_strp_sup, DW_FORM_GNU_ref_alt,
      DW_FORM_GNU_strp_alt:
      .bytes(format.offsetSize)
    case DW_FORM_sdata, DW_FORM_udata, DW_FORM_ref_udata, DW_FORM_strx, DW_FORM_addrx, DW_FORM_loclistx,
      DW_FORM_rnglistx, DW_FORM_GNU_addr_index, DW_FORM_GNU_str_index:
      .leb128
    case DW_FORM_string: .string
    case DW_FORM_block1: .block1
    case DW_FORM_block2: .block2
    case DW_FORM_block4: .block4
    case DW_FORM_block, DW_FORM_exprloc: .blockLEB128
    case DW_FORM_indirect: .indirect
    default: nil
    }
  }
}

/// The table that was made last, as LLVM writes one for all units of an object file, and units are read in their order.
final class LastAbbreviationTable {
  private var bytes: UnsafeRawPointer?
  private var offset = 0
  private var format: UnitFormat?
  private var table: AbbreviationTable?

  /// As `AbbreviationTable.init`.
  ///
  /// - Parameter bytes: of a file that lives as long as this.
  func table(_ bytes: UnsafeRawBufferPointer, at offset: Int, format: UnitFormat) -> AbbreviationTable? {
    if let table, self.bytes == bytes.baseAddress, self.offset == offset, self.format == format { return table }
    table = AbbreviationTable(bytes, at: offset, format: format)
    (self.bytes, self.offset, self.format) = (bytes.baseAddress, offset, format)
    return table
  }
}

/// The sizes that a unit's header sets.
struct UnitFormat: Equatable {
  var version: Int
  var is64Bit: Bool
  var addressSize: Int

  var offsetSize: Int { is64Bit ? 8 : 4 }
}

extension ByteCursor {
  /// Moves past one value.
  @inline(__always)
  mutating func skip(_ what: AbbreviationTable.Skip, format: UnitFormat) {
    switch what {
    case .bytes(let count): skip(count)
    case .leb128: _ = uleb()
    case .string: skipString()
    case .block1: skip(Int(u8()))
    case .block2: skip(Int(u16()))
    case .block4: skip(Int(u32()))
    case .blockLEB128: skip(uleb())
    case .indirect: skipIndirect(format: format)
    }
  }

  private mutating func skipIndirect(format: UnitFormat) {
    let form = UInt32(truncatingIfNeeded: uleb())
    // A form that again says "the form follows" is not allowed, and would be a way to make us recurse.
    guard form != UInt32(DW_FORM_indirect), form != UInt32(DW_FORM_implicit_const),
      let inner = AbbreviationTable.skip(form, format: format)
    else { return skip(-1) }
    skip(inner, format: format)
  }
}
