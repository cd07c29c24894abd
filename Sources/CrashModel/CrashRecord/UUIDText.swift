/// UUIDs of version 7 (RFC 9562): 48 bits of milliseconds, the rest random, so that they sort by time.
public enum UUIDText {
  /// The usual form with hyphens, for 16 bytes.
  public static func string(_ bytes: some Collection<UInt8>) -> String {
    var text = ""
    text.reserveCapacity(36)
    for (index, byte) in bytes.enumerated() {
      if index == 4 || index == 6 || index == 8 || index == 10 { text.append("-") }
      text.append(Hex.string(CollectionOfOne(byte)))
    }
    return text
  }

  /// - Parameters:
  ///   - milliseconds: since 1970. What does not fit into 48 bits is cut; a time before 1970 counts as 1970.
  ///   - entropy: 16 bytes, of which the last ten are used; missing ones count as 0.
  package static func version7(milliseconds: Int64, entropy: [UInt8]) -> [UInt8] {
    let time = UInt64(clamping: milliseconds)
    return (0..<16).map { index in
      if index < 6 { return UInt8(truncatingIfNeeded: time >> UInt64(40 - 8 * index)) }
      let random = index < entropy.count ? entropy[index] : 0
      return switch index {
      case 6: random & 0x0f | 0x70
      case 8: random & 0x3f | 0x80
      default: random
      }
    }
  }
}
