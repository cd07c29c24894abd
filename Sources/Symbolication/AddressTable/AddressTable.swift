private import CrashModel

/// All functions of a file by address: what takes seconds to gather from debug information, as a table that is mapped and
/// asked in microseconds.
///
/// Nothing in the file is believed: every index is checked against its section, and every block that is used against its
/// checksum. A table that fails either check answers nothing from then on (`problem`), and is built anew.
final class AddressTable {
  private typealias Layout = AddressTableLayout

  /// Why the table cannot be used any more; nil as long as it can.
  private(set) var problem: String?

  private let bytes: UnsafeRawBufferPointer
  private let release: () -> Void
  private let map: Map
  /// Not 0 for each block that was found to be as it was written. Plain memory: it is asked several times for each answer.
  private var verified = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)
  /// By offset, as they were when they were last asked for.
  private var names: [UInt32: String] = [:]

  /// Why a file is no table of ours.
  struct Refusal: Error, Hashable {
    var reason: String
  }

  /// Where in the file what is. The sections lie in this order, behind the header and before the end of the file.
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
  }

  /// - Parameters:
  ///   - bytes: of the whole file. They stay valid until `release` is called, which happens once.
  ///   - key: 32 bytes that say what the table was made from.
  init(_ bytes: UnsafeRawBufferPointer, key: [UInt8], release: @escaping () -> Void) throws(Refusal) {
    self.bytes = bytes
    self.release = release
    do throws(Refusal) { map = try Self.readHeader(bytes, key: key) } catch {
      map = Map()
      throw error
    }
    verified = .allocate(capacity: Self.blockCount(map))
    verified.initialize(repeating: 0)
  }

  deinit {
    verified.deallocate()
    release()
  }

  private static func readHeader(_ bytes: UnsafeRawBufferPointer, key: [UInt8]) throws(Refusal) -> Map {
    guard bytes.count >= Layout.headerSize else { throw Refusal(reason: "it is shorter than a header") }
    let isOurs = Layout.magic.withUTF8Buffer { $0.elementsEqual(bytes[..<$0.count]) }
    guard isOurs else { throw Refusal(reason: "it is no address table") }
    let version = Self.u32(bytes, Layout.Header.version)
    guard version == Layout.version else { throw Refusal(reason: "it has version \(version)") }
    let header = UnsafeRawBufferPointer(rebasing: bytes[..<Layout.Header.checksum])
    guard Layout.checksum(header) == Self.u64(bytes, Layout.Header.checksum) else {
      throw Refusal(reason: "its header is damaged")
    }
    guard Self.u64(bytes, Layout.Header.fileSize) == UInt64(bytes.count) else {
      throw Refusal(reason: "it has \(bytes.count) bytes instead of \(Self.u64(bytes, Layout.Header.fileSize))")
    }
    guard key.count == 32, key.elementsEqual(bytes[Layout.Header.key..<Layout.Header.key + 32]) else {
      throw Refusal(reason: "it was made from another file")
    }
    var map = Map()
    map.firstAddress = Self.u64(bytes, Layout.Header.firstAddress)
    map.bucketShift = UInt64(Self.u32(bytes, Layout.Header.bucketShift))
    guard map.bucketShift < 32 else { throw Refusal(reason: "its header is damaged") }
    var end = Layout.headerSize
    for section in Layout.Section.allCases {
      let at = Layout.Header.sections + section.rawValue * 16
      let offset = Int(clamping: Self.u64(bytes, at))
      let count = Int(clamping: Self.u64(bytes, at + 8))
      let (size, overflow) = count.multipliedReportingOverflow(by: section.stride)
      guard !overflow, offset >= end, offset <= bytes.count, size <= bytes.count - offset else {
        throw Refusal(reason: "its header is damaged")
      }
      end = offset + size
      switch section {
      case .starts: map.starts = offset..<end
      case .values: map.values = offset..<end
      case .buckets: map.buckets = offset..<end
      case .entries: map.entries = offset..<end
      case .positions: map.positions = offset..<end
      case .functions: map.functions = offset..<end
      case .strings: map.strings = offset..<end
      case .checksums: map.checksums = offset..<end
      }
    }
    guard map.checksums.count / 4 >= Self.blockCount(map),
      Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[map.checksums]))
        == Self.u64(bytes, Layout.Header.checksumOfChecksums)
    else { throw Refusal(reason: "its checksums are damaged") }
    return map
  }

  /// Blocks between the header and the checksums.
  private static func blockCount(_ map: Map) -> Int {
    (map.checksums.lowerBound - Layout.headerSize + Layout.blockSize - 1) / Layout.blockSize
  }

  // MARK: Answers

  /// The functions at an address, innermost first, as debug information and symbol table have them together; nil where
  /// neither knows the address.
  ///
  /// - Parameter nearestLines: replace line 0 by the nearest line of the same function.
  func functions(at address: UInt64, nearestLines: Bool) -> [SymbolicatedFunction]? {
    var result: [SymbolicatedFunction] = []
    let isWhole = forEachEntry(at: address, nearestLines: nearestLines) { entry in
      func number(_ value: UInt32) -> Int? { value == Layout.none ? nil : Int(value) }
      result.append(
        SymbolicatedFunction(
          rawFunction: string(entry.name), file: string(entry.position.file), line: number(entry.position.line),
          column: number(entry.position.column), declarationLine: number(entry.declarationLine),
          approximate: entry.isNearest, inlined: entry.isInlined, hasDebugInformation: entry.hasDebugInformation))
    }
    return isWhole && problem == nil && !result.isEmpty ? result : nil
  }

  /// For whoever reads ahead of the answers.
  var contents: (map: Map, bytes: UnsafeRawBufferPointer) { (map, bytes) }

  /// The same as bytes of the table, without what stands for no function.
  ///
  /// - Parameter chain: emptied first; stays empty where nothing is known of the address. After it `problem` tells whether
  ///   that is the answer.
  func fill(_ chain: inout AddressChain, at address: UInt64, nearestLines: Bool) {
    chain.removeAll()
    let isWhole = forEachEntry(at: address, nearestLines: nearestLines) { entry in
      func number(_ value: UInt32) -> UInt32? { value == Layout.none ? nil : value }
      chain.append(
        AddressChain.Function(
          name: stringBytes(entry.name), file: stringBytes(entry.position.file), line: number(entry.position.line),
          column: number(entry.position.column), inlined: entry.isInlined, approximate: entry.isNearest))
    }
    if !isWhole || problem != nil { chain.removeAll() }
  }

  /// One function at an address, with what other sections say of it.
  private struct ChainEntry {
    var name: UInt32
    var declarationLine: UInt32
    var hasDebugInformation: Bool
    var position: Layout.Position
    var isNearest: Bool
    var isInlined: Bool
  }

  /// - Returns: whether the chain came to its end; false too where the address is unknown.
  @inline(__always)
  private func forEachEntry(at address: UInt64, nearestLines: Bool, _ body: (ChainEntry) -> Void) -> Bool {
    guard problem == nil, let range = range(of: address), let value = element(map.values, stride: 4, range) else {
      return false
    }
    var index = Self.u32(bytes, value)
    while index != Layout.none {
      guard let at = element(map.entries, stride: 24, Int(index)),
        let function = element(map.functions, stride: 12, Int(Self.u32(bytes, at)))
      else { return false }
      let parent = Self.u32(bytes, at + 4)
      let nearest = Self.u32(bytes, at + 20)
      var place = at + 8
      let isNearest = nearestLines && nearest != Layout.none
      if isNearest {
        guard let position = element(map.positions, stride: 12, Int(nearest)) else { return false }
        place = position
      }
      body(
        ChainEntry(
          name: Self.u32(bytes, function), declarationLine: Self.u32(bytes, function + 4),
          hasDebugInformation: Self.u32(bytes, function + 8) & 1 != 0,
          position: Layout.Position(
            file: Self.u32(bytes, place), line: Self.u32(bytes, place + 4), column: Self.u32(bytes, place + 8)),
          isNearest: isNearest, isInlined: parent != Layout.none))
      // A parent stands before its children, so that damage cannot lead in a circle.
      guard parent == Layout.none || parent < index else {
        problem = "its entries are out of order"
        return false
      }
      index = parent
    }
    return true
  }

  /// Index of the range that an address lies in.
  @inline(__always)
  private func range(of address: UInt64) -> Int? {
    let count = map.starts.count / 4
    guard address >= map.firstAddress, address - map.firstAddress <= UInt64(UInt32.max), count > 0 else { return nil }
    let distance = UInt32(truncatingIfNeeded: address - map.firstAddress)
    let bucket = Int(UInt64(distance) >> map.bucketShift)
    let bucketCount = map.buckets.count / 4
    guard bucket < bucketCount, let first = element(map.buckets, stride: 4, bucket) else { return nil }
    var low = Int(Self.u32(bytes, first))
    var high = count
    if bucket + 1 < bucketCount {
      guard let next = element(map.buckets, stride: 4, bucket + 1) else { return nil }
      high = min(count, Int(Self.u32(bytes, next)) + 1)
    }
    // The last one that begins at or before the address.
    while low < high {
      let middle = low + (high - low) / 2
      guard let start = element(map.starts, stride: 4, middle) else { return nil }
      if Self.u32(bytes, start) > distance { high = middle } else { low = middle + 1 }
    }
    return low > 0 ? low - 1 : nil
  }

  private func string(_ offset: UInt32) -> String? {
    if let known = names[offset] { return known }
    guard let bytes = stringBytes(offset) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    names[offset] = text
    return text
  }

  @inline(__always)
  private func stringBytes(_ offset: UInt32) -> UnsafeRawBufferPointer? {
    if offset == Layout.none { return nil }
    let start = map.strings.lowerBound + Int(offset)
    guard map.strings.upperBound - start >= 4, verify(start, 4) else { return damaged() }
    let length = Int(Self.u32(bytes, start))
    guard length <= map.strings.upperBound - start - 4, length == 0 || verify(start + 4, length) else { return damaged() }
    return UnsafeRawBufferPointer(rebasing: bytes[start + 4..<start + 4 + length])
  }

  // MARK: Checked reads

  @inline(never)
  private func damaged<Value>() -> Value? {
    if problem == nil { problem = "it refers to places outside of itself" }
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
      if verified[block] == 0, !verifyBlock(block) { return false }
      block += 1
    }
    return true
  }

  @inline(never)
  private func verifyBlock(_ block: Int) -> Bool {
    let checksums = map.checksums
    let start = Layout.headerSize + block * Layout.blockSize
    let end = min(start + Layout.blockSize, checksums.lowerBound)
    let expected = Self.u32(bytes, checksums.lowerBound + block * 4)
    let found = Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
    guard UInt32(truncatingIfNeeded: found) == expected else {
      if problem == nil { problem = "its bytes \(start) to \(end) are not what was written" }
      return false
    }
    verified[block] = 1
    return true
  }

  @inline(__always)
  private static func u32(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  @inline(__always)
  private static func u64(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}
