/// Values behind a name that says that they are secret: `password=…`, `"accessToken": "…"`, `--token …`.
///
/// Found from the separator, which is rarer than a name, and read backwards: a name counts by its last words, whatever
/// stands before them and however they are joined (`db_password`, `dbPassword`, `DB-PASSWORD`).
enum NamedValueRule {
  /// Last words of names, in small letters without separators.
  private static let names: [StaticString] = [
    "password", "passwd", "pwd", "passphrase", "passcode", "secret", "secretkey", "accesskey", "apikey", "privatekey",
    "signingkey", "encryptionkey", "masterkey", "accountkey", "sharedkey", "authkey", "sshkey", "licensekey", "token",
    "auth", "credentials", "credential", "creds", "sessionid", "sessionkey", "cookie", "jwt", "otp", "pin", "pincode",
    "cvv", "cvc", "pass",
  ]
  /// These count only where the value holds a digit: `pin: out of range` tells nothing.
  private static let numericNames = 27..<32
  private static let passIndex = 32
  private static let cookieIndex = 25

  private static let namesByLastLetter: [[Int]] = {
    var table = [[Int]](repeating: [], count: 26)
    for (index, name) in names.enumerated() {
      table[Int(name.utf8Start[name.utf8CodeUnitCount - 1] - 97)].append(index)
    }
    return table
  }()

  static func values(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    var lineHasMySQL = false
    while index < text.count {
      var value: Range<Int>?
      switch text[index] {
      case UInt8(ascii: ":"), UInt8(ascii: "="): value = behindSeparator(text, index)
      case UInt8(ascii: "p"), UInt8(ascii: "P"): value = behindWord(text, index)
      case UInt8(ascii: "m") where text.has("mysql", at: index): lineHasMySQL = true
      case UInt8(ascii: "-"): value = behindOption(text, index, lineHasMySQL: lineHasMySQL)
      case 10: lineHasMySQL = false
      default: break
      }
      if let value, value.lowerBound >= (found.last?.upperBound ?? 0) {
        found.append(value)
        index = value.upperBound
      } else {
        index += 1
      }
    }
    return found
  }

  // MARK: Names

  // The name that ends in front of `end`, as an index in `names`.
  private static func name(_ text: Span<UInt8>, endingAt end: Int, from limit: Int) -> Int? {
    guard end > limit, Byte.isLetter(text[end - 1]) else { return nil }
    return namesByLastLetter[Int((text[end - 1] | 32) - 97)].first { index in
      let name = names[index]
      var position = end
      for offset in stride(from: name.utf8CodeUnitCount - 1, through: 0, by: -1) {
        while position > limit, text[position - 1] == UInt8(ascii: "_") || text[position - 1] == UInt8(ascii: "-") {
          position -= 1
        }
        guard position > limit, Byte.isLetter(text[position - 1]), text[position - 1] | 32 == name.utf8Start[offset]
        else { return false }
        position -= 1
      }
      guard position > limit, Byte.isAlphanumeric(text[position - 1]) else { return true }
      let before = text[position - 1]
      let isHump = Byte.isUpper(text[position]) && !Byte.isUpper(before)
      // `PGPASSWORD`: long words are found in names of capitals alone.
      let isCapitals = Byte.isUpper(text[position]) && Byte.isUpper(before) && name.utf8CodeUnitCount >= 5
      return isHump || (isCapitals && Byte.isUpper(text[end - 1]))
    }
  }

  private static let longestName = 64

  private static func behindSeparator(_ text: Span<UInt8>, _ separator: Int) -> Range<Int>? {
    var end = separator
    if end > 0, text[end - 1] == 32 { end -= 1 }
    if end > 0, Byte.isQuote(text[end - 1]) {
      end -= 1
      if end > 0, text[end - 1] == UInt8(ascii: "\\") { end -= 1 }
    }
    guard let name = name(text, endingAt: end, from: max(0, end - longestName)) else { return nil }
    var start = separator + 1
    if start < text.count, text[start] == text[separator] { return nil }  // `a::b`, `token == nil`
    if start < text.count, text[start] == UInt8(ascii: "=") || text[start] == UInt8(ascii: ">") { start += 1 }
    if text.has("//", at: start) { return nil }
    start = text.end(from: start) { $0 == 32 }
    return value(text, from: start, name: name, isAssignment: text[separator] == UInt8(ascii: "="))
  }

