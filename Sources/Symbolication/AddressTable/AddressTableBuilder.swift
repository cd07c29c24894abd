internal import CLibdw

/// Gathers everything that a file's debug information and symbol table say about its code, for an `AddressTable`.
///
/// Says of each address what `FoundDebugFiles.resolve` says of it; a test holds both to that. A unit is read once: a pass
/// over its entries, one over its lines, and one over the ranges in which neither changes.
struct AddressTableBuilder {
  typealias Layout = AddressTableLayout

  private let symbols: SymbolTable?
  private var contents = AddressTableContents()

  /// - Returns: nil where nothing is known of any address, the file has more code than a table can hold (4 GiB), or one that
  ///   it refers to was not found: the table would be kept, and the other file may turn up.
  static func table(for files: FoundDebugFiles, key: [UInt8]) -> FinishedAddressTable? {
    var builder = AddressTableBuilder(symbols: files.symbols?.symbols)
    let code = (files.debugInformation ?? files.symbols)?.code ?? CodeRanges([])
    let table = builder.build(units: files.debugInformation?.units, code: code, key: key)
    return files.debugInformation?.companionProblems.isEmpty == false ? nil : table
  }

  private init(symbols: SymbolTable?) { self.symbols = symbols }

  /// Ranges that follow each other without a gap, of one unit or between units.
  private struct Piece {
    var range: AddressRange
    /// In `contents.ranges`.
    var ranges: Range<Int>
  }

  private mutating func build(units: UnitReader?, code: CodeRanges, key: [UInt8]) -> FinishedAddressTable? {
    var pieces: [Piece] = []
    units?.willRead()
    if let units {
      for (unit, owned) in units.ownedRanges.enumerated() where !owned.isEmpty {
        // What belongs to a unit that libdw does not find, the symbols name.
        guard let parts = units.parts(of: unit) else { continue }
        var reader = UnitTableReader(parts, symbols: symbols)
        for range in owned {
          let first = contents.ranges.count
          reader.add(range, to: &contents)
          pieces.append(Piece(range: range, ranges: first..<contents.ranges.count))
        }
      }
    }
    pieces.sort { $0.range.low < $1.range.low }
    addSymbols(between: &pieces, code: code)
    // Where nothing follows, the last range ends.
    var order: [Range<Int>] = []
    for (index, piece) in pieces.enumerated() {
      order.append(piece.ranges)
      if index + 1 < pieces.count, pieces[index + 1].range.low <= piece.range.high { continue }
      order.append(contents.ranges.count..<contents.ranges.count + 1)
      contents.add(piece.range.high, Layout.none)
    }
    return contents.finished(order: order, key: key)
  }

  /// Names code that no unit claims, from the symbol table.
  private mutating func addSymbols(between pieces: inout [Piece], code: CodeRanges) {
    guard let symbols else { return }
    var gaps: [AddressRange] = []
    var index = 0
    for part in code.ranges {
      var low = part.low
      while index < pieces.count, pieces[index].range.low < part.high {
        if pieces[index].range.low > low { gaps.append(AddressRange(low: low, high: pieces[index].range.low)) }
        low = max(low, pieces[index].range.high)
        index += 1
      }
      if low < part.high { gaps.append(AddressRange(low: low, high: part.high)) }
    }
    for gap in gaps {
      let first = contents.ranges.count
      var low = gap.low
      while low < gap.high {
        let high = min(gap.high, symbols.nextChange(after: low) ?? gap.high)
        var entry = Layout.none
        if let name = symbols.name(of: low) {
          let function = contents.function(name: name, declarationLine: nil, hasDebugInformation: false)
          entry = contents.entry(
            Layout.Entry(function: function, parent: Layout.none, position: Layout.Position(), nearest: Layout.none))
        }
        contents.add(low, entry)
        low = high
      }
      pieces.append(Piece(range: gap, ranges: first..<contents.ranges.count))
    }
    pieces.sort { $0.range.low < $1.range.low }
  }
}

