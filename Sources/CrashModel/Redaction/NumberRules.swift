/// Rules for numbers that stand for a person, an account or a machine.
enum NumberRules {
  /// IBANs, with or without spaces between their groups, that pass the check of ISO 13616 (mod 97).
  @Sendable static func accounts(_ text: [UInt8]) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isUpper(text[start]), text.startsWord(start), start + 4 < text.count, Byte.isUpper(text[start + 1]),
        Byte.isDigit(text[start + 2]), Byte.isDigit(text[start + 3])
      else { return nil }
      // At most 34 characters; the longest prefix that passes wins, so that a word behind the number stays.
      var remainder = 0
      var head = 0
      for byte in text[start..<start + 4] { head = append(byte, to: head) }
      var count = 4
      var index = start + 4
      var accepted: Int?
      while index < text.count, count < 34 {
        let byte = text[index]
        if byte == 32, index + 1 < text.count, Byte.isUpper(text[index + 1]) || Byte.isDigit(text[index + 1]) {
          index += 1
          continue
        }
        guard Byte.isUpper(byte) || Byte.isDigit(byte) else { break }
        remainder = append(byte, to: remainder)
        count += 1
        index += 1
        if count >= 15, text.endsWord(index), check(remainder, head: text[start..<start + 4]) { accepted = index }
      }
      return accepted
    }
  }

  private static func append(_ byte: UInt8, to remainder: Int) -> Int {
    Byte.isDigit(byte) ? (remainder * 10 + Int(byte) - 48) % 97 : (remainder * 100 + Int(byte) - 55) % 97
  }

  private static func check(_ remainder: Int, head: ArraySlice<UInt8>) -> Bool {
    head.reduce(remainder) { append($1, to: $0) } == 1
  }

  /// Payment cards: 13 to 19 digits with at most one space or hyphen between two, that pass the Luhn check.
  @Sendable static func cards(_ text: [UInt8]) -> [Range<Int>] {
    scan(text) { text, start in
      guard (51...54).contains(text[start]), startsNumber(text, start) else { return nil }
      var digits: [UInt8] = []
      var index = start
      var end = start
      while index < text.count, digits.count <= 19 {
        if Byte.isDigit(text[index]) {
          digits.append(text[index] - 48)
          end = index + 1
        } else if text[index] != 32 && text[index] != UInt8(ascii: "-") || end != index {
          break
        }
        index += 1
      }
      guard (13...19).contains(digits.count), endsNumber(text, end), luhn(digits) else { return nil }
      return end
    }
  }

  private static func luhn(_ digits: [UInt8]) -> Bool {
    var sum = 0
    for (index, digit) in digits.reversed().enumerated() {
      let value = Int(digit) * (index.isMultiple(of: 2) ? 1 : 2)
      sum += value > 9 ? value - 9 : value
    }
    return sum.isMultiple(of: 10)
  }

  /// `123-45-6789`.
  @Sendable static func socialSecurity(_ text: [UInt8]) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isDigit(text[start]), startsNumber(text, start), text.count - start >= 11 else { return nil }
      for (offset, byte) in text[start..<start + 11].enumerated() {
        let isHyphen = offset == 3 || offset == 6
        guard isHyphen ? byte == UInt8(ascii: "-") : Byte.isDigit(byte) else { return nil }
      }
      return endsNumber(text, start + 11) ? start + 11 : nil
    }
  }

  /// International telephone numbers: `+`, then 8 to 15 digits with the usual separators.
  @Sendable static func phones(_ text: [UInt8]) -> [Range<Int>] {
    scan(text) { text, start in
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
        } else if " -().".utf8.contains(text[index]) {
          separators += 1
        } else {
          break
        }
        index += 1
      }
      return (8...15).contains(digits) && text.endsWord(end) ? end : nil
    }
  }

  /// Six pairs of hex digits with colons or hyphens.
  @Sendable static func hardwareAddresses(_ text: [UInt8]) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isHex(text[start]), text.startsWord(start), text.count - start >= 17 else { return nil }
      let separator = text[start + 2]
      guard separator == UInt8(ascii: ":") || separator == UInt8(ascii: "-"),
        start == 0 || text[start - 1] != separator
      else { return nil }
      for (offset, byte) in text[start..<start + 17].enumerated() {
        guard offset % 3 == 2 ? byte == separator : Byte.isHex(byte) else { return nil }
      }
      let end = start + 17
      return text.endsWord(end) && (end == text.count || text[end] != separator) ? end : nil
    }
  }

  /// IPv4 addresses but for the loopback net and `0.0.0.0`, which say nothing about anybody.
  @Sendable static func internetAddresses(_ text: [UInt8]) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isDigit(text[start]), text.startsWord(start), start == 0 || text[start - 1] != UInt8(ascii: ".") else {
        return nil
      }
      var octets: [Int] = []
      var index = start
      while octets.count < 4 {
        let end = text.end(from: index, while: Byte.isDigit)
        guard (1...3).contains(end - index) else { return nil }
        let value = text[index..<end].reduce(0) { $0 * 10 + Int($1) - 48 }
        guard value <= 255 else { return nil }
        octets.append(value)
        index = end
        if octets.count < 4 {
          guard index < text.count, text[index] == UInt8(ascii: ".") else { return nil }
          index += 1
        }
      }
      guard text.endsWord(index),
        !(index + 1 < text.count && text[index] == UInt8(ascii: ".") && Byte.isDigit(text[index + 1]))
      else { return nil }
      return octets[0] == 127 || octets.allSatisfy({ $0 == 0 }) ? nil : index
    }
  }

  /// IPv6 addresses but for `::` and `::1`.
  @Sendable static func internetAddresses6(_ text: [UInt8]) -> [Range<Int>] {
    scan(text) { text, start in
      guard Byte.isHex(text[start]) || text[start] == UInt8(ascii: ":"), text.startsWord(start),
        start == 0 || text[start - 1] != UInt8(ascii: ":")
      else { return nil }
      var end = text.end(from: start) { Byte.isHex($0) || $0 == UInt8(ascii: ":") }
      guard end - start >= 6, end - start <= 39, text.endsWord(end) else { return nil }
      if text[end - 1] == UInt8(ascii: ":"), text[end - 2] != UInt8(ascii: ":") { end -= 1 }
      let groups = text[start..<end].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: true)
      var doubled = false
      for index in start..<end - 1 where text[index] == UInt8(ascii: ":") && text[index + 1] == UInt8(ascii: ":") {
        doubled = true
      }
      guard groups.allSatisfy({ $0.count <= 4 }), doubled ? groups.count <= 7 : groups.count == 8 else { return nil }
      // `a::b` may be C++; an address has numbers in it.
      guard groups.count >= 2, groups.contains(where: { $0.count >= 3 && $0.contains(where: Byte.isDigit) }) else {
        return nil
      }
      return end
    }
  }

  // Asks at every position that is not inside a match; the rule looks a bounded way ahead and gives the match's end.
  private static func scan(_ text: [UInt8], _ rule: ([UInt8], Int) -> Int?) -> [Range<Int>] {
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

  private static func startsNumber(_ text: [UInt8], _ index: Int) -> Bool {
    text.startsWord(index)
      && (index == 0 || text[index - 1] != UInt8(ascii: "-") && text[index - 1] != UInt8(ascii: "."))
  }

  private static func endsNumber(_ text: [UInt8], _ index: Int) -> Bool {
    text.endsWord(index) && (index >= text.count || text[index] != UInt8(ascii: "-"))
  }
}
