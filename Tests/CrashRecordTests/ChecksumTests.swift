import CCrashFormat
import Testing

@Suite struct ChecksumTests {
  /// The polynomial itself, bit by bit, which no table can be wrong about.
  private func bitwise(_ start: UInt32, _ bytes: some Sequence<UInt8>) -> UInt32 {
    var remainder = ~start
    for byte in bytes {
      remainder ^= UInt32(byte)
      for _ in 0..<8 { remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0x82f6_3b78 : remainder >> 1 }
    }
    return ~remainder
  }

  /// RFC 3720, section B.4, and the check value that every catalogue of CRCs has for CRC-32C.
  @Test func knownValues() {
    #expect(crash_record_checksum(0, "123456789", 9) == 0xe306_9283)
    #expect(crash_record_checksum(0, [UInt8](repeating: 0, count: 32), 32) == 0x8a91_36aa)
    #expect(crash_record_checksum(0, [UInt8](repeating: 0xff, count: 32), 32) == 0x62a8_ab43)
    #expect(crash_record_checksum(0, "", 0) == 0)
  }

  @Test func everyLengthAndAlignmentIsTheSameAsBitByBit() {
    let bytes = (0..<200).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 3) }
    for start in 0..<9 {
      for length in [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 190] {
        let seed = UInt32(truncatingIfNeeded: start &* 0x9e37_79b9 &+ length)
        let found = bytes.withUnsafeBytes { crash_record_checksum(seed, $0.baseAddress.map { $0 + start }, length) }
        #expect(found == bitwise(seed, bytes[start..<start + length]))
      }
    }
  }
}
