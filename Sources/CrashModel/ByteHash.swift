private import Glibc

/// Spreads texts over a table whose entries are compared in full: fast, and different in each process, so that nobody can
/// choose texts that meet. No digest: two texts may have one hash.
package struct ByteHash: Sendable {
  private let seed: UInt64
  private static let multiplier: UInt64 = 0xA076_1D64_78BD_642F
  private static let other: UInt64 = 0xE703_7ED1_A0B4_28DB

  package init() { seed = UInt64.random(in: .min ... .max) }

  package func callAsFunction(_ bytes: UnsafeRawBufferPointer) -> UInt64 { callAsFunction(bytes, behind: seed) }

  /// - Parameter value: the hash of what comes before.
  package func callAsFunction(_ bytes: UnsafeRawBufferPointer, behind value: UInt64) -> UInt64 {
    var value = value ^ UInt64(truncatingIfNeeded: bytes.count)
    var offset = 0
    while bytes.count - offset >= 16 {
      value = Self.mix(
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) ^ Self.multiplier,
        bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self) ^ value)
      offset += 16
    }
    let rest = bytes.count - offset
    var (first, second): (UInt64, UInt64) = (0, 0)
    if rest >= 8 {
      first = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      // What was read already is read again: all that counts is that each byte is.
      second = bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self)
    } else if rest >= 4 {
      first = UInt64(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
      second = UInt64(bytes.loadUnaligned(fromByteOffset: bytes.count - 4, as: UInt32.self))
    } else {
      for index in offset..<bytes.count { first = first << 8 | UInt64(bytes[index]) }
    }
    return Self.mix(first ^ Self.other, second ^ value ^ seed)
  }

  package func callAsFunction(_ number: UInt64, behind value: UInt64) -> UInt64 {
    Self.mix(number ^ Self.multiplier, value ^ seed ^ Self.other)
  }

  private static func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let (high, low) = left.multipliedFullWidth(by: right)
    return high ^ low
  }

  package static func isEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let one = left.baseAddress, let other = right.baseAddress else { return true }
    return memcmp(one, other, left.count) == 0
  }
}
