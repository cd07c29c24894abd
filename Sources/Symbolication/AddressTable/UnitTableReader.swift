internal import CLibdw

/// One unit, read as a whole: which function, and which line, every piece of its code belongs to.
struct UnitTableReader {
  private typealias Layout = AddressTableLayout

  /// From `start` on, the function node or the row; -1 for none.
  private struct Segment {
    var start: UInt64
    var index: Int32
  }

  private let parts: UnitParts
  private let symbols: SymbolTable?
  private let nodes: [FunctionNode]
  private let codeOfNodes: [AddressRange]
  /// For each node the one that stands for itself in which it was inlined, in the end.
  private var outermost: [Int32] = []
  private var functionSegments: [Segment] = []
  private var rowSegments: [Segment] = []
  private var rows: [LineRow] = []
  /// Rows with a line, by the function that owns them: a part of `ownRows` for each node.
  private var ownRows: [Int32] = []
  private var ownRowsOfNode: [Int32] = []
  /// The sequence that each row is in, by its first row.
  private var sequenceStarts: [Int32] = []

  private var pieces: [Int: CodeRanges] = [:]
  private var paths: FilePaths
  /// By a row's number of its file.
  private var pathsOfRows: [UInt32] = []
  private var pathsOfCalls: [Int: UInt32] = [:]
  private var names: [Names] = []
  /// Index in `names` by the offset of the entry that has them, and by node; -1 for what was not asked yet.
  private var namedEntries = InternedList<EntryOffset>()
  private var namesOfNodes: [Int32]
  /// For nodes whose chain of callers is the same everywhere in them; `unknown` for the others.
  private var parents: [UInt32]

  /// No index of anything: the numbers that an entry can have end before.
  private static let unknown = UInt32.max - 1

  private struct Names {
    var function: UInt32
    /// Where the symbol table may have a better one.
    var raw: String?
    var declarationLine: Int?
    var wantsLinkageName: Bool
  }

  private struct EntryOffset: InternedElement {
    var value: Int

    var mixed: UInt64 { InternedHash.mix(0, UInt64(truncatingIfNeeded: value)) }
  }

  init(_ parts: UnitParts, symbols: SymbolTable?) {
    self.parts = parts
    self.symbols = symbols
    let scanner = parts.contents.map { UnitScanner(all: $0, code: parts.code) }
    nodes = scanner?.nodes ?? []
    codeOfNodes = scanner?.codeOfNodes ?? []
    parents = Array(repeating: Self.unknown, count: nodes.count)
    namesOfNodes = Array(repeating: -1, count: nodes.count)
    outermost.reserveCapacity(nodes.count)
    for (index, node) in nodes.enumerated() {
      // A parent stands before what was inlined into it.
      outermost.append(node.parent >= 0 && node.parent < index ? outermost[node.parent] : Int32(clamping: index))
    }
    var program = parts.program
    paths = FilePaths(unit: parts.unit, contents: parts.contents, program: parts.program)
    readFunctions()
    readRows(&program)
    assignRows()
    // `forEachSequence` may have met files that the program defines as it goes.
    paths = FilePaths(unit: parts.unit, contents: parts.contents, program: program)
  }

  // MARK: Reading

  private mutating func readFunctions() {
    var ranges: [(range: AddressRange, owner: Int32)] = []
    for (index, node) in nodes.enumerated() {
      // The last one in the order of the file is the innermost, the lowest owner wins.
      for range in codeOfNodes[node.ranges] { ranges.append((range, Int32(clamping: nodes.count - 1 - index))) }
    }
    let count = Int32(clamping: nodes.count)
    functionSegments = RangeOwners(ranges).segments.map {
      Segment(start: $0.start, index: $0.owner < 0 ? -1 : count - 1 - $0.owner)
    }
  }

  private mutating func readRows(_ program: inout LineProgram?) {
    var sequences: [(range: AddressRange, rows: Range<Int>)] = []
    program?.forEachSequence(code: parts.code) { found, end in
      let first = rows.count
      rows.append(contentsOf: found)
      sequences.append((AddressRange(low: rows[first].address, high: end), first..<rows.count))
    }
    sequenceStarts = Array(repeating: 0, count: rows.count)
    for sequence in sequences {
      for row in sequence.rows { sequenceStarts[row] = Int32(clamping: sequence.rows.lowerBound) }
    }
    let owners = RangeOwners(sequences.enumerated().map { ($1.range, Int32(clamping: $0)) }).segments
    rowSegments.reserveCapacity(rows.count + owners.count)
    for (index, owner) in owners.enumerated() {
      guard owner.owner >= 0 else {
        rowSegments.append(Segment(start: owner.start, index: -1))
        continue
      }
      let sequence = sequences[Int(owner.owner)]
      let end = index + 1 < owners.count ? owners[index + 1].start : sequence.range.high
      var row = rows[sequence.rows].partitioningIndex { $0.address > owner.start } - 1
      var start = owner.start
      while row < sequence.rows.upperBound, start < end {
        if row >= sequence.rows.lowerBound { rowSegments.append(Segment(start: start, index: Int32(clamping: row))) }
        row += 1
        if row < sequence.rows.upperBound { start = rows[row].address }
      }
    }
  }