/// The table while it is put together.
struct AddressTableContents {
  typealias Layout = AddressTableLayout

  /// From `start` on, the entry; none where nobody knows the code.
  struct RangeStart {
    var start: UInt64
    var entry: UInt32
  }

  var ranges: [RangeStart] = []
  private var entryList = InternedList<Layout.Entry>()
  private var positionList = InternedList<Layout.Position>()
  private var functionList = InternedList<Layout.Function>()
  private var strings = InternedStrings()
  /// Offsets and indices have 32 bits.
  private var isFull = false

  mutating func add(_ start: UInt64, _ entry: UInt32) { ranges.append(RangeStart(start: start, entry: entry)) }

  mutating func string(_ text: String) -> UInt32 {
    var text = text
    return text.withUTF8 { strings.offset(of: UnsafeRawBufferPointer($0)) }
  }

  /// - Parameter name: from the file that the table is made of, which stays open.
  mutating func function(
    name: UnsafePointer<CChar>?, declarationLine: Int?, hasDebugInformation: Bool
  ) -> UInt32 {
    functionList.index(
      of: Layout.Function(
        name: name.map { strings.offset(of: $0) } ?? Layout.none, declarationLine: Self.number(declarationLine),
        hasDebugInformation: hasDebugInformation))
  }

  mutating func function(name: String?, declarationLine: Int?, hasDebugInformation: Bool) -> UInt32 {
    let function = Layout.Function(
      name: name.map { string($0) } ?? Layout.none, declarationLine: Self.number(declarationLine),
      hasDebugInformation: hasDebugInformation)
    return functionList.index(of: function)
  }

  mutating func position(_ position: Layout.Position) -> UInt32 { positionList.index(of: position) }

  /// An entry that others may share.
  mutating func entry(_ entry: Layout.Entry) -> UInt32 { checked(entryList.index(of: entry)) }

  /// An entry that most likely nobody shares.
  mutating func leaf(_ entry: Layout.Entry) -> UInt32 { checked(entryList.append(entry)) }

  private mutating func checked(_ index: UInt32) -> UInt32 {
    if index > 1 << 31 { isFull = true }
    return index
  }

  static func number(_ value: Int?) -> UInt32 {
    guard let value, let number = UInt32(exactly: value), number < Layout.none else { return Layout.none }
    return number
  }

  /// - Parameter order: pieces of `ranges`, in the order of their addresses.
  func finished(order: [Range<Int>], key: [UInt8]) -> FinishedAddressTable? {
    guard !isFull, !strings.isFull,
      let first = order.first(where: { !$0.isEmpty }).map({ ranges[$0.lowerBound].start })
    else { return nil }
    var starts: [UInt32] = []
    var values: [UInt32] = []
    starts.reserveCapacity(ranges.count)
    values.reserveCapacity(ranges.count)
    for piece in order {
      for range in ranges[piece] where values.last != range.entry {
        guard let distance = UInt32(exactly: range.start &- first) else { return nil }
        starts.append(distance)
        values.append(range.entry)
      }
    }
    guard let last = starts.last, key.count == Layout.keySize else { return nil }
    // About two ranges for each bucket.
    var shift: UInt32 = 0
    while last >> shift > UInt32(clamping: starts.count / 2 + 1) { shift += 1 }
    var buckets: [UInt32] = []
    var index = 0
    for bucket in 0...(last >> shift) {
      while index + 1 < starts.count, starts[index + 1] <= bucket << shift { index += 1 }
      buckets.append(UInt32(truncatingIfNeeded: index))
    }
    var functions: [UInt32] = []
    functions.reserveCapacity(functionList.elements.count * 3)
    for function in functionList.elements {
      functions.append(function.name)
      functions.append(function.declarationLine)
      functions.append(function.hasDebugInformation ? 1 : 0)
    }
    return FinishedAddressTable(
      starts: starts, values: values, buckets: buckets, entries: entryList.elements,
      positions: positionList.elements, functions: functions, strings: strings.bytes, firstAddress: first,
      bucketShift: shift, key: key)
  }
}
