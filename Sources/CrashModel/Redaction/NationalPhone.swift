/// Telephone numbers as they are written within a country.
///
/// Groups of digits are versions, dates, coordinates and columns of a table far more often than telephone numbers. So only
/// these are taken: what stands behind a word for it, and what has the form of no other number.
enum NationalPhone {
  /// The end of the number that starts at `start`; nil where none does.
  static func end(_ text: Span<UInt8>, _ start: Int) -> Int? {
    let first = text[start]
    guard first == UInt8(ascii: "(") || Byte.isDigit(first) else { return nil }
    return ofNorthAmerica(text, start) ?? withTrunkPrefix(text, start) ?? behindWord(text, start)
  }

  /// `(555) 010-9999`, `555-010-9999`. Hyphens throughout, or a bracket: `555 010 9999` may be anything.
  private static func ofNorthAmerica(_ text: Span<UInt8>, _ start: Int) -> Int? {
    let isBracketed = text[start] == UInt8(ascii: "(")
    var index = start + (isBracketed ? 1 : 0)
    for (part, digits) in [3, 3, 4].enumerated() {
      guard hasDigits(text, digits, at: index) else { return nil }
      index += digits
      if part == 0, isBracketed {
        guard index < text.count, text[index] == UInt8(ascii: ")") else { return nil }
        index = text.has(") ", at: index) ? index + 2 : index + 1
      } else if part < 2 {
        guard index < text.count, text[index] == UInt8(ascii: "-") else { return nil }
        index += 1
      }
    }
    return (isBracketed || NumberRules.startsNumber(text, start)) && NumberRules.endsNumber(text, index) ? index : nil
  }

  private static func hasDigits(_ text: Span<UInt8>, _ count: Int, at index: Int) -> Bool {
    text.count - index >= count && !text.contains(in: index..<index + count, where: { !Byte.isDigit($0) })
  }

  // MARK: With the 0 that is dialled in front of an area

  /// `(020) 7946 0958`, `020-7946-0958`, `01.23.45.67.89`. With spaces alone it may be the bytes of a dump.
  private static func withTrunkPrefix(_ text: Span<UInt8>, _ start: Int) -> Int? {
    let isBracketed = text[start] == UInt8(ascii: "(")
    let zero = start + (isBracketed ? 1 : 0)
    guard zero + 1 < text.count, text[zero] == UInt8(ascii: "0"), Byte.isDigit(text[zero + 1]),
      text[zero + 1] != UInt8(ascii: "0")
    else { return nil }
    return isBracketed ? bracketed(text, start) : hyphenated(text, start) ?? inPairs(text, start)
  }

  private static func bracketed(_ text: Span<UInt8>, _ start: Int) -> Int? {
    guard text.startsWord(start) else { return nil }
    let area = group(text, start + 1)
    // A mode of a file, `(0644)`, has four octal digits.
    let isMode = area.count == 4 && !text.contains(in: area, where: { $0 > UInt8(ascii: "7") })
    guard (3...5).contains(area.count), !isMode, area.upperBound < text.count,
      text[area.upperBound] == UInt8(ascii: ")")
    else { return nil }
    let rest = area.upperBound + (text.has(") ", at: area.upperBound) ? 2 : 1)
    return number(text, rest, digits: 9 - area.count...12 - area.count, allowsDots: false, needsSeparator: false)
  }

  private static func hyphenated(_ text: Span<UInt8>, _ start: Int) -> Int? {
    guard NumberRules.startsNumber(text, start) else { return nil }
    var index = start
    var digits = 0
    for lengths in [2...4, 3...4, 4...4] {
      let group = group(text, index)
      guard lengths.contains(group.count) else { return nil }
      digits += group.count
      index = group.upperBound
      if lengths != 4...4 {
        guard index < text.count, text[index] == UInt8(ascii: "-") else { return nil }
        index += 1
      }
    }
    return (10...11).contains(digits) && NumberRules.endsNumber(text, index) ? index : nil
  }

  private static func inPairs(_ text: Span<UInt8>, _ start: Int) -> Int? {
    guard NumberRules.startsNumber(text, start), start + 14 <= text.count else { return nil }
    let separator = text[start + 2]
    guard separator == UInt8(ascii: ".") || separator == UInt8(ascii: "-") else { return nil }
    for offset in 0..<14 {
      let byte = text[start + offset]
      guard offset % 3 == 2 ? byte == separator : Byte.isDigit(byte) else { return nil }
    }
    let end = start + 14
    // With more pairs it is no number of this sort.
    guard NumberRules.endsNumber(text, end) else { return nil }
    return end + 1 < text.count && text[end] == UInt8(ascii: ".") && Byte.isDigit(text[end + 1]) ? nil : end
  }

  // MARK: Behind a word

