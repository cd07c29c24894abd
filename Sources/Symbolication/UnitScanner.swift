internal import CLibdw
private import Glibc

/// A function or an inlined function of a unit that covers an address which was asked for, or encloses one that does.
struct FunctionNode {
  /// Where a function was inlined. What the entry does not say is 0, the file nil.
  struct Call: Hashable {
    var file: Int?
    var line = 0
    var column = 0
  }

  /// Offset of its entry in the unit's section.
  var offset: Int
  /// Offset of the entry that this one is a copy of, and has its names from; its own where there is none, or none that
  /// stands in the same section.
  var origin: Int
  var call: Call
  /// Index of the function that it was inlined into; -1 for one that stands for itself.
  var parent: Int
  /// Index of the function that stands for itself, at the end of the chain. Where a linker folded functions that are the
  /// same, the code is that of several; the first one has it, as it has the first lines.
  var root: Int
  var isInlined: Bool
  /// Its code, in the scanner's `codeOfNodes`. Not an array: most functions have one range, and a program has millions.
  var ranges: Range<Int>
  /// What was inlined directly into it; not noted where all functions are wanted.
  var inlinedRanges: [AddressRange]
}

/// Which code is a function's own, and not that of what was inlined into it.
struct FunctionCode {
  private let pieces: CodeRanges
  private let inlined: CodeRanges

  /// - Parameters:
  ///   - ranges: of the function.
  ///   - inlined: of what was inlined directly into it.
  init(_ ranges: some Sequence<AddressRange>, inlined: [AddressRange]) {
    pieces = CodeRanges(Array(ranges))
    self.inlined = CodeRanges(inlined)
  }

  /// The contiguous piece of the function that `address` lies in, with the inlined code in it.
  func piece(of address: UInt64) -> AddressRange? { pieces.range(of: address) }

  func owns(_ address: UInt64) -> Bool { pieces.range(of: address) != nil && inlined.range(of: address) == nil }
}

/// Finds the functions that cover a set of addresses, by one pass over a unit's entries.
///
/// The pass does not stop at a function whose range misses the addresses: swiftc nests the function of a closure in the
/// entry of the function that it is written in, which may have another range or none. `dwarf_getscopes` skips there, and
/// so loses closures.
///
/// Entries are passed by, not kept; memory grows with the functions that are found and the depth of the nesting.
struct UnitScanner {
  /// Deeper nesting than compilers make; what lies below is not seen. Chains of inlined functions are no longer than that,
  /// and what follows one from function to function may call itself so often.
  static let maximumDepth = 2_000

  /// A function whose children are being scanned.
  private struct OpenFunction {
    var offset: Int
    var origin: Int
    var call: FunctionNode.Call
    var isInlined: Bool
    /// All its ranges are of code that the linker dropped; then so is what was inlined into it, whatever it says.
    var isDropped: Bool
    var node: Int
  }

  private let unit: UnitContents
  private let addresses: [UInt64]
  /// Every function is wanted, whatever it covers.
  private let wantsAll: Bool
  private let code: CodeRanges
  private var openFunctions: [OpenFunction] = []
  private var ranges: [AddressRange] = []
  /// Of the entry that is being read.
  private var origin: Int?
  private var call = FunctionNode.Call()
  private(set) var nodes: [FunctionNode] = []
  private(set) var codeOfNodes: [AddressRange] = []
  /// For each address the innermost function that covers it, an index in `nodes`; -1 for none.
  private(set) var innermost: [Int]

  /// - Parameter addresses: sorted.
  init(_ unit: UnitContents, addresses: [UInt64], code: CodeRanges) {
    self.unit = unit
    self.addresses = addresses
    self.code = code
    wantsAll = false
    innermost = Array(repeating: -1, count: addresses.count)
    scan()
  }

  /// Finds all functions of the unit that cover anything, in the order of the file.
  init(all unit: UnitContents, code: CodeRanges) {
    self.unit = unit
    addresses = []
    self.code = code
    wantsAll = true
    innermost = []
    scan()
  }

