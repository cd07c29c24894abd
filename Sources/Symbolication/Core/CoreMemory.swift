private import Glibc

/// The memory of a process as far as its core has it.
struct CoreMemory {
  private struct Segment {
    var address: UInt64
    /// In the file; shorter than the segment where the kernel left out what files hold.
    var bytes: Range<Int>
  }

  private let file: UnsafeRawBufferPointer
  /// Sorted by address.
  private let segments: [Segment]
  /// Bytes that the core's headers promise and its file does not have: it was cut.
  let missing: UInt64

  /// - Parameter segments: address, offset in the file and size in the file of each.
  init(file: UnsafeRawBufferPointer, segments: [(address: UInt64, offset: UInt64, size: UInt64)]) {
    self.file = file
    var missing: UInt64 = 0
    self.segments = segments.compactMap { segment in
      let start = Int(clamping: segment.offset)
      let there = max(0, min(Int(clamping: segment.size), file.count - start))
      missing = missing.addingReportingOverflow(segment.size - min(segment.size, UInt64(there))).partialValue
      return there > 0 ? Segment(address: segment.address, bytes: start..<start + there) : nil
    }.sorted { $0.address < $1.address }
    self.missing = missing
  }

  /// From an address to the end of what follows it without a gap in the same segment; nil where the core has nothing.
  func bytes(at address: UInt64) -> UnsafeRawBufferPointer? {
    let index = segments.partitioningIndex { $0.address > address }
    guard index > 0 else { return nil }
    let segment = segments[index - 1]
    let distance = address - segment.address
    guard distance < UInt64(segment.bytes.count) else { return nil }
    return UnsafeRawBufferPointer(rebasing: file[(segment.bytes.lowerBound + Int(distance))..<segment.bytes.upperBound])
  }

  /// - Returns: nil unless all of them are there.
  func bytes(at address: UInt64, count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, let found = bytes(at: address), found.count >= count else { return nil }
    return UnsafeRawBufferPointer(rebasing: found[..<count])
  }

  func word(at address: UInt64) -> UInt64? {
    bytes(at: address, count: 8).map { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
  }

  /// The bytes up to the first NUL, at most `limit`.
  func text(at address: UInt64, limit: Int) -> [UInt8] {
    guard let found = bytes(at: address) else { return [] }
    return Array(found.prefix(limit).prefix { $0 != 0 })
  }
}
