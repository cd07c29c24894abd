/// Where things stand in the file of an address table: `docs/address-table.md`.
///
/// All numbers are little-endian. The file is a header, the sections in the order of `Section`, and the checksums of both.
enum AddressTableLayout {
  static let magic: StaticString = "addrtbl\n"
  /// Changes with every change of the format or of what is put into it: a file of another version counts for nothing.
  static let version: UInt32 = 1
  static let headerSize = 256
  static let keySize = 32
  /// Sections are verified in pieces of this size, each when it is first used.
  static let blockSize = 4096
  /// "None" of every index.
  static let none = UInt32.max

  /// Offsets in the header.
  enum Header {
    static let version = 8
    static let fileSize = 16
    static let firstAddress = 24
    static let key = 32
    static let bucketShift = 64
    static let sections = 72
    /// Of the checksums, and then of the header up to here.
    static let checksumOfChecksums = 240
    static let checksum = 248
  }

  enum Section: Int, CaseIterable {
    /// `UInt32` for each range: the distance of its start from the first address. Sorted; a range ends where the next begins.
    case starts
    /// `UInt32` for each range: its entry, or none.
    case values
    /// `UInt32` for each bucket of addresses: the last range that begins at or before the bucket.
    case buckets
    case entries
    case positions
    case functions
    /// A length of 4 bytes and so many bytes of UTF-8, for each string.
    case strings
    /// `UInt32` for each block between the header and this section.
    case checksums

    /// Size of an element in bytes.
    var stride: Int {
      switch self {
      case .starts, .values, .buckets, .checksums: 4
      case .entries: 24
      case .positions, .functions: 12
      case .strings: 1
      }
    }
  }

  /// One function at an address: the innermost one, or one that another was inlined into.
  struct Entry: Hashable {
    var function: UInt32
    /// The entry of the function that it was inlined into, which stands before it in the file; none for the outermost.
    var parent: UInt32
    /// Where its code, or the call in it, stands in the source. Each may be none.
    var position: Position
    /// Index of the nearest position with a line, where the line is 0.
    var nearest: UInt32
  }

  struct Position: Hashable {
    /// Offset of the path in the strings.
    var file = none
    var line = none
    var column = none
  }

  struct Function: Hashable {
    /// Offset of the linker's name in the strings.
    var name: UInt32
    var declarationLine: UInt32
    /// From debug information rather than from a symbol table.
    var hasDebugInformation: Bool
  }

  /// A fast checksum against damage of the disk and of software. Not against people: the folder is for its owner alone.
  static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    // Four lanes, so that the processor need not wait for one multiplication to begin the next.
    let factor: UInt64 = 0x9e37_79b9_7f4a_7c15
    var (a, b, c, d) = (factor, factor << 1 | 1, factor << 2 | 1, UInt64(truncatingIfNeeded: bytes.count))
    var offset = 0
    func word(_ at: Int) -> UInt64 { UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)) }
    func mix(_ state: UInt64, _ word: UInt64) -> UInt64 {
      let product = (state ^ word) &* factor
      return product << 31 | product >> 33
    }
    while offset + 32 <= bytes.count {
      a = mix(a, word(offset))
      b = mix(b, word(offset + 8))
      c = mix(c, word(offset + 16))
      d = mix(d, word(offset + 24))
      offset += 32
    }
    while offset < bytes.count {
      a = mix(a, UInt64(bytes[offset]))
      offset += 1
    }
    return mix(mix(mix(mix(factor, a), b), c), d)
  }
}