  /// Written in one word with others too (`Mobiltelefon`, `userPhone`, `phone_number`).
  private static let words: [StaticString] = [
    "phone", "telephone", "cellphone", "tel", "telefon", "telefono", "telefone", "telefax", "mobiltelefon", "fax",
    "rufnummer", "msisdn",
  ]
  /// That are other words too: only with a separator, or in front of a number that looks like one.
  private static let weakWords: [StaticString] = ["mobile", "mobil", "handy"]
  private static let additions: [StaticString] = ["number", "nummer", "num", "no", "nr"]

  /// Seven to fifteen digits in groups of two and more: `phone: 555 0100`, `Telefon 030 / 90 18 20`.
  private static func behindWord(_ text: Span<UInt8>, _ start: Int) -> Int? {
    guard text.startsWord(start), start > 2 else { return nil }
    // Short of what a word could begin in front of: most numbers have a letter or nothing there.
    var end = start
    var isSeparated = false
    while end > 0, start - end < 4, isBetween(text[end - 1]) {
      end -= 1
      isSeparated = isSeparated || text[end] == UInt8(ascii: ":") || text[end] == UInt8(ascii: "=")
    }
    guard end < start, end > 1, Byte.isLetter(text[end - 1]) else { return nil }
    let isDialled = text[start] == UInt8(ascii: "0") || text[start] == UInt8(ascii: "(")
    guard names(text, end, words) || ((isSeparated || isDialled) && names(text, end, weakWords)) else { return nil }
    return number(text, start, digits: 7...15, allowsDots: isDialled, needsSeparator: true)
  }

  private static func isBetween(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: ":"), UInt8(ascii: "="), UInt8(ascii: "\""), UInt8(ascii: "'"),
      UInt8(ascii: "."),
      UInt8(ascii: "#"):
      true
    default: false
    }
  }

  private static func names(_ text: Span<UInt8>, _ end: Int, _ words: [StaticString]) -> Bool {
    if isWord(text, end, words) { return true }
    for addition in additions {
      var index = end - addition.utf8CodeUnitCount
      guard index > 1, text.hasKey(addition, at: index) else { continue }
      if text[index - 1] == UInt8(ascii: " ") || text[index - 1] == UInt8(ascii: "_")
        || text[index - 1] == UInt8(ascii: "-")
      {
        index -= 1
      }
      if isWord(text, index, words) { return true }
    }
    return false
  }

  /// Whether one of the words ends at `end`, and is no end of another word: a capital begins one, but for `iPhone`.
  private static func isWord(_ text: Span<UInt8>, _ end: Int, _ words: [StaticString]) -> Bool {
    for word in words {
      let start = end - word.utf8CodeUnitCount
      guard start >= 0, text.hasKey(word, at: start) else { continue }
      if start == 0 || !Byte.isLetter(text[start - 1]) { return true }
      let isCapital = Byte.isUpper(text[start]) && !Byte.isUpper(text[start - 1])
      if isCapital, !(text[start - 1] == UInt8(ascii: "i") && text.startsWord(start - 1)) { return true }
    }
    return false
  }

  // MARK: Digits

  private static func group(_ text: Span<UInt8>, _ start: Int) -> Range<Int> {
    var end = start
    while end < text.count, end - start < 16, Byte.isDigit(text[end]) { end += 1 }
    return start..<end
  }

  /// The end of groups of two digits and more with at most three separators between two of them.
  ///
  /// - Parameter allowsDots: between groups.
  private static func number(
    _ text: Span<UInt8>, _ start: Int, digits: ClosedRange<Int>, allowsDots: Bool, needsSeparator: Bool
  ) -> Int? {
    var (index, end, count, groups) = (start, start, 0, 0)
    while true {
      let group = group(text, index)
      if group.isEmpty {
        // A bracket in front, or nothing that goes on.
        guard index < text.count, index - end < 3, isSeparator(text[index], allowsDots: allowsDots) else { break }
        index += 1
        continue
      }
      guard group.count >= 2 else { return nil }
      // What comes behind the longest number is another one.
      if count + group.count > digits.upperBound, count >= digits.lowerBound { break }
      count += group.count
      groups += 1
      (index, end) = (group.upperBound, group.upperBound)
      guard count <= digits.upperBound else { return nil }
    }
    guard digits.contains(count), groups > 1 || !needsSeparator, NumberRules.endsNumber(text, end) else { return nil }
    return isDate(text, start) ? nil : end
  }

  private static func isSeparator(_ byte: UInt8, allowsDots: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "/"), UInt8(ascii: "("), UInt8(ascii: ")"): true
    case UInt8(ascii: "."): allowsDots
    default: false
    }
  }

  /// `2026-11-30`, `30/11/2026`.
  private static func isDate(_ text: Span<UInt8>, _ start: Int) -> Bool {
    let first = group(text, start)
    guard first.upperBound + 3 < text.count else { return false }
    let separator = text[first.upperBound]
    guard separator == UInt8(ascii: "-") || separator == UInt8(ascii: "/"), first.count == 4 || first.count == 2 else {
      return false
    }
    let second = group(text, first.upperBound + 1)
    guard second.count == 2, second.upperBound < text.count, text[second.upperBound] == separator else { return false }
    return group(text, second.upperBound + 1).count == 6 - first.count
  }
}
