/// Rules for numbers that stand for a person, an account or a machine.
enum NumberRules {
  /// Country and length of the account numbers in the registry of ISO 13616.
  private static let countries: [UInt16: Int] = {
    let registry = """
      AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24FI18FO18FR27GB22GE22GI23GL18\
      GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15\
      PK24PL28PS29PT25QA29RO24RS22SA24SC31SE24SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20
      """
    let bytes = Array(registry.utf8)
    var countries: [UInt16: Int] = [:]
    for index in stride(from: 0, to: bytes.count - 3, by: 4) {
      countries[UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])] =
        Int(bytes[index + 2] - 48) * 10 + Int(bytes[index + 3] - 48)
    }
    return countries
  }()

  /// IBANs that pass the check of ISO 13616 (mod 97) and have their country's length: in capitals with or without spaces
  /// between their groups, in small letters in one piece.
  static func accounts(_ text: Span<UInt8>) -> [Range<Int>] {
    scan(text) { text, start in
      // The digits first: they are what most places fail at.
      guard start + 14 < text.count, Byte.isDigit(text[start + 2]), Byte.isDigit(text[start + 3]),
        Byte.isLetter(text[start]), Byte.isLetter(text[start + 1]), text.startsWord(start)
      else { return nil }
      let isCapital = Byte.isUpper(text[start])
      guard isCapital == Byte.isUpper(text[start + 1]),
        let length = countries[UInt16(text[start] & 0xdf) << 8 | UInt16(text[start + 1] & 0xdf)]
      else { return nil }
      var remainder = 0
      var count = 4
      var index = start + 4
      while index < text.count, count < length {
        let byte = text[index]
        if isCapital, byte == 32 {
          index += 1
          guard index < text.count, text[index] != 32 else { return nil }
          continue
        }
        guard Byte.isDigit(byte) || (Byte.isLetter(byte) && Byte.isUpper(byte) == isCapital) else { return nil }
        remainder = append(byte, to: remainder)
        count += 1
        index += 1
      }
      for position in start..<start + 4 { remainder = append(text[position], to: remainder) }
      return count == length && remainder == 1 && text.endsWord(index) ? index : nil
    }
  }

  private static func append(_ byte: UInt8, to remainder: Int) -> Int {
    Byte.isDigit(byte) ? (remainder * 10 + Int(byte) - 48) % 97 : (remainder * 100 + Int(byte & 0xdf) - 55) % 97
  }

  /// Payment cards: 13 to 19 digits with at most one space or hyphen between two, that pass the Luhn check.
  static func cards(_ text: Span<UInt8>) -> [Range<Int>] {
    scan(text) { text, start in
      guard (51...54).contains(text[start]), startsNumber(text, start) else { return nil }
      // Which digits count twice depends on how many there are: both sums are kept.
      var sums = (plain: 0, doubledLast: 0)
      var count = 0
      var index = start
      var end = start
      while index < text.count, count <= 19 {
        if Byte.isDigit(text[index]) {
          let digit = Int(text[index] - 48)
          let doubled = digit > 4 ? digit * 2 - 9 : digit * 2
          sums = (sums.doubledLast + digit, sums.plain + doubled)
          count += 1
          end = index + 1
        } else if text[index] != 32 && text[index] != UInt8(ascii: "-") || end != index {
          break
        }
        index += 1
      }
      guard (13...19).contains(count), endsNumber(text, end), sums.plain.isMultiple(of: 10) else { return nil }
      return end
    }
  }

  /// `123-45-6789`.
  static func socialSecurity(_ text: Span<UInt8>) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isDigit(text[start]), startsNumber(text, start), text.count - start >= 11 else { return nil }
      for offset in 0..<11 {
        let byte = text[start + offset]
        let isHyphen = offset == 3 || offset == 6
        guard isHyphen ? byte == UInt8(ascii: "-") : Byte.isDigit(byte) else { return nil }
      }
      return endsNumber(text, start + 11) ? start + 11 : nil
    }
  }

  /// International telephone numbers: `+`, then 8 to 15 digits with the usual separators. Without `+` those that nothing
  /// else looks like (`NationalPhone`).
  static func phones(_ text: Span<UInt8>) -> [Range<Int>] {
    scan(text) { text, start in
      if let end = NationalPhone.end(text, start) { return end }
      guard text[start] == UInt8(ascii: "+"), start + 1 < text.count, Byte.isDigit(text[start + 1]),
        text.startsWord(start)
      else { return nil }
      var digits = 0
      var separators = 0
      var end = start
      var index = start + 1
      while index < text.count, digits <= 15, separators < 3 {
        if Byte.isDigit(text[index]) {
          digits += 1
          separators = 0
          end = index + 1
        } else if isPhoneSeparator(text[index]) {
          separators += 1
        } else {
          break
        }
        index += 1
      }
      return (8...15).contains(digits) && text.endsWord(end) ? end : nil
    }
  }

  private static func isPhoneSeparator(_ byte: UInt8) -> Bool {
    byte == 32 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "(")
      || byte == UInt8(ascii: ")")
  }

  /// Six pairs of hex digits with colons or hyphens, or three groups of four with dots and a letter among them.
  static func hardwareAddresses(_ text: Span<UInt8>) -> [Range<Int>] {
    scan(text) { text, start in
      guard text.count - start >= 14 else { return nil }
      if text[start + 4] == UInt8(ascii: "."), let end = dottedHardwareAddress(text, start) { return end }
      guard text.count - start >= 17 else { return nil }
      let separator = text[start + 2]
      guard separator == UInt8(ascii: ":") || separator == UInt8(ascii: "-"), Byte.isHex(text[start]),
        text.startsWord(start), start == 0 || text[start - 1] != separator
      else { return nil }
      for offset in 0..<17 {
        let byte = text[start + offset]
        guard offset % 3 == 2 ? byte == separator : Byte.isHex(byte) else { return nil }
      }
      let end = start + 17
      return text.endsWord(end) && (end == text.count || text[end] != separator) ? end : nil
    }
  }

  private static func dottedHardwareAddress(_ text: Span<UInt8>, _ start: Int) -> Int? {
    guard text.startsWord(start), start == 0 || text[start - 1] != UInt8(ascii: ".") else { return nil }
    var hasLetter = false
    var hasDigit = false
    for offset in 0..<14 {
      let byte = text[start + offset]
      guard offset % 5 == 4 ? byte == UInt8(ascii: ".") : Byte.isHex(byte) else { return nil }
      hasLetter = hasLetter || Byte.isLetter(byte)
      hasDigit = hasDigit || Byte.isDigit(byte)
    }
    let end = start + 14
    return hasLetter && hasDigit && text.endsWord(end) && (end == text.count || text[end] != UInt8(ascii: "."))
      ? end : nil
  }

  /// Runs of seven or more decimal digits of other scripts (full width, Arabic, Persian, Devanagari, Bengali).
  static func otherDigits(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while index < text.count {
      var end = index
      var count = 0
      while let next = otherDigit(text, end) {
        end = next
        count += 1
      }
      if count >= 7 { found.append(index..<end) }
      index = max(end, index + 1)
    }
    return found
  }

  // Behind the digit that starts at `index`.
  private static func otherDigit(_ text: Span<UInt8>, _ index: Int) -> Int? {
    guard index + 1 < text.count, text[index] >= 0x80 else { return nil }
    let second = text[index + 1]
    switch text[index] {
    case 0xd9: return 0xa0...0xa9 ~= second ? index + 2 : nil
    case 0xdb: return 0xb0...0xb9 ~= second ? index + 2 : nil
    case 0xe0:
      guard second == 0xa5 || second == 0xa7, index + 2 < text.count else { return nil }
      return 0xa6...0xaf ~= text[index + 2] ? index + 3 : nil
    case 0xef:
      return second == 0xbc && index + 2 < text.count && 0x90...0x99 ~= text[index + 2] ? index + 3 : nil
    default: return nil
    }
  }

  /// IPv4 addresses but for the loopback net and `0.0.0.0`, which say nothing about anybody, and versions of four parts.
  static func internetAddresses(_ text: Span<UInt8>) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isDigit(text[start]), text.startsWord(start), start == 0 || text[start - 1] != UInt8(ascii: ".") else {
        return nil
      }
      var first = 0
      var others = 0
      var index = start
      for part in 0..<4 {
        var value = 0
        let begin = index
        while index < text.count, index - begin < 4, Byte.isDigit(text[index]) {
          value = value * 10 + Int(text[index] - 48)
          index += 1
        }
        guard (1...3).contains(index - begin), value <= 255 else { return nil }
        if part == 0 { first = value } else { others |= value }
        if part < 3 {
          guard index < text.count, text[index] == UInt8(ascii: ".") else { return nil }
          index += 1
        }
      }
      guard text.endsWord(index),
        !(index + 1 < text.count && text[index] == UInt8(ascii: ".") && Byte.isDigit(text[index + 1])),
        first != 127, first | others != 0, !followsVersion(text, start)
      else { return nil }
      return index
    }
  }

  private static func followsVersion(_ text: Span<UInt8>, _ start: Int) -> Bool {
    guard start > 0, text[start - 1] == 32 else { return false }
    return text.hasKey("version", at: start - 8) || text.hasKey("release", at: start - 8)
  }

  /// IPv6 addresses but for `::` and `::1`.
  static func internetAddresses6(_ text: Span<UInt8>) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isHex(text[start]) || text[start] == UInt8(ascii: ":"), text.startsWord(start),
        start == 0 || text[start - 1] != UInt8(ascii: ":"), hasColon(text, behind: start)
      else { return nil }
      var end = start
      while end < text.count, end - start < 41, Byte.isHex(text[end]) || text[end] == UInt8(ascii: ":") { end += 1 }
      guard end - start >= 6, end - start <= 39, text.endsWord(end) else { return nil }
      if text[end - 1] == UInt8(ascii: ":"), text[end - 2] != UInt8(ascii: ":") { end -= 1 }
      var groups = 0
      var length = 0
      var hasDigit = false
      var hasNumber = false
      var doubled = false
      for index in start...end {
        if index < end, text[index] != UInt8(ascii: ":") {
          if length == 0 { groups += 1 }
          length += 1
          hasDigit = hasDigit || Byte.isDigit(text[index])
          guard length <= 4 else { return nil }
          continue
        }
        // `a::b` may be C++; an address has numbers in it.
        if length >= 3, hasDigit { hasNumber = true }
        if index < end, index > start, length == 0 { doubled = true }
        length = 0
        hasDigit = false
      }
      guard hasNumber, groups >= 2, doubled ? groups <= 7 : groups == 8 else { return nil }
      return end
    }
  }

  // Within a group's four digits.
  private static func hasColon(_ text: Span<UInt8>, behind start: Int) -> Bool {
    for index in start..<min(start + 5, text.count) where text[index] == UInt8(ascii: ":") { return true }
    return false
  }

  // Asks at every position that is not inside a match; the rule looks a bounded way ahead and gives the match's end.
  @inline(__always)
  private static func scan(_ text: Span<UInt8>, _ rule: (Span<UInt8>, Int) -> Int?) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    while index < text.count {
      if let end = rule(text, index), end > index {
        found.append(index..<end)
        index = end
      } else {
        index += 1
      }
    }
    return found
  }

  static func startsNumber(_ text: Span<UInt8>, _ index: Int) -> Bool {
    text.startsWord(index)
      && (index == 0 || text[index - 1] != UInt8(ascii: "-") && text[index - 1] != UInt8(ascii: "."))
  }

  static func endsNumber(_ text: Span<UInt8>, _ index: Int) -> Bool {
    text.endsWord(index) && (index >= text.count || text[index] != UInt8(ascii: "-"))
  }
}
