/// Numbers and bytes as lower-case hexadecimal text.
public enum Hex {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Sixteen digits, without a prefix.
  public static func padded(_ value: UInt64) -> String {
    String(unsafeUninitializedCapacity: 16) { buffer in
      for index in 0..<16 {
        buffer[index] = digits[Int(truncatingIfNeeded: value >> UInt64(60 - 4 * index)) & 15]
      }
      return 16
    }
  }

  /// `0x` and the digits that the value needs, at least one.
  public static func prefixed(_ value: UInt64) -> String { "0x" + String(value, radix: 16) }

  /// Two digits for each byte.
  public static func string(_ bytes: some Collection<UInt8>) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { buffer in
      var index = 0
      for byte in bytes {
        buffer[index] = digits[Int(byte >> 4)]
        buffer[index + 1] = digits[Int(byte & 15)]
        index += 2
      }
      return index
    }
  }

  /// The same without a String.
  ///
  /// - Parameter place: room for twice as many digits.
  static func write(_ bytes: [UInt8], to place: UnsafeMutablePointer<UInt8>) {
    for index in bytes.indices {
      place[2 * index] = digits[Int(bytes[index] >> 4)]
      place[2 * index + 1] = digits[Int(bytes[index] & 15)]
    }
  }

  /// The bytes of an even number of hex digits in either case; nil where a character is none.
  public static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    var text = String(text)
    return text.withUTF8 { bytes(UnsafeRawBufferPointer($0)) }
  }

  /// The same of the bytes of a text.
  static func bytes(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    guard text.count.isMultiple(of: 2) else { return nil }
    var isHex = true
    let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 2) { bytes, count in
      while count < text.count / 2, let high = digit(text[2 * count]), let low = digit(text[2 * count + 1]) {
        bytes.initializeElement(at: count, to: high << 4 | low)
        count += 1
      }
      isHex = count == text.count / 2
    }
    return isHex ? bytes : nil
  }

  /// The value of text such as `0x1f` or `1F`; nil for anything else, and for more than 64 bits.
  public static func value(_ text: some StringProtocol) -> UInt64? {
    var digits = text.utf8[...]
    if digits.starts(with: "0x".utf8) || digits.starts(with: "0X".utf8) { digits = digits.dropFirst(2) }
    guard !digits.isEmpty else { return nil }
    var value: UInt64 = 0
    for character in digits {
      guard let digit = digit(character), value >> 60 == 0 else { return nil }
      value = value << 4 | UInt64(digit)
    }
    return value
  }

  static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