  // `passwd hunter3`, `password is hunter3`: a word of letters and digits behind the name.
  private static func behindWord(_ text: Span<UInt8>, _ index: Int) -> Range<Int>? {
    guard text.hasKey("passw", at: index), text.startsWord(index) else { return nil }
    let length = text.hasKey("password", at: index) ? 8 : text.hasKey("passwd", at: index) ? 6 : 0
    guard length > 0, index + length < text.count, text[index + length] == 32 else { return nil }
    var start = index + length + 1
    if text.hasKey("is ", at: start) { start += 3 }
    let end = text.end(from: start) { !Byte.isSpace($0) && !Byte.isQuote($0) }
    guard text.contains(in: start..<end, where: Byte.isDigit), text.contains(in: start..<end, where: Byte.isLetter),
      !text.contains(in: start..<end, where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "=") })
    else { return nil }
    return start..<end
  }

  // `--password hunter`, and `mysql -phunter`.
  private static func behindOption(_ text: Span<UInt8>, _ index: Int, lineHasMySQL: Bool) -> Range<Int>? {
    guard index == 0 || Byte.isSpace(text[index - 1]) else { return nil }
    if lineHasMySQL, text.has("-p", at: index) {
      let end = text.end(from: index + 2) { !Byte.isSpace($0) }
      return end > index + 2 ? index + 2..<end : nil
    }
    guard text.has("--", at: index) else { return nil }
    var end = index + 2
    while end < text.count, end - index < longestName, Byte.isToken(text[end]) { end += 1 }
    guard end + 1 < text.count, text[end] == 32, !Byte.isSpace(text[end + 1]), text[end + 1] != UInt8(ascii: "-"),
      let name = name(text, endingAt: end, from: index + 2)
    else { return nil }
    return value(text, from: end + 1, name: name, isAssignment: true)
  }

  // MARK: Values

  private static func value(_ text: Span<UInt8>, from first: Int, name: Int, isAssignment: Bool) -> Range<Int>? {
    guard let value = extent(text, from: first, name: name, isAssignment: isAssignment), !value.isEmpty else {
      return nil
    }
    if text.has("[redacted]", at: value.lowerBound), value.count == 10 { return value }
    if isNothing(text, value) { return nil }
    if numericNames.contains(name), !text.contains(in: value, where: Byte.isDigit) { return nil }
    // `pass=12 fail=0` counts.
    if name == passIndex, !text.contains(in: value, where: { !Byte.isDigit($0) }) || isVerdict(text, value) {
      return nil
    }
    return value
  }

  private static func isNothing(_ text: Span<UInt8>, _ value: Range<Int>) -> Bool {
    let words: [StaticString] = ["nil", "null", "none", "true", "false", "undefined", "(null)", "<nil>"]
    return words.contains { $0.utf8CodeUnitCount == value.count && text.hasKey($0, at: value.lowerBound) }
  }

  private static func isVerdict(_ text: Span<UInt8>, _ value: Range<Int>) -> Bool {
    let words: [StaticString] = ["ok", "yes", "no", "pass", "fail", "failed"]
    return words.contains { $0.utf8CodeUnitCount == value.count && text.hasKey($0, at: value.lowerBound) }
  }

  private static func extent(_ text: Span<UInt8>, from first: Int, name: Int, isAssignment: Bool) -> Range<Int>? {
    var start = first
    // `Optional("…")`, `Secret(value: "…")`: Swift's descriptions.
    for _ in 0..<3 {
      let word = text.end(from: start) { Byte.isAlphanumeric($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }
      guard word > start, word < text.count, text[word] == UInt8(ascii: "(") else { break }
      start = word + 1
      let label = text.end(from: start) { Byte.isAlphanumeric($0) || $0 == UInt8(ascii: "_") }
      if text.has(": ", at: label), label > start { start = label + 2 }
    }
    guard start < text.count else { return nil }
    // JSON in JSON has its quotes escaped.
    if text[start] == UInt8(ascii: "\\"), start + 1 < text.count, Byte.isQuote(text[start + 1]) {
      let quote = text[start + 1]
      var end = start + 2
      while end < text.count, text[end] != quote { end += 1 }
      if end < text.count, text[end - 1] == UInt8(ascii: "\\") { end -= 1 }
      return start + 2..<max(start + 2, end)
    }
    if Byte.isQuote(text[start]) {
      let quote = text[start]
      var end = start + 1
      while end < text.count, text[end] != quote { end += text[end] == UInt8(ascii: "\\") ? 2 : 1 }
      return start + 1..<min(end, text.count)
    }
    if text.has("[redacted]", at: start) { return start..<start + 10 }
    // A header's cookies go on behind the semicolon.
    let isHeader = name == cookieIndex && !isAssignment
    let end = text.end(from: start) { byte in
      if isHeader { return byte != 10 && byte != 13 && byte != UInt8(ascii: "\"") }
      return !Byte.isSpace(byte) && !Byte.isQuote(byte) && !isClosing(byte)
        && (byte != UInt8(ascii: "&") || !isAssignment)
    }
    return start..<end
  }

  private static func isClosing(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ",") || byte == UInt8(ascii: ";") || byte == UInt8(ascii: ")") || byte == UInt8(ascii: "]")
      || byte == UInt8(ascii: "}")
  }
}
