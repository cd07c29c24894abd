// A file of the format of address tables in few bytes.
//
//   0     flags: 1 sections with gaps, 2 the second overlaps the first, 4 a checksum of a block is wrong, 8 that of the
//         checksums, 16 that of the header, 32 another key, 64 a byte too many, 128 cut in the middle
//   1     bucket shift
//   2     first address (8 bytes)
//   10…   steps: kind, number to add to the section's count, length (2 bytes), that many bytes
//         kind 0–6    the section of this number
//         kind 7      addresses to ask, 8 bytes each
//         kind 8      offset (2 bytes) and bytes that replace the header's, before it is sealed
// Fuzz/make-seeds makes recipes from tables.

import CrashModel

/// What a table's file is made from.
struct TableRecipe {
  static let start = 10
  static let headSize = 4
  static let key = [UInt8](repeating: 0x6b, count: 32)

  /// One step of a recipe.
  struct Step {
    var kind: UInt8
    var added: UInt8
    var bytes: [UInt8]
  }

  var head: [UInt8]
  var steps: [Step] = []

  static func isFile(_ input: UnsafeRawBufferPointer) -> Bool {
    AddressTableLayout.magic.withUTF8Buffer { input.starts(with: $0) }
  }

  /// The last step ends with the input, whatever its length says.
  init?(_ input: UnsafeRawBufferPointer) {
    guard input.count >= Self.start else { return nil }
    head = Array(input.prefix(Self.start))
    var position = Self.start
    while position + Self.headSize <= input.count {
      let length = Int(input[position + 2]) | Int(input[position + 3]) << 8
      let bytes = Array(input[(position + Self.headSize)...].prefix(length))
      steps.append(Step(kind: input[position], added: input[position + 1], bytes: bytes))
      position += Self.headSize + bytes.count
    }
  }

  /// Of what fits into `limit` bytes.
  func bytes(limit: Int) -> [UInt8] {
    var recipe = head
    for step in steps where recipe.count + Self.headSize + step.bytes.count <= limit && step.bytes.count <= 0xffff {
      recipe += [step.kind, step.added, UInt8(truncatingIfNeeded: step.bytes.count), UInt8(step.bytes.count >> 8)]
      recipe += step.bytes
    }
    return recipe
  }

  private var firstAddress: UInt64 { Self.word(head, 2, width: 8) }

  /// Those that the recipe names, and a few on both sides of where ranges begin.
  func addresses() -> [UInt64] {
    var result: [UInt64] = [0, .max, firstAddress &- 1, firstAddress, firstAddress &+ 0x1_0000_0000]
    for step in steps {
      if step.kind == 7 {
        for index in 0..<min(step.bytes.count / 8, 16) { result.append(Self.word(step.bytes, index * 8, width: 8)) }
      } else if step.kind == AddressTableLayout.Section.starts.rawValue {
        for index in 0..<min(step.bytes.count / 4, 24) {
          let address = firstAddress &+ Self.word(step.bytes, index * 4, width: 4)
          result += index.isMultiple(of: 8) ? [address &- 1, address] : [address]
        }
      }
    }
    return result
  }

  func file() -> [UInt8] {
    typealias Layout = AddressTableLayout
    let flags = head[0]
    var file = [UInt8](repeating: 0, count: Layout.headerSize)
    var rows: [(offset: Int, count: Int)] = []
    for section in Layout.Section.allCases where section != .checksums {
      let step = steps.last { Int($0.kind) == section.rawValue }
      if flags & 1 != 0 { file += [UInt8](repeating: 0x55, count: 5) }
      let overlaps = flags & 2 != 0 && section == .values
      rows.append((overlaps ? rows[0].offset : file.count, (step?.bytes.count ?? 0) / section.stride))
      rows[rows.count - 1].count += Int(step?.added ?? 0)
      file += step?.bytes ?? []
      while file.count % 8 != 0 { file.append(0) }
    }
    let end = file.count
    let blocks = (end - Layout.headerSize + Layout.blockSize - 1) / Layout.blockSize
    rows.append((end, blocks))
    file += [UInt8](repeating: 0, count: blocks * 4)
    if flags & 64 != 0 { file.append(0) }
    file.withUnsafeMutableBytes { bytes in
      func put(_ value: UInt64, _ offset: Int, width: Int) {
        for index in 0..<width { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * index)) }
      }
      func sum(_ range: Range<Int>) -> UInt64 {
        Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[range]))
      }
      for block in 0..<blocks {
        let start = Layout.headerSize + block * Layout.blockSize
        let found = sum(start..<min(start + Layout.blockSize, end))
        put(flags & 4 != 0 && block == blocks - 1 ? ~found : found, end + block * 4, width: 4)
      }
      Layout.magic.withUTF8Buffer { UnsafeMutableRawBufferPointer(rebasing: bytes[..<$0.count]).copyBytes(from: $0) }
      put(UInt64(Layout.version), Layout.Header.version, width: 4)
      put(UInt64(bytes.count), Layout.Header.fileSize, width: 8)
      put(firstAddress, Layout.Header.firstAddress, width: 8)
      for (index, byte) in Self.key.enumerated() { bytes[Layout.Header.key + index] = flags & 32 != 0 ? ~byte : byte }
      put(UInt64(head[1]), Layout.Header.bucketShift, width: 4)
      for (index, row) in rows.enumerated() {
        put(UInt64(row.offset), Layout.Header.sections + index * 16, width: 8)
        put(UInt64(row.count), Layout.Header.sections + index * 16 + 8, width: 8)
      }
      let ofChecksums = sum(end..<end + blocks * 4)
      put(flags & 8 != 0 ? ~ofChecksums : ofChecksums, Layout.Header.checksumOfChecksums, width: 8)
      for step in steps where step.kind == 8 && step.bytes.count > 2 {
        let offset = Int(Self.word(step.bytes, 0, width: 2)) % Layout.headerSize
        for (target, byte) in zip(offset..<Layout.headerSize, step.bytes.dropFirst(2)) { bytes[target] = byte }
      }
      let ofHeader = sum(0..<Layout.Header.checksum)
      put(flags & 16 != 0 ? ~ofHeader : ofHeader, Layout.Header.checksum, width: 8)
    }
    if flags & 128 != 0 { file.removeLast(file.count / 2) }
    return file
  }

  static func word(_ bytes: [UInt8], _ offset: Int, width: Int) -> UInt64 {
    bytes[offset..<offset + width].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
  }
}
