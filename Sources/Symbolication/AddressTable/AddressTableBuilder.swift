internal import CLibdw

/// Gathers everything that a file's debug information and symbol table say about its code, as the bytes of an
/// `AddressTable`.
///
/// Says of each address what `FoundDebugFiles.resolve` says of it; a test holds both to that. A unit is read once: a pass
/// over its entries, one over its lines, and one over the ranges in which neither changes.
struct AddressTableBuilder {
  typealias Layout = AddressTableLayout

  private let symbols: SymbolTable?
  private var contents = AddressTableContents()

  /// - Returns: nil where nothing is known of any address, or the file has more code than a table can hold (4 GiB).
  static func bytes(for files: FoundDebugFiles, key: [UInt8]) -> [UInt8]? {
    var builder = AddressTableBuilder(symbols: files.symbols?.symbols)
    let code = (files.debugInformation ?? files.symbols)?.code ?? CodeRanges([])
    return builder.build(units: files.debugInformation?.units, code: code, key: key)
  }

  private init(symbols: SymbolTable?) { self.symbols = symbols }

  /// Ranges that follow each other without a gap, of one unit or between units.
  private struct Piece {
    var range: AddressRange
    /// In `contents.ranges`.
    var ranges: Range<Int>
  }

  private mutating func build(units: UnitReader?, code: CodeRanges, key: [UInt8]) -> [UInt8]? {
    var pieces: [Piece] = []
    units?.willRead()
    if let units {
      for (unit, owned) in units.ownedRanges.enumerated() where !owned.isEmpty {
        var reader = UnitTableReader(units.parts(of: unit), symbols: symbols)
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
    return contents.bytes(order: order, key: key)
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
  private var strings: [UInt8] = []
  private var knownStrings: [String: UInt32] = [:]
  /// Offsets and indices have 32 bits.
  private var isFull = false

  mutating func add(_ start: UInt64, _ entry: UInt32) { ranges.append(RangeStart(start: start, entry: entry)) }

  mutating func string(_ text: String) -> UInt32 {
    if let known = knownStrings[text] { return known }
    guard let offset = UInt32(exactly: strings.count), offset < 1 << 31 else {
      isFull = true
      return Layout.none
    }
    knownStrings[text] = offset
    var text = text
    text.withUTF8 { bytes in
      withUnsafeBytes(of: UInt32(truncatingIfNeeded: bytes.count).littleEndian) { strings.append(contentsOf: $0) }
      strings.append(contentsOf: bytes)
    }
    return offset
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
  func bytes(order: [Range<Int>], key: [UInt8]) -> [UInt8]? {
    guard !isFull, let first = order.first(where: { !$0.isEmpty }).map({ ranges[$0.lowerBound].start }) else {
      return nil
    }
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
    guard let last = starts.last, key.count == 32 else { return nil }
    // About two ranges for each bucket.
    var shift: UInt32 = 0
    while last >> shift > UInt32(clamping: starts.count / 2 + 1) { shift += 1 }
    var buckets: [UInt32] = []
    var index = 0
    for bucket in 0...(last >> shift) {
      while index + 1 < starts.count, starts[index + 1] <= bucket << shift { index += 1 }
      buckets.append(UInt32(truncatingIfNeeded: index))
    }
    return write(starts, values, buckets, shift: shift, firstAddress: first, key: key)
  }

  private func write(
    _ starts: [UInt32], _ values: [UInt32], _ buckets: [UInt32], shift: UInt32, firstAddress: UInt64, key: [UInt8]
  ) -> [UInt8] {
    let (entries, positions, functions) = (entryList.elements, positionList.elements, functionList.elements)
    let counts: [Layout.Section: Int] = [
      .starts: starts.count, .values: values.count, .buckets: buckets.count, .entries: entries.count,
      .positions: positions.count, .functions: functions.count, .strings: strings.count,
    ]
    var offsets: [Layout.Section: Int] = [:]
    var end = Layout.headerSize
    for section in Layout.Section.allCases where section != .checksums {
      offsets[section] = end
      end += ((counts[section] ?? 0) * section.stride + 7) / 8 * 8
    }
    let blocks = (end - Layout.headerSize + Layout.blockSize - 1) / Layout.blockSize
    let size = end + blocks * 4
    var output = [UInt8](repeating: 0, count: size)
    output.withUnsafeMutableBytes { bytes in
      func put(_ value: UInt32, _ offset: Int) {
        bytes.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt32.self)
      }
      func put64(_ value: UInt64, _ offset: Int) {
        bytes.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt64.self)
      }
      func numbers(_ values: [UInt32], _ section: Layout.Section) {
        var offset = offsets[section] ?? 0
        for value in values {
          put(value, offset)
          offset += 4
        }
      }
      numbers(starts, .starts)
      numbers(values, .values)
      numbers(buckets, .buckets)
      var offset = offsets[.entries] ?? 0
      for entry in entries {
        put(entry.function, offset)
        put(entry.parent, offset + 4)
        put(entry.position.file, offset + 8)
        put(entry.position.line, offset + 12)
        put(entry.position.column, offset + 16)
        put(entry.nearest, offset + 20)
        offset += 24
      }
      offset = offsets[.positions] ?? 0
      for position in positions {
        put(position.file, offset)
        put(position.line, offset + 4)
        put(position.column, offset + 8)
        offset += 12
      }
      offset = offsets[.functions] ?? 0
      for function in functions {
        put(function.name, offset)
        put(function.declarationLine, offset + 4)
        put(function.hasDebugInformation ? 1 : 0, offset + 8)
        offset += 12
      }
      if let stringsOffset = offsets[.strings] {
        UnsafeMutableRawBufferPointer(rebasing: bytes[stringsOffset..<stringsOffset + strings.count])
          .copyBytes(from: strings)
      }
      for block in 0..<blocks {
        let start = Layout.headerSize + block * Layout.blockSize
        let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + Layout.blockSize, end)])
        put(UInt32(truncatingIfNeeded: Layout.checksum(piece)), end + block * 4)
      }
      Layout.magic.withUTF8Buffer { UnsafeMutableRawBufferPointer(rebasing: bytes[..<$0.count]).copyBytes(from: $0) }
      put(Layout.version, Layout.Header.version)
      put64(UInt64(size), Layout.Header.fileSize)
      put64(firstAddress, Layout.Header.firstAddress)
      UnsafeMutableRawBufferPointer(rebasing: bytes[Layout.Header.key..<Layout.Header.key + 32]).copyBytes(from: key)
      put(shift, Layout.Header.bucketShift)
      for section in Layout.Section.allCases {
        let at = Layout.Header.sections + section.rawValue * 16
        put64(UInt64(offsets[section] ?? end), at)
        put64(UInt64(section == .checksums ? blocks : counts[section] ?? 0), at + 8)
      }
      put64(
        Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[end..<size])), Layout.Header.checksumOfChecksums)
      put64(
        Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<Layout.Header.checksum])), Layout.Header.checksum)
    }
    return output
  }
}
