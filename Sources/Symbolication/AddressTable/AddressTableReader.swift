/// Reads the answers out of a table's bytes.
///
/// A pointer and nothing else, so that a loop over a million addresses counts no references. Valid as long as its
/// `AddressTable` lives. Nothing in the bytes is believed: every index is checked against its section, and every block that
/// is used against its checksum.
package struct AddressTableReader {
  typealias Layout = AddressTableLayout

  /// What the table made of its header, and what is known of its bytes by now.
  struct State {
    var bytes: UnsafeRawBufferPointer
    var map: Map
    /// Not 0 for each block that was found to be as it was written.
    var verified: UnsafeMutableBufferPointer<UInt8>
    var problem: Problem?
  }

  /// Where in the file what is. The sections lie behind the header and before the end of the file.
  struct Map {
    var firstAddress: UInt64 = 0
    var bucketShift: UInt64 = 0
    var starts = 0..<0
    var values = 0..<0
    var buckets = 0..<0
    var entries = 0..<0
    var positions = 0..<0
    var functions = 0..<0
    var strings = 0..<0
    var checksums = 0..<0

    /// Blocks between the header and the checksums.
    var blockCount: Int { (checksums.lowerBound - Layout.headerSize + Layout.blockSize - 1) / Layout.blockSize }
  }

  /// Why a table cannot be used any more.
  enum Problem: CustomStringConvertible {
    case outside
    case order
    case depth
    case block(Range<Int>)

    var description: String {
      switch self {
      case .outside: "it refers to places outside of itself"
      case .order: "its entries are out of order"
      case .depth: "a chain of inlined functions in it is longer than any"
      case .block(let range): "its bytes \(range.lowerBound) to \(range.upperBound) are not what was written"
      }
    }
  }

  let state: UnsafeMutablePointer<State>

  /// One function at an address, with what other sections say of it.
  struct ChainEntry {
    var name: UInt32
    var declarationLine: UInt32
    var hasDebugInformation: Bool
    var position: Layout.Position
    var isNearest: Bool
    var isInlined: Bool
  }

  /// The functions at an address as bytes of the table, without what stands for no function.
  ///
  /// - Parameters:
  ///   - chain: emptied first; stays empty where nothing is known of the address, or the table turns out to be damaged.
  ///   - nearestLines: replace line 0 by the nearest line of the same function.
  package func fill(_ chain: inout AddressChain, at address: UInt64, nearestLines: Bool) {
    chain.removeAll()
    let isWhole = forEachEntry(at: address, nearestLines: nearestLines) { entry in
      func number(_ value: UInt32) -> UInt32? { value == Layout.none ? nil : value }
      chain.append(
        AddressChain.Function(
          name: string(entry.name), file: string(entry.position.file), line: number(entry.position.line),
          column: number(entry.position.column), inlined: entry.isInlined, approximate: entry.isNearest))
    }
    if !isWhole || state.pointee.problem != nil { chain.removeAll() }
  }

  /// - Returns: whether the chain came to its end; false too where the address is unknown.
  @inline(__always)
  func forEachEntry(at address: UInt64, nearestLines: Bool, _ body: (ChainEntry) -> Void) -> Bool {
    guard state.pointee.problem == nil, let range = range(of: address),
      let value = element(state.pointee.map.values, stride: 4, range)
    else { return false }
    var index = u32(value)
    var depth = 0
    while index != Layout.none {
      depth += 1
      guard depth <= UnitScanner.maximumDepth else {
        state.pointee.problem = .depth
        return false
      }
      guard let at = element(state.pointee.map.entries, stride: 24, Int(index)),
        let function = element(state.pointee.map.functions, stride: 12, Int(u32(at)))
      else { return false }
      let parent = u32(at + 4)
      let nearest = u32(at + 20)
      var place = at + 8
      let isNearest = nearestLines && nearest != Layout.none
      if isNearest {
        guard let position = element(state.pointee.map.positions, stride: 12, Int(nearest)) else { return false }
        place = position
      }
      body(
        ChainEntry(
          name: u32(function), declarationLine: u32(function + 4), hasDebugInformation: u32(function + 8) & 1 != 0,
          position: Layout.Position(file: u32(place), line: u32(place + 4), column: u32(place + 8)),
          isNearest: isNearest, isInlined: parent != Layout.none))
      // A parent stands before its children, so that damage cannot lead in a circle.
      guard parent == Layout.none || parent < index else {
        state.pointee.problem = .order
        return false
      }
      index = parent
    }
    return true
  }

  /// Index of the range that an address lies in.
  @inline(__always)
  private func range(of address: UInt64) -> Int? {
    let first = state.pointee.map.firstAddress
    let starts = state.pointee.map.starts
    let buckets = state.pointee.map.buckets
    let count = starts.count / 4
    guard address >= first, address - first <= UInt64(UInt32.max), count > 0 else { return nil }
    let distance = UInt32(truncatingIfNeeded: address - first)
    let bucket = Int(UInt64(distance) >> state.pointee.map.bucketShift)
    let bucketCount = buckets.count / 4
    guard bucket < bucketCount, let lowest = element(buckets, stride: 4, bucket) else { return nil }
    var low = Int(u32(lowest))
    var high = count
    if bucket + 1 < bucketCount {
      guard let next = element(buckets, stride: 4, bucket + 1) else { return nil }
      high = min(count, Int(u32(next)) + 1)
    }
    // The last one that begins at or before the address.
    while low < high {
      let middle = low + (high - low) / 2
      guard let start = element(starts, stride: 4, middle) else { return nil }
      if u32(start) > distance { high = middle } else { low = middle + 1 }
    }
    return low > 0 ? low - 1 : nil
  }

  /// The bytes of a string; nil for none.
  @inline(__always)
  func string(_ offset: UInt32) -> UnsafeRawBufferPointer? {
    if offset == Layout.none { return nil }
    let strings = state.pointee.map.strings
    let start = strings.lowerBound + Int(offset)
    guard strings.upperBound - start >= 4, verify(start, 4) else { return damaged() }
    let length = Int(u32(start))
    guard length <= strings.upperBound - start - 4, length == 0 || verify(start + 4, length) else { return damaged() }
    return UnsafeRawBufferPointer(rebasing: state.pointee.bytes[start + 4..<start + 4 + length])
  }

  // MARK: Checked reads

  @inline(never)
  private func damaged<Value>() -> Value? {
    if state.pointee.problem == nil { state.pointee.problem = .outside }
    return nil
  }

  /// Where an element begins, if there is one with this index and its bytes are as they were written.
  @inline(__always)
  private func element(_ section: Range<Int>, stride: Int, _ index: Int) -> Int? {
    // An index has 32 bits, so that this cannot overflow.
    let at = section.lowerBound &+ index &* stride
    guard index >= 0, at &+ stride <= section.upperBound else { return damaged() }
    return verify(at, stride) ? at : nil
  }

  /// Whether all blocks that hold these bytes, at least one, are as they were written.
  @inline(__always)
  private func verify(_ start: Int, _ count: Int) -> Bool {
    var block = (start &- Layout.headerSize) / Layout.blockSize
    let last = (start &+ count &- 1 &- Layout.headerSize) / Layout.blockSize
    while block <= last {
      if state.pointee.verified[block] == 0, !verifyBlock(block) { return false }
      block += 1
    }
    return true
  }

  @inline(never)
  private func verifyBlock(_ block: Int) -> Bool {
    let checksums = state.pointee.map.checksums
    let start = Layout.headerSize + block * Layout.blockSize
    let end = min(start + Layout.blockSize, checksums.lowerBound)
    let expected = u32(checksums.lowerBound + block * 4)
    let found = Layout.checksum(UnsafeRawBufferPointer(rebasing: state.pointee.bytes[start..<end]))
    guard UInt32(truncatingIfNeeded: found) == expected else {
      if state.pointee.problem == nil { state.pointee.problem = .block(start..<end) }
      return false
    }
    state.pointee.verified[block] = 1
    return true
  }

  @inline(__always)
  private func u32(_ offset: Int) -> UInt32 {
    UInt32(littleEndian: state.pointee.bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}
