internal import CLibdw
internal import CrashModel
private import Glibc

/// Answers addresses from a file's debug information, without an index.
///
/// Per file the map of units is made once. Per batch, each unit that holds an address is read once: a pass over its
/// entries for the functions, one over its line program. Nothing of a unit is kept afterwards. The memory that grows is
/// libdw's, by the units whose attributes were asked for.
final class UnitReader {
  private let dwarf: DwarfHandle
  private let sections: ELFSections
  private let code: CodeRanges
  private let strings: LineProgram.Strings
  private let map: UnitMap
  private let lastAbbreviations = LastAbbreviationTable()
  let splitUnits: SplitUnitSearch

  /// One address's answer, before names of the symbol table are added.
  struct Answer {
    var functions: [SymbolicatedFunction] = []
    /// The outermost function's linkage name is one that the compiler leaves to the symbol table (C++ functions that are
    /// local to a file).
    var wantsLinkageName = false
  }

  /// - Parameters:
  ///   - sections: of the file, decompressed.
  ///   - code: the parts of the file that hold code.
  ///   - splitUnits: finds those of the units whose functions are in another file.
  init(_ dwarf: DwarfHandle, sections: ELFSections, code: CodeRanges, splitUnits: SplitUnitSearch) {
    self.dwarf = dwarf
    self.sections = sections
    self.code = code
    self.splitUnits = splitUnits
    strings = LineProgram.Strings(
      line: sections.bytes(".debug_line"), lineStrings: sections.bytes(".debug_line_str"),
      strings: sections.bytes(".debug_str"))
    map = UnitMap(dwarf.dwarf, sections: sections, code: code)
  }

  /// - Parameters:
  ///   - addresses: sorted, without repetitions, as the file numbers them.
  ///   - nearestLines: replace line 0 by the nearest line of the same function.
  /// - Returns: one answer for each address; nil where no unit claims it.
  func answers(to addresses: [UInt64], nearestLines: Bool) -> [Answer?] {
    var answers: [Answer?] = Array(repeating: nil, count: addresses.count)
    var indices: [Int: [Int]] = [:]
    for (index, address) in addresses.enumerated() {
      if let unit = map.unit(of: address) { indices[unit, default: []].append(index) }
    }
    // In the file's order, so that it is read from front to back.
    for (unit, indices) in indices.sorted(by: { $0.key < $1.key }) {
      guard let unit = map[unit] else { continue }
      let found = answer(indices.map { addresses[$0] }, in: unit, nearestLines: nearestLines)
      for (index, answer) in zip(indices, found) { answers[index] = answer }
    }
    return answers
  }

  /// Says so to whoever watches.
  func willRead() { dwarf.file.willRead(.debugInformation) }

  /// For each unit, by its number, the code that belongs to it.
  var ownedRanges: [[AddressRange]] {
    var owned = Array(repeating: [AddressRange](), count: map.count)
    for (segment, next) in zip(map.owners.segments, map.owners.segments.dropFirst()) where segment.owner >= 0 {
      owned[Int(segment.owner)].append(AddressRange(low: segment.start, high: next.start))
    }
    return owned
  }

  /// What a unit has to say; nil where libdw does not find it.
  func parts(of number: Int) -> UnitParts? { map[number].map { parts(of: $0) } }

  private func parts(of unit: UnitMap.Unit) -> UnitParts {
    UnitParts(
      unit, sections: sections, splitUnits: splitUnits, lastAbbreviations: lastAbbreviations, strings: strings,
      code: code)
  }

  /// How many units have their functions in another file.
  var skeletonCount: Int { map.skeletonCount }

  /// A place in the source.
  private struct Position {
    var file: Int?
    var line: Int?
    var column: Int?
    var isNearest = false

    init(file: Int? = nil, line: Int? = nil, column: Int? = nil) {
      self.file = file
      self.line = line
      self.column = column
    }

    init(_ call: FunctionNode.Call) { self.init(file: call.file, line: call.line, column: call.column) }

    init(_ row: LineRow, isNearest: Bool = false) {
      file = Int(row.file)
      line = Int(row.line)
      column = Int(row.column)
      self.isNearest = isNearest
    }
  }

