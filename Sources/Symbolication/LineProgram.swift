internal import CLibdw
private import Glibc

/// One row of a line table: from its address up to the next row's, code belongs to this line.
struct LineRow {
  var address: UInt64
  var file: UInt32
  var line: UInt32
  var column: UInt32
}

/// The line number program of a unit (`.debug_line`), DWARF 2 to 5.
///
/// It is run once for all addresses of a batch and its rows are kept one sequence at a time. libdw's `dwarf_getsrclines`
/// keeps all rows until the file is closed, and sorts the rows of all sequences into one list: there those of a dropped
/// function, which begin at address 0, end up between those of real code.
struct LineProgram {
  /// Where the file names stand, and the sections that they may be in.
  struct Strings {
    var line: UnsafeRawBufferPointer
    var lineStrings: UnsafeRawBufferPointer
    var strings: UnsafeRawBufferPointer
  }

  private enum Text {
    case line(Int)
    case lineString(Int)
    case string(Int)
    case none
  }

  private struct File {
    var name: Text
    var directory: Int
  }

  private let strings: Strings
  private let version: Int
  private let minimumInstructionLength: UInt64
  private let lineBase: Int64
  private let lineRange: UInt8
  private let opcodeBase: UInt8
  private let operandCounts: [UInt8]
  private let program: Range<Int>
  private var directories: [Text] = []
  private var files: [File] = []

  /// - Parameter offset: of the unit's program, its `DW_AT_stmt_list`.
  /// - Returns: nil where the header is damaged or of an unknown version.
  init?(_ strings: Strings, at offset: Int) {
    self.strings = strings
    var cursor = ByteCursor(strings.line, at: offset)
    var length = UInt64(cursor.u32())
    let is64Bit = length == 0xffff_ffff
    if is64Bit { length = cursor.u64() }
    let end = min(strings.line.count, cursor.offset.addingReportingOverflow(Int(clamping: length)).partialValue)
    version = Int(cursor.u16())
    guard (2...5).contains(version) else { return nil }
    if version >= 5 {
      let addressSize = cursor.u8()
      guard addressSize == 8, cursor.u8() == 0 else { return nil }
    }
    let headerLength = cursor.sectionOffset(is64Bit: is64Bit)
    let (start, overflow) = cursor.offset.addingReportingOverflow(Int(clamping: headerLength))
    guard !overflow, start <= end else { return nil }
    program = start..<end
    minimumInstructionLength = UInt64(cursor.u8())
    // How many operations an instruction has: 1, except on VLIW machines, which are none of ours.
    if version >= 4 { _ = cursor.u8() }
    // default_is_stmt: whether a row is a good place for a breakpoint, which is not the question here.
    _ = cursor.u8()
    lineBase = Int64(Int8(bitPattern: cursor.u8()))
    lineRange = cursor.u8()
    opcodeBase = cursor.u8()
    guard lineRange > 0, opcodeBase > 0 else { return nil }
    var counts: [UInt8] = [0]
    for _ in 1..<max(opcodeBase, 1) { counts.append(cursor.u8()) }
    operandCounts = counts
    guard !cursor.failed else { return nil }
    var header = ByteCursor(strings.line, at: cursor.offset, end: start)
    let read =
      version >= 5 ? readTables(&header, is64Bit: is64Bit) : readOldTables(&header)
    if !read { return nil }
  }

  /// DWARF 2 to 4: directories and files count from 1; directory 0 is that of the compilation.
  private mutating func readOldTables(_ cursor: inout ByteCursor) -> Bool {
    directories.append(.none)
    while true {
      let start = cursor.skipString()
      if cursor.failed { return false }
      if cursor.offset - start == 1 { break }
      directories.append(.line(start))
    }
    files.append(File(name: .none, directory: 0))
    while true {
      let start = cursor.skipString()
      if cursor.failed { return false }
      if cursor.offset - start == 1 { break }
      readOldFile(&cursor, name: start)
    }
    return true
  }

  private mutating func readOldFile(_ cursor: inout ByteCursor, name: Int) {
    let directory = Int(clamping: cursor.uleb())
    // Time and length of the file.
    _ = cursor.uleb()
    _ = cursor.uleb()
    files.append(File(name: .line(name), directory: directory))
  }

  /// DWARF 5: each table says how its entries look; both count from 0, and entry 0 is the compilation's own.
  private mutating func readTables(_ cursor: inout ByteCursor, is64Bit: Bool) -> Bool {
    let format = UnitFormat(version: 5, is64Bit: is64Bit, addressSize: 8)
    for isFiles in [false, true] {
      var shape: [(content: Int, form: UInt32)] = []
      for _ in 0..<cursor.u8() {
        shape.append((Int(clamping: cursor.uleb()), UInt32(truncatingIfNeeded: cursor.uleb())))
      }
      let count = cursor.uleb()
      if cursor.failed { return false }
      var read: UInt64 = 0
      while read < count {
        let start = cursor.offset
        var entry = File(name: .none, directory: 0)
        for (content, form) in shape {
          switch content {
          case DW_LNCT_path: entry.name = text(&cursor, form: form, format: format)
          case DW_LNCT_directory_index: entry.directory = number(&cursor, form: form, format: format)
          default:
            guard let skip = AbbreviationTable.skip(form, format: format) else { return false }
            cursor.skip(skip, format: format)
          }
        }
        // An entry that takes no bytes could be claimed any number of times.
        guard !cursor.failed, cursor.offset > start else { return false }
        if isFiles { files.append(entry) } else { directories.append(entry.name) }
        read += 1
      }
    }
    return true
  }

