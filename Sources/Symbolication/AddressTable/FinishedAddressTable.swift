/// A table that is put together, on its way to a file or to memory.
///
/// Its sections stay the arrays that they are, and are handed out one after the other: one block of all of it would be as
/// much memory again, 110 MB for a program of 250 MB.
struct FinishedAddressTable {
  private typealias Layout = AddressTableLayout

  /// In the order of the file, each followed by zeros up to a multiple of eight.
  private let sections: [Section]
  private let header: [UInt8]
  private let checksums: [UInt32]
  let size: Int

  private enum Section {
    case numbers([UInt32])
    case entries([AddressTableLayout.Entry])
    case positions([AddressTableLayout.Position])
    case bytes([UInt8])

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
      switch self {
      case .numbers(let numbers): try numbers.withUnsafeBytes(body)
      case .entries(let entries): try entries.withUnsafeBytes(body)
      case .positions(let positions): try positions.withUnsafeBytes(body)
      case .bytes(let bytes): try bytes.withUnsafeBytes(body)
      }
    }
  }

  /// - Parameter key: of `AddressTableLayout.keySize` bytes.
  init(
    starts: [UInt32], values: [UInt32], buckets: [UInt32], entries: [AddressTableLayout.Entry],
    positions: [AddressTableLayout.Position], functions: [UInt32], strings: [UInt8], firstAddress: UInt64,
    bucketShift: UInt32, key: [UInt8]
  ) {
    // The arrays are the file's bytes as they are. Every machine that this builds for is little-endian.
    #if !_endian(little)
      #error("the sections of a table are written as they stand in memory")
    #endif
    assert(MemoryLayout<AddressTableLayout.Entry>.stride == Layout.Section.entries.stride)
    assert(MemoryLayout<AddressTableLayout.Position>.stride == Layout.Section.positions.stride)
    sections = [
      .numbers(starts), .numbers(values), .numbers(buckets), .entries(entries), .positions(positions),
      .numbers(functions), .bytes(strings),
    ]
    var places: [(offset: Int, count: Int)] = []
    var end = Layout.headerSize
    var digest = BlockDigest()
    for (section, kind) in zip(sections, Layout.Section.allCases) {
      section.withBytes { bytes in
        places.append((end, bytes.count / kind.stride))
        digest.add(bytes)
        end += bytes.count
      }
      let padding = (8 - end % 8) % 8
      Self.zeros.withUnsafeBytes { digest.add(UnsafeRawBufferPointer(rebasing: $0[..<padding])) }
      end += padding
    }
    checksums = digest.finish()
    places.append((end, checksums.count))
    size = end + checksums.count * 4
    header = Self.header(
      places, size: size, firstAddress: firstAddress, bucketShift: bucketShift, key: key,
      checksumOfChecksums: checksums.withUnsafeBytes { Layout.checksum($0) })
  }

  private static let zeros = [UInt8](repeating: 0, count: 8)

  private static func header(
    _ places: [(offset: Int, count: Int)], size: Int, firstAddress: UInt64, bucketShift: UInt32, key: [UInt8],
    checksumOfChecksums: UInt64
  ) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: Layout.headerSize)
    header.withUnsafeMutableBytes { bytes in
      func put(_ value: UInt32, _ offset: Int) {
        bytes.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt32.self)
      }
      func put64(_ value: UInt64, _ offset: Int) {
        bytes.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt64.self)
      }
      Layout.magic.withUTF8Buffer { UnsafeMutableRawBufferPointer(rebasing: bytes[..<$0.count]).copyBytes(from: $0) }
      put(Layout.version, Layout.Header.version)
      put64(UInt64(size), Layout.Header.fileSize)
      put64(firstAddress, Layout.Header.firstAddress)
      UnsafeMutableRawBufferPointer(rebasing: bytes[Layout.Header.key..<Layout.Header.key + Layout.keySize])
        .copyBytes(from: key)
      put(bucketShift, Layout.Header.bucketShift)
      for (index, place) in places.enumerated() {
        let at = Layout.Header.sections + index * 16
        put64(UInt64(place.offset), at)
        put64(UInt64(place.count), at + 8)
      }
      put64(checksumOfChecksums, Layout.Header.checksumOfChecksums)
      put64(
        Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<Layout.Header.checksum])), Layout.Header.checksum)
    }
    return header
  }

  /// Hands out the bytes of the file, from its beginning to its end, in pieces of any size.
  func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
    try header.withUnsafeBytes(body)
    var end = Layout.headerSize
    for section in sections {
      try section.withBytes { bytes in
        end += bytes.count
        try body(bytes)
      }
      let padding = (8 - end % 8) % 8
      end += padding
      try Self.zeros.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<padding])) }
    }
    try checksums.withUnsafeBytes(body)
  }
}

/// The checksum of each block of a stream of bytes.
private struct BlockDigest {
  private var checksums: [UInt32] = []
  /// The beginning of a block whose end has not come yet.
  private var rest: [UInt8] = []

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    let size = AddressTableLayout.blockSize
    var bytes = bytes
    if !rest.isEmpty {
      let missing = min(size - rest.count, bytes.count)
      rest.append(contentsOf: bytes[..<missing])
      bytes = UnsafeRawBufferPointer(rebasing: bytes[missing...])
      guard rest.count == size else { return }
      endBlock()
    }
    while bytes.count >= size {
      checksums.append(Self.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<size])))
      bytes = UnsafeRawBufferPointer(rebasing: bytes[size...])
    }
    rest.append(contentsOf: bytes)
  }

  mutating func finish() -> [UInt32] {
    if !rest.isEmpty { endBlock() }
    return checksums
  }

  private mutating func endBlock() {
    checksums.append(rest.withUnsafeBytes { Self.checksum($0) })
    rest.removeAll(keepingCapacity: true)
  }

  private static func checksum(_ block: UnsafeRawBufferPointer) -> UInt32 {
    UInt32(truncatingIfNeeded: AddressTableLayout.checksum(block))
  }
}