  private mutating func scan() {
    let format = unit.format
    let abbreviations = unit.abbreviations
    var cursor = ByteCursor(unit.info, at: unit.entries.lowerBound, end: unit.entries.upperBound)
    // For each open entry, whether it is a function's.
    var levels: [Bool] = []
    while !cursor.isAtEnd {
      let offset = cursor.offset
      let code = cursor.uleb()
      if code == 0 {
        guard let wasFunction = levels.popLast() else { return }
        if wasFunction { openFunctions.removeLast() }
        if levels.isEmpty { return }
        continue
      }
      guard let abbreviation = abbreviations[code] else { return }
      let isFunction = AbbreviationTable.isFunction(abbreviation.tag)
      if isFunction {
        let isDropped = function(&cursor, at: offset, abbreviation)
        if abbreviation.hasChildren {
          openFunctions[openFunctions.count - 1].isDropped = isDropped
        } else {
          openFunctions.removeLast()
        }
      } else if abbreviation.fixedSize >= 0 {
        cursor.skip(abbreviation.fixedSize)
      } else {
        for index in abbreviation.skips { cursor.skip(abbreviations.skips[index], format: format) }
      }
      if cursor.failed { return }
      if abbreviation.hasChildren {
        guard levels.count < Self.maximumDepth else { return }
        levels.append(isFunction)
      } else if levels.isEmpty {
        return
      }
    }
  }

  /// Reads a function's entry, notes the addresses that it covers, and leaves it as the last of `openFunctions`.
  ///
  /// - Returns: whether the linker dropped its code.
  private mutating func function(
    _ cursor: inout ByteCursor, at offset: Int, _ abbreviation: AbbreviationTable.Abbreviation
  ) -> Bool {
    let isInlined = abbreviation.tag == UInt32(DW_TAG_inlined_subroutine)
    let parent = openFunctions.count - 1
    let inDropped = isInlined && parent >= 0 && openFunctions[parent].isDropped
    let hasRanges = readRanges(&cursor, abbreviation)
    let claimed = ranges.count
    if inDropped {
      ranges.removeAll(keepingCapacity: true)
    } else {
      ranges.removeAll { !code.isLive($0) }
    }
    openFunctions.append(
      OpenFunction(
        offset: offset, origin: origin ?? offset, call: call, isInlined: isInlined, isDropped: false, node: -1))
    if isInlined, !wantsAll, parent >= 0, openFunctions[parent].node >= 0 {
      nodes[openFunctions[parent].node].inlinedRanges += ranges
    }
    if wantsAll, !ranges.isEmpty { _ = node(of: openFunctions.count - 1) }
    for range in ranges {
      var index = addresses.partitioningIndex { $0 >= range.low }
      guard index < addresses.count, addresses[index] < range.high else { continue }
      let node = node(of: openFunctions.count - 1)
      while index < addresses.count, addresses[index] < range.high {
        // The last one in the order of the file is the innermost: children follow their parents.
        let other = innermost[index]
        if other < 0 || nodes[other].root == nodes[node].root { innermost[index] = node }
        index += 1
      }
    }
    let node = openFunctions[openFunctions.count - 1].node
    if node >= 0 {
      let first = codeOfNodes.count
      codeOfNodes.append(contentsOf: ranges)
      nodes[node].ranges = first..<codeOfNodes.count
    }
    return inDropped || hasRanges && claimed > 0 && ranges.isEmpty
  }

  /// The node of an open function, made together with those of the functions it was inlined into.
  private mutating func node(of index: Int) -> Int {
    if openFunctions[index].node >= 0 { return openFunctions[index].node }
    var first = index
    while first > 0, openFunctions[first].isInlined, openFunctions[first - 1].node < 0 { first -= 1 }
    for current in first...index {
      let parent = openFunctions[current].isInlined && current > 0 ? openFunctions[current - 1].node : -1
      openFunctions[current].node = nodes.count
      nodes.append(
        FunctionNode(
          offset: openFunctions[current].offset, origin: openFunctions[current].origin,
          call: openFunctions[current].call, parent: parent, root: parent >= 0 ? nodes[parent].root : nodes.count,
          isInlined: openFunctions[current].isInlined, ranges: 0..<0,
          inlinedRanges: []))
    }
    return openFunctions[index].node
  }