  private func text(_ cursor: inout ByteCursor, form: UInt32, format: UnitFormat) -> Text {
    switch Int(form) {
    case DW_FORM_string: return .line(cursor.skipString())
    case DW_FORM_line_strp: return .lineString(Int(clamping: cursor.sectionOffset(is64Bit: format.is64Bit)))
    case DW_FORM_strp: return .string(Int(clamping: cursor.sectionOffset(is64Bit: format.is64Bit)))
    default:
      if let skip = AbbreviationTable.skip(form, format: format) {
        cursor.skip(skip, format: format)
      } else {
        cursor.skip(-1)
      }
      return .none
    }
  }

  private func number(_ cursor: inout ByteCursor, form: UInt32, format: UnitFormat) -> Int {
    switch Int(form) {
    case DW_FORM_data1: return Int(cursor.u8())
    case DW_FORM_data2: return Int(cursor.u16())
    case DW_FORM_udata: return Int(clamping: cursor.uleb())
    default:
      cursor.skip(-1)
      return 0
    }
  }

  private func string(_ text: Text) -> String? {
    switch text {
    case .line(let offset): strings.line.string(at: offset)
    case .lineString(let offset): strings.lineStrings.string(at: offset)
    case .string(let offset): strings.strings.string(at: offset)
    case .none: nil
    }
  }

  /// The path of a file by the number that rows and `DW_AT_call_file` give it; nil for none.
  func path(of file: Int, compilationDirectory: String?) -> String? {
    guard files.indices.contains(file), let name = string(files[file].name), !name.isEmpty else { return nil }
    let index = files[file].directory
    let directory = directories.indices.contains(index) ? string(directories[index]) : nil
    return SourcePath.join(compilationDirectory: compilationDirectory, directory: directory, name: name)
  }

  /// Runs the program for some addresses.
  ///
  /// - Parameters:
  ///   - addresses: sorted. A sequence that holds none of them is passed over.
  ///   - body: gets the rows of one sequence, sorted by address and at least one, and the indices of the addresses that
  ///     it holds. Nothing lies between sequences: an address in none of them has no line.
  mutating func run(
    _ addresses: [UInt64], code: CodeRanges, _ body: (_ rows: ArraySlice<LineRow>, _ found: Range<Int>) -> Void
  ) {
    forEachSequence(code: code) { rows, end in
      let lower = addresses.partitioningIndex { $0 >= rows[rows.startIndex].address }
      let upper = addresses.partitioningIndex { $0 >= end }
      if lower < upper { body(rows, lower..<upper) }
    }
  }

  /// Runs the program.
  ///
  /// - Parameter body: gets the rows of one sequence, sorted by address and at least one, and the address where the last
  ///   one ends.
  mutating func forEachSequence(code: CodeRanges, _ body: (_ rows: ArraySlice<LineRow>, _ end: UInt64) -> Void) {
    var cursor = ByteCursor(strings.line, at: program.lowerBound, end: program.upperBound)
    var rows: [LineRow] = []
    var row = LineRow(address: 0, file: 1, line: 1, column: 0)
    var isSorted = true

    func append() {
      if let last = rows.last, row.address <= last.address {
        // Of several rows at one address the last one counts.
        if row.address == last.address {
          rows[rows.count - 1] = row
          return
        }
        isSorted = false
      }
      rows.append(row)
    }
    func advance(_ operation: UInt64) { row.address &+= operation &* minimumInstructionLength }
    func endSequence() {
      defer {
        rows.removeAll(keepingCapacity: true)
        isSorted = true
        row = LineRow(address: 0, file: 1, line: 1, column: 0)
      }
      guard let first = rows.first, code.isLive(AddressRange(low: first.address, high: row.address)) else { return }
      if !isSorted { rows.sort { $0.address < $1.address } }
      body(rows[...], row.address)
    }

    while !cursor.isAtEnd {
      let opcode = cursor.u8()
      if opcode >= opcodeBase {
        let adjusted = opcode &- opcodeBase
        advance(UInt64(adjusted / lineRange))
        row.line = UInt32(truncatingIfNeeded: Int64(row.line) &+ lineBase &+ Int64(adjusted % lineRange))
        append()
        continue
      }
      switch Int(opcode) {
      case 0:
        let length = cursor.uleb()
        let start = cursor.offset
        guard length > 0, !cursor.failed else { break }
        switch Int(cursor.u8()) {
        case DW_LNE_end_sequence: endSequence()
        case DW_LNE_set_address where length == 9: row.address = cursor.u64()
        case DW_LNE_define_file where version < 5:
          let name = cursor.skipString()
          readOldFile(&cursor, name: name)
        default: break
        }
        // The length counts, whatever was understood of it.
        let (end, overflow) = start.addingReportingOverflow(Int(clamping: length))
        guard !overflow, end >= cursor.offset else { return }
        cursor.skip(end - cursor.offset)
      case DW_LNS_copy: append()
      case DW_LNS_advance_pc: advance(cursor.uleb())
      case DW_LNS_advance_line: row.line = UInt32(truncatingIfNeeded: Int64(row.line) &+ cursor.sleb())
      case DW_LNS_set_file: row.file = UInt32(truncatingIfNeeded: cursor.uleb())
      case DW_LNS_set_column: row.column = UInt32(truncatingIfNeeded: cursor.uleb())
      case DW_LNS_const_add_pc: advance(UInt64((255 &- opcodeBase) / lineRange))
      case DW_LNS_fixed_advance_pc: row.address &+= UInt64(cursor.u16())
      default:
        for _ in 0..<operandCounts[Int(opcode)] { _ = cursor.uleb() }
      }
      if cursor.failed { return }
    }
  }
}
