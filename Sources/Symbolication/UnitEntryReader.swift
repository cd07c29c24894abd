internal import CLibdw

/// Reads the entries that units begin with, which say what a unit is and where its code lies, by bytes.
///
/// A Swift program has a unit for each clang module that each of its files imports: of the 1,400 units of `symbolicate`, 300
/// have code. libdw makes an object with tables of its own of each unit that it is asked for, and of all before it.
struct UnitEntryReader {
  private let abbreviations: UnsafeRawBufferPointer
  /// So many shapes and attributes are passed by in search of the units' own, all units together: a file can name one long
  /// list of shapes from millions of units.
  private var budget = 1 << 22

  /// The list of shapes that was looked through last: LLVM writes one for all units of an object file, in which each unit's
  /// own shape is another one.
  private var list = 0
  /// Where the attributes of its shapes begin, by code. Those before `unread`.
  private var shapes: [UInt64: Shape] = [:]
  private var unread = 0

  private struct Shape {
    var tag: Int
    var attributes: Int
  }

  /// One attribute; the cursor stands at its value.
  struct Attribute {
    /// 0 at the end of the shape.
    var name: Int
    var form: UInt32
    /// Of `DW_FORM_implicit_const`, whose value stands in the shape.
    var constant: Int64?
  }

  /// - Parameter abbreviations: `.debug_abbrev`.
  init(_ abbreviations: UnsafeRawBufferPointer) { self.abbreviations = abbreviations }

  /// Reads the attributes of an entry.
  ///
  /// - Parameters:
  ///   - cursor: at the entry.
  ///   - shapes: where the unit's part of `.debug_abbrev` begins.
  ///   - body: gets each attribute in turn; whether it has moved the cursor behind the value.
  /// - Returns: the entry's tag; nil where it cannot be read to its end.
  mutating func read(
    _ cursor: inout ByteCursor, shapes: Int, format: UnitFormat,
    _ body: (Attribute, inout ByteCursor) -> Bool
  ) -> Int? {
    guard let found = shape(cursor.uleb(), inListAt: shapes) else { return nil }
    var shape = ByteCursor(abbreviations, at: found.attributes)
    while let attribute = next(&shape), !cursor.failed {
      if attribute.name == 0 { return found.tag }
      if body(attribute, &cursor) { continue }
      guard let skip = AbbreviationTable.skip(attribute.form, format: format) else { return nil }
      cursor.skip(skip, format: format)
    }
    return nil
  }

  private mutating func shape(_ code: UInt64, inListAt offset: Int) -> Shape? {
    guard code != 0 else { return nil }
    if offset != list {
      list = offset
      unread = offset
      shapes.removeAll(keepingCapacity: true)
    }
    if let known = shapes[code] { return known }
    var cursor = ByteCursor(abbreviations, at: unread)
    while true {
      let found = cursor.uleb()
      guard found != 0, !cursor.failed else { return nil }
      let tag = Int(clamping: cursor.uleb())
      _ = cursor.u8()
      let shape = Shape(tag: tag, attributes: cursor.offset)
      while true {
        guard let attribute = next(&cursor) else { return nil }
        if attribute.name == 0 { break }
      }
      unread = cursor.offset
      // Of two with the same code the first one counts.
      if shapes[found] == nil { shapes[found] = shape }
      if found == code { return shape }
    }
  }

  private mutating func next(_ shape: inout ByteCursor) -> Attribute? {
    budget -= 1
    let name = Int(clamping: shape.uleb())
    let form = UInt32(truncatingIfNeeded: shape.uleb())
    let constant = form == UInt32(DW_FORM_implicit_const) ? shape.sleb() : nil
    guard !shape.failed, budget > 0 else { return nil }
    return Attribute(name: name, form: form, constant: constant)
  }
}

extension UnitEntryReader.Attribute {
  /// The value, where the form is that of a number; nil, and the cursor where it was, for any other.
  func number(_ cursor: inout ByteCursor, format: UnitFormat) -> UInt64? {
    if let constant { return UInt64(bitPattern: constant) }
    return switch Int(form) {
    case DW_FORM_data1: UInt64(cursor.u8())
    case DW_FORM_data2: UInt64(cursor.u16())
    case DW_FORM_data4: UInt64(cursor.u32())
    case DW_FORM_data8: cursor.u64()
    case DW_FORM_udata: cursor.uleb()
    case DW_FORM_sdata: UInt64(bitPattern: cursor.sleb())
    case DW_FORM_sec_offset: cursor.sectionOffset(is64Bit: format.is64Bit)
    default: nil
    }
  }
}