  /// Sorts the rows with a line by the function that owns them.
  private mutating func assignRows() {
    var owner = [Int32](repeating: -1, count: rows.count)
    var index = 0
    var previous: UInt64 = 0
    for (row, value) in rows.enumerated() where value.line != 0 {
      if value.address < previous { index = 0 }
      previous = value.address
      if index == 0 { index = max(0, functionSegments.partitioningIndex { $0.start > value.address } - 1) }
      while index + 1 < functionSegments.count, functionSegments[index + 1].start <= value.address { index += 1 }
      if index < functionSegments.count, functionSegments[index].start <= value.address {
        owner[row] = functionSegments[index].index
      }
    }
    ownRowsOfNode = [Int32](repeating: 0, count: nodes.count + 1)
    for node in owner where node >= 0 { ownRowsOfNode[Int(node) + 1] += 1 }
    for node in 0..<nodes.count { ownRowsOfNode[node + 1] += ownRowsOfNode[node] }
    var next = ownRowsOfNode
    ownRows = [Int32](repeating: 0, count: Int(ownRowsOfNode[nodes.count]))
    for (row, node) in owner.enumerated() where node >= 0 {
      ownRows[Int(next[Int(node)])] = Int32(clamping: row)
      next[Int(node)] += 1
    }
  }

  // MARK: Writing

  /// Adds what is known of a range that the unit owns.
  mutating func add(_ range: AddressRange, to contents: inout AddressTableContents) {
    var function = functionSegments.partitioningIndex { $0.start > range.low } - 1
    var row = rowSegments.partitioningIndex { $0.start > range.low } - 1
    var low = range.low
    while low < range.high {
      var high = range.high
      if function + 1 < functionSegments.count { high = min(high, functionSegments[function + 1].start) }
      if row + 1 < rowSegments.count { high = min(high, rowSegments[row + 1].start) }
      let node = function >= 0 ? Int(functionSegments[function].index) : -1
      let line = row >= 0 ? Int(rowSegments[row].index) : -1
      if wantsSymbol(node, &contents) {
        var start = low
        while start < high {
          contents.add(start, leaf(node, row: line, at: start, &contents))
          start = min(high, symbols?.nextChange(after: start) ?? high)
        }
      } else {
        contents.add(low, leaf(node, row: line, at: low, &contents))
      }
      low = high
      if function + 1 < functionSegments.count, functionSegments[function + 1].start <= low { function += 1 }
      if row + 1 < rowSegments.count, rowSegments[row + 1].start <= low { row += 1 }
    }
  }

  private mutating func wantsSymbol(_ node: Int, _ contents: inout AddressTableContents) -> Bool {
    guard node >= 0 else { return true }
    return names(of: Int(outermost[node]), &contents).wantsLinkageName
  }

  private mutating func leaf(
    _ node: Int, row: Int, at address: UInt64, _ contents: inout AddressTableContents
  ) -> UInt32 {
    var position = Layout.Position()
    var nearest = Layout.none
    if row >= 0 {
      position = self.position(of: rows[row], &contents)
      if rows[row].line == 0 { nearest = nearestPosition(to: row, of: address, for: node, &contents) }
    }
    let parent = node >= 0 ? parentEntry(of: node, row: row, at: address, &contents).entry : Layout.none
    return contents.leaf(
      Layout.Entry(
        function: function(node, at: address, &contents), parent: parent, position: position, nearest: nearest))
  }

  /// The entry of the function that a node was inlined into.
  private mutating func parentEntry(
    of node: Int, row: Int, at address: UInt64, _ contents: inout AddressTableContents
  ) -> (entry: UInt32, isFixed: Bool) {
    let parent = nodes[node].parent
    guard parent >= 0 else { return (Layout.none, true) }
    if parents[node] != Self.unknown { return (parents[node], true) }
    let call = nodes[node].call
    var position = Layout.Position()
    position.file = path(ofCall: call.file, &contents)
    position.line = AddressTableContents.number(call.line)
    position.column = AddressTableContents.number(call.column)
    var nearest = Layout.none
    if call.line == 0, row >= 0 { nearest = nearestPosition(to: row, of: address, for: parent, &contents) }
    let above = parentEntry(of: parent, row: row, at: address, &contents)
    let entry = contents.entry(
      Layout.Entry(
        function: function(parent, at: address, &contents), parent: above.entry, position: position, nearest: nearest))
    let isFixed =
      above.isFixed && call.line != 0
      && (nodes[parent].parent >= 0 || !names(of: parent, &contents).wantsLinkageName)
    if isFixed { parents[node] = entry }
    return (entry, isFixed)
  }

  // MARK: Names

