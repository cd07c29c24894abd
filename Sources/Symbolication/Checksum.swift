/// The CRC-32 by which a `.gnu_debuglink` names its file (the polynomial of zlib and Ethernet).
struct Checksum {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ value >> 1 : value >> 1 }
  }

  private var state: UInt32 = .max

  var value: UInt32 { ~state }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    Self.table.withUnsafeBufferPointer { table in
      for byte in bytes { state = table[Int((state ^ UInt32(byte)) & 255)] ^ state >> 8 }
    }
  }
}