  private func answer(_ addresses: [UInt64], in unit: UnitMap.Unit, nearestLines: Bool) -> [Answer] {
    let parts = parts(of: unit)
    let contents = parts.contents
    let scanner = contents.map { UnitScanner($0, addresses: addresses, code: code) }
    let nodes = scanner?.nodes ?? []
    let innermost = scanner?.innermost ?? Array(repeating: -1, count: addresses.count)
    // Nodes of a function that only encloses one are read too: they are part of the chain.
    let names = nodes.map { parts.names(at: $0.offset) }

    // Positions per address, innermost first; the first is from the line table, the others are where the calls stand.
    var positions = innermost.map { index -> [Position] in
      var chain = [Position()]
      var current = index
      while current >= 0, nodes[current].parent >= 0 {
        chain.append(Position(nodes[current].call))
        current = nodes[current].parent
      }
      return chain
    }
    var codeOfNodes: [Int: FunctionCode] = [:]
    func functionCode(of node: Int) -> FunctionCode {
      if let code = codeOfNodes[node] { return code }
      let code = FunctionCode(
        scanner?.codeOfNodes[nodes[node].ranges] ?? [], inlined: nodes[node].inlinedRanges)
      codeOfNodes[node] = code
      return code
    }
    var program = parts.program
    program?.run(addresses, code: code) { rows, found in
      for index in found where positions[index][0].line == nil {
        let address = addresses[index]
        let row = rows.partitioningIndex { $0.address > address } - 1
        guard row >= rows.startIndex else { continue }
        positions[index][0] = Position(rows[row])
        guard nearestLines else { continue }
        var current = innermost[index]
        for depth in positions[index].indices where current >= 0 {
          if positions[index][depth].line == 0,
            let nearest = Self.nearest(to: row, of: address, in: rows, for: functionCode(of: current))
          {
            positions[index][depth] = nearest
          }
          current = nodes[current].parent
        }
      }
    }

    var paths = FilePaths(unit: unit, contents: contents, program: program)
    return addresses.indices.map { index in
      var answer = Answer()
      var current = innermost[index]
      for (depth, position) in positions[index].enumerated() {
        let node = current >= 0 ? nodes[current] : nil
        let known = current >= 0 ? names[current] : UnitParts.Names()
        let raw = known.linkageName ?? known.name
        answer.functions.append(
          SymbolicatedFunction(
            rawFunction: raw, file: position.file.flatMap { paths[$0, isFromCall: depth > 0] }, line: position.line,
            column: position.column, declarationLine: known.declarationLine, approximate: position.isNearest,
            inlined: node?.isInlined == true && node?.parent ?? -1 >= 0, hasDebugInformation: true))
        answer.wantsLinkageName = raw == nil || parts.isCPlusPlus && known.linkageName == nil
        current = node?.parent ?? -1
      }
      return answer
    }
  }

  /// The nearest row with a line that belongs to the function itself, not to what was inlined into it.
  ///
  /// Rows before the address come first, because they were executed before: those behind it may be of a branch that was
  /// not taken. Only where there is none before does one behind serve.
  private static func nearest(
    to row: Int, of address: UInt64, in rows: ArraySlice<LineRow>, for function: FunctionCode
  ) -> Position? {
    // A function can be in several pieces; a line of the piece that the address lies in says more than one of another.
    guard let piece = function.piece(of: address) else { return nil }
    func serves(_ row: LineRow) -> Bool { row.line != 0 && function.owns(row.address) }
    var index = row
    while index >= rows.startIndex, rows[index].address >= piece.low {
      if serves(rows[index]) { return Position(rows[index], isNearest: true) }
      index -= 1
    }
    index = row + 1
    while index < rows.endIndex, rows[index].address < piece.high {
      if serves(rows[index]) { return Position(rows[index], isNearest: true) }
      index += 1
    }
    return nil
  }
}

/// The paths of a unit's files, each put together once.
struct FilePaths {
  private let compilationDirectory: String?
  private let program: LineProgram?
  /// Of the other half of a split unit, which counts its files in a table of its own.
  private let callProgram: LineProgram?
  private var known: [Int: String?] = [:]
  private var knownOfCalls: [Int: String?] = [:]

  init(unit: UnitMap.Unit, contents: UnitContents?, program: LineProgram?) {
    var die = unit.die
    compilationDirectory = DebugInformationEntry.string(&die, DW_AT_comp_dir)
    self.program = program
    callProgram = contents?.split?.fileTable
  }

  /// - Parameter isFromCall: the number is from a `DW_AT_call_file`, which in split DWARF counts in the table of the `.dwo`
  ///   file.
  subscript(number: Int, isFromCall isFromCall: Bool) -> String? {
    mutating get {
      if isFromCall, let callProgram {
        if let path = knownOfCalls[number] { return path }
        let path = callProgram.path(of: number, compilationDirectory: compilationDirectory)
        knownOfCalls[number] = path
        return path
      }
      if let path = known[number] { return path }
      let path = program?.path(of: number, compilationDirectory: compilationDirectory)
      known[number] = path
      return path
    }
  }
}