  private mutating func names(of node: Int, _ contents: inout AddressTableContents) -> Names {
    if namesOfNodes[node] >= 0 { return names[Int(namesOfNodes[node])] }
    // A copy that stands for itself may have a linkage name of its own (C++ constructors); an inlined one has not.
    let offset = nodes[node].isInlined ? nodes[node].origin : nodes[node].offset
    let index = Int(namedEntries.index(of: EntryOffset(value: offset)))
    namesOfNodes[node] = Int32(clamping: index)
    if index < names.count { return names[index] }
    names.append(readNames(at: offset, &contents))
    return names[index]
  }

  private func readNames(at offset: Int, _ contents: inout AddressTableContents) -> Names {
    if let found = parts.nameBytes(at: offset) {
      let wantsLinkageName = found.name == nil || parts.isCPlusPlus && !found.isLinkageName
      return Names(
        function: contents.function(
          name: found.name, declarationLine: found.declarationLine, hasDebugInformation: true),
        raw: wantsLinkageName ? found.name.map { String(cString: $0) } : nil, declarationLine: found.declarationLine,
        wantsLinkageName: wantsLinkageName)
    }
    let found = parts.names(at: offset)
    let raw = found.linkageName ?? found.name
    return Names(
      function: contents.function(name: raw, declarationLine: found.declarationLine, hasDebugInformation: true),
      raw: raw, declarationLine: found.declarationLine,
      wantsLinkageName: raw == nil || parts.isCPlusPlus && found.linkageName == nil)
  }

  /// The function of a node at an address; for code without a node, what the symbol table says.
  private mutating func function(
    _ node: Int, at address: UInt64, _ contents: inout AddressTableContents
  ) -> UInt32 {
    guard node >= 0 else {
      return contents.function(name: symbols?.name(of: address), declarationLine: nil, hasDebugInformation: true)
    }
    let names = names(of: node, &contents)
    guard nodes[node].parent < 0, names.wantsLinkageName, let symbol = symbols?.name(of: address) else {
      return names.function
    }
    let raw = FoundDebugFiles.completed(names.raw, by: symbol)
    return contents.function(name: raw, declarationLine: names.declarationLine, hasDebugInformation: true)
  }

  // MARK: Positions

  private mutating func position(of row: LineRow, _ contents: inout AddressTableContents) -> Layout.Position {
    var position = Layout.Position()
    position.line = AddressTableContents.number(Int(row.line))
    position.column = AddressTableContents.number(Int(row.column))
    position.file = path(ofRow: row.file, &contents)
    return position
  }

  private mutating func path(ofRow file: UInt32, _ contents: inout AddressTableContents) -> UInt32 {
    if Int(file) < pathsOfRows.count, pathsOfRows[Int(file)] != Self.unknown { return pathsOfRows[Int(file)] }
    let path = paths[Int(file), isFromCall: false].map { contents.string($0) } ?? Layout.none
    // The number is whatever the program says; a unit has some hundreds of files.
    if file < 1 << 16 {
      while pathsOfRows.count <= Int(file) { pathsOfRows.append(Self.unknown) }
      pathsOfRows[Int(file)] = path
    }
    return path
  }

  private mutating func path(ofCall file: Int?, _ contents: inout AddressTableContents) -> UInt32 {
    guard let file else { return Layout.none }
    if let known = pathsOfCalls[file] { return known }
    let path = paths[file, isFromCall: true].map { contents.string($0) } ?? Layout.none
    pathsOfCalls[file] = path
    return path
  }

  /// The nearest row with a line that is the function's own, as `UnitReader` finds it: in the same contiguous piece of the
  /// function and the same sequence, first backwards, then forwards.
  private mutating func nearestPosition(
    to row: Int, of address: UInt64, for node: Int, _ contents: inout AddressTableContents
  ) -> UInt32 {
    guard node >= 0, let piece = piece(of: address, in: node) else { return Layout.none }
    let own = ownRows[Int(ownRowsOfNode[node])..<Int(ownRowsOfNode[node + 1])]
    let behind = own.partitioningIndex { $0 > Int32(clamping: row) }
    let sequence = sequenceStarts[row]
    var found: Int?
    if behind > own.startIndex {
      let candidate = Int(own[behind - 1])
      if sequenceStarts[candidate] == sequence, rows[candidate].address >= piece.low { found = candidate }
    }
    if found == nil, behind < own.endIndex {
      let candidate = Int(own[behind])
      if sequenceStarts[candidate] == sequence, rows[candidate].address < piece.high { found = candidate }
    }
    guard let found else { return Layout.none }
    let position = position(of: rows[found], &contents)
    return contents.position(position)
  }

  private mutating func piece(of address: UInt64, in node: Int) -> AddressRange? {
    let ranges = codeOfNodes[nodes[node].ranges]
    if ranges.count == 1, let range = ranges.first { return range.contains(address) ? range : nil }
    if let known = pieces[node] { return known.range(of: address) }
    let merged = CodeRanges(Array(ranges))
    pieces[node] = merged
    return merged.range(of: address)
  }
}