  /// Reads the entry's attributes, and its ranges into `ranges`.
  ///
  /// - Returns: whether it has any, be they empty or not.
  private mutating func readRanges(
    _ cursor: inout ByteCursor, _ abbreviation: AbbreviationTable.Abbreviation
  ) -> Bool {
    ranges.removeAll(keepingCapacity: true)
    origin = nil
    call = FunctionNode.Call()
    var low: UInt64?
    var high: UInt64?
    var highIsLength = false
    var list: (value: UInt64, isIndex: Bool)?
    var hasRanges = false
    for index in abbreviation.functionAttributes {
      switch unit.abbreviations.functionAttributes[index] {
      case .skip(let skip): cursor.skip(skip, format: unit.format)
      case .lowPC(let form):
        hasRanges = true
        low = address(&cursor, form: form)
      case .highPC(let form, let constant):
        if AbbreviationTable.isAddress(form) {
          high = address(&cursor, form: form)
        } else {
          highIsLength = true
          high = value(&cursor, form: form, constant: constant)
        }
      case .ranges(let form):
        hasRanges = true
        list = value(&cursor, form: form, constant: 0).map { ($0, Int(form) == DW_FORM_rnglistx) }
      case .origin(let form): origin = reference(&cursor, form: form)
      case .callFile(let form, let constant):
        call.file = value(&cursor, form: form, constant: constant).flatMap { Int(exactly: $0) }
      case .callLine(let form, let constant):
        call.line = value(&cursor, form: form, constant: constant).flatMap { Int(exactly: $0) } ?? 0
      case .callColumn(let form, let constant):
        call.column = value(&cursor, form: form, constant: constant).flatMap { Int(exactly: $0) } ?? 0
      }
    }
    if cursor.failed || !hasRanges { return hasRanges }
    if let list {
      unit.rangeLists.forEachRange(list.value, isIndex: list.isIndex) { ranges.append($0) }
    } else if let low, let high {
      let end = highIsLength ? low &+ high : high
      if low < end { ranges.append(AddressRange(low: low, high: end)) }
    }
    return true
  }

  @inline(__always)
  private func address(_ cursor: inout ByteCursor, form: UInt32) -> UInt64? {
    switch Int(form) {
    case DW_FORM_addr: cursor.u64()
    case DW_FORM_addrx, DW_FORM_GNU_addr_index: unit.rangeLists.address(at: cursor.uleb())
    case DW_FORM_addrx1: unit.rangeLists.address(at: UInt64(cursor.u8()))
    case DW_FORM_addrx2: unit.rangeLists.address(at: UInt64(cursor.u16()))
    case DW_FORM_addrx3: unit.rangeLists.address(at: UInt64(cursor.u24()))
    case DW_FORM_addrx4: unit.rangeLists.address(at: UInt64(cursor.u32()))
    default: skipped(&cursor, form: form)
    }
  }

  @inline(__always)
  private func value(_ cursor: inout ByteCursor, form: UInt32, constant: Int64) -> UInt64? {
    switch Int(form) {
    case DW_FORM_data4: UInt64(cursor.u32())
    case DW_FORM_sec_offset: cursor.sectionOffset(is64Bit: unit.format.is64Bit)
    case DW_FORM_udata, DW_FORM_rnglistx: cursor.uleb()
    case DW_FORM_data1: UInt64(cursor.u8())
    case DW_FORM_data2: UInt64(cursor.u16())
    case DW_FORM_data8: cursor.u64()
    case DW_FORM_sdata: UInt64(bitPattern: cursor.sleb())
    case DW_FORM_implicit_const: UInt64(bitPattern: constant)
    default: skipped(&cursor, form: form)
    }
  }

  /// - Returns: an offset in the unit's section; nil for a reference to another file.
  @inline(__always)
  private func reference(_ cursor: inout ByteCursor, form: UInt32) -> Int? {
    let offset: UInt64
    switch Int(form) {
    case DW_FORM_ref4: offset = UInt64(cursor.u32())
    case DW_FORM_ref1: offset = UInt64(cursor.u8())
    case DW_FORM_ref2: offset = UInt64(cursor.u16())
    case DW_FORM_ref8: offset = cursor.u64()
    case DW_FORM_ref_udata: offset = cursor.uleb()
    case DW_FORM_ref_addr where unit.format.version > 2:
      return Int(exactly: cursor.sectionOffset(is64Bit: unit.format.is64Bit))
    default:
      _ = skipped(&cursor, form: form)
      return nil
    }
    return Int(exactly: offset).map { unit.header &+ $0 }
  }

  private func skipped(_ cursor: inout ByteCursor, form: UInt32) -> UInt64? {
    if let skip = AbbreviationTable.skip(form, format: unit.format) {
      cursor.skip(skip, format: unit.format)
    } else {
      cursor.skip(-1)
    }
    return nil
  }
}
