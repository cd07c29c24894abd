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
  private let firstAddress: UInt64
  private let bucketShift: UInt64
  private var sections: [Range<Int>] = []
  /// A bit for each block that was found to be as it was written.
  private var verified: [UInt64] = []
  /// Functions by index and paths by offset, as they were when they were last asked for.
  private var names: [UInt32: String] = [:]

  /// Why a file is no table of ours.
  struct Refusal: Error, Hashable {
    var reason: String
  }

  /// - Parameters:
  ///   - bytes: of the whole file. They stay valid until `release` is called, which happens once.
  ///   - key: 32 bytes that say what the table was made from.
  init(_ bytes: UnsafeRawBufferPointer, key: [UInt8], release: @escaping () -> Void) throws(Refusal) {
    self.bytes = bytes
    self.release = release
    firstAddress = bytes.count >= Layout.headerSize ? Self.u64(bytes, Layout.Header.firstAddress) : 0
    bucketShift = bytes.count >= Layout.headerSize ? UInt64(Self.u32(bytes, Layout.Header.bucketShift)) : 0
    try readHeader(key: key)
  }

  deinit { release() }

  private func readHeader(key: [UInt8]) throws(Refusal) {
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
    guard bucketShift < 32 else { throw Refusal(reason: "its header is damaged") }
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
      sections.append(offset..<end)
    }
    let checksums = sections[Layout.Section.checksums.rawValue]
    let blocks = (checksums.lowerBound - Layout.headerSize + Layout.blockSize - 1) / Layout.blockSize
    guard checksums.count / 4 >= blocks,
      Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[checksums]))
        == Self.u64(bytes, Layout.Header.checksumOfChecksums)
    else { throw Refusal(reason: "its checksums are damaged") }
    verified = Array(repeating: 0, count: blocks / 64 + 1)
  }

  // MARK: Answers

  /// The functions at an address, innermost first, as debug information and symbol table have them together; nil where
  /// neither knows the address.
  ///
  /// - Parameter nearestLines: replace line 0 by the nearest line of the same function.
  func functions(at address: UInt64, nearestLines: Bool) -> [SymbolicatedFunction]? {
    guard problem == nil, let range = range(of: address), var index = u32(.values, range) else { return nil }
    var functions: [SymbolicatedFunction] = []
    while index != Layout.none {
      guard let entry = entry(index), let function = function(entry, nearestLines: nearestLines) else { return nil }
      functions.append(function)
      guard functions.count <= UnitScanner.maximumDepth else {
        problem = "a chain of inlined functions in it is longer than any"
        return nil
      }
      // A parent stands before its children, so that damage cannot lead in a circle.
      guard entry.parent == Layout.none || entry.parent < index else {
        problem = "its entries are out of order"
        return nil
      }
      index = entry.parent
    }
    return functions.isEmpty ? nil : functions
  }

  /// Index of the range that an address lies in.
  private func range(of address: UInt64) -> Int? {
    let count = sections[Layout.Section.starts.rawValue].count / 4
    guard address >= firstAddress, address - firstAddress <= UInt64(UInt32.max), count > 0 else { return nil }
    let distance = UInt32(truncatingIfNeeded: address - firstAddress)
    let bucket = Int(UInt64(distance) >> bucketShift)
    let buckets = sections[Layout.Section.buckets.rawValue].count / 4
    guard bucket < buckets, let first = u32(.buckets, bucket) else { return nil }
    var low = Int(first)
    var high = count
    if bucket + 1 < buckets {
      guard let next = u32(.buckets, bucket + 1) else { return nil }
      high = min(count, Int(next) + 1)
    }
    // The last one that begins at or before the address.
    while low < high {
      let middle = low + (high - low) / 2
      guard let start = u32(.starts, middle) else { return nil }
      if start > distance { high = middle } else { low = middle + 1 }
    }
    return low > 0 ? low - 1 : nil
  }

  private func entry(_ index: UInt32) -> Layout.Entry? {
    guard let at = element(.entries, Int(index)) else { return nil }
    return Layout.Entry(
      function: Self.u32(bytes, at), parent: Self.u32(bytes, at + 4),
      position: Layout.Position(
        file: Self.u32(bytes, at + 8), line: Self.u32(bytes, at + 12), column: Self.u32(bytes, at + 16)),
      nearest: Self.u32(bytes, at + 20))
  }

  private func function(_ entry: Layout.Entry, nearestLines: Bool) -> SymbolicatedFunction? {
    guard let at = element(.functions, Int(entry.function)) else { return nil }
    var position = entry.position
    var isNearest = false
    if nearestLines, entry.nearest != Layout.none {
      guard let at = element(.positions, Int(entry.nearest)) else { return nil }
      position = Layout.Position(
        file: Self.u32(bytes, at), line: Self.u32(bytes, at + 4), column: Self.u32(bytes, at + 8))
      isNearest = true
    }
    let (name, declarationLine, flags) = (
      Self.u32(bytes, at), Self.u32(bytes, at + 4), Self.u32(bytes, at + 8)
    )
    func number(_ value: UInt32) -> Int? { value == Layout.none ? nil : Int(value) }
    let function = SymbolicatedFunction(
      rawFunction: string(name), file: string(position.file), line: number(position.line),
      column: number(position.column), declarationLine: number(declarationLine), approximate: isNearest,
      inlined: entry.parent != Layout.none, hasDebugInformation: flags & 1 != 0)
    return problem == nil ? function : nil
  }

  private func string(_ offset: UInt32) -> String? {
    if offset == Layout.none { return nil }
    if let known = names[offset] { return known }
    let section = sections[Layout.Section.strings.rawValue]
    let start = section.lowerBound + Int(offset)
    guard section.upperBound - start >= 4, verify(start..<start + 4) else { return damaged() }
    let length = Int(Self.u32(bytes, start))
    guard length <= section.upperBound - start - 4, verify(start + 4..<start + 4 + length) else { return damaged() }
    let text = String(decoding: bytes[start + 4..<start + 4 + length], as: UTF8.self)
    names[offset] = text
    return text
  }

  // MARK: Checked reads

  private func damaged<Value>() -> Value? {
    if problem == nil { problem = "it refers to places outside of itself" }
    return nil
  }

  /// Where an element begins, if there is one with this index and its bytes are as they were written.
  @inline(__always)
  private func element(_ section: Layout.Section, _ index: Int) -> Int? {
    let range = sections[section.rawValue]
    let at = range.lowerBound + index * section.stride
    guard index >= 0, at + section.stride <= range.upperBound else { return damaged() }
    return verify(at..<at + section.stride) ? at : nil
  }

  @inline(__always)
  private func u32(_ section: Layout.Section, _ index: Int) -> UInt32? {
    element(section, index).map { Self.u32(bytes, $0) }
  }

  /// Whether all blocks that hold `range` are as they were written.
  @inline(__always)
  private func verify(_ range: Range<Int>) -> Bool {
    var block = (range.lowerBound - Layout.headerSize) / Layout.blockSize
    let last = (max(range.upperBound, range.lowerBound + 1) - 1 - Layout.headerSize) / Layout.blockSize
    while block <= last {
      if verified[block / 64] >> UInt64(block % 64) & 1 == 0, !verifyBlock(block) { return false }
      block += 1
    }
    return true
  }

  @inline(never)
  private func verifyBlock(_ block: Int) -> Bool {
    let checksums = sections[Layout.Section.checksums.rawValue]
    let start = Layout.headerSize + block * Layout.blockSize
    let end = min(start + Layout.blockSize, checksums.lowerBound)
    let expected = Self.u32(bytes, checksums.lowerBound + block * 4)
    let found = Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
    guard UInt32(truncatingIfNeeded: found) == expected else {
      if problem == nil { problem = "its bytes \(start) to \(end) are not what was written" }
      return false
    }
    verified[block / 64] |= 1 << UInt64(block % 64)
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
