/// Values behind a name that says that they are secret: `password=…`, `"accessToken": "…"`, `--token …`.
///
/// Found from the separator, which is rarer than a name, and read backwards: a name counts by its last words, whatever
/// stands before them and however they are joined (`db_password`, `dbPassword`, `DB-PASSWORD`).
enum NamedValueRule {
  /// What a value must look like, so that it counts as one.
  private enum Demand: Equatable {
    case none
    /// `pin: out of range` tells nothing.
    case digit
    /// `pass=12 fail=0` counts, `pass: ok` judges.
    case noCount
    /// Short words that mean other things too: `sig=11` is a signal, `session: 3` a number.
    case long
    /// A header, which goes on behind a semicolon.
    case header
  }

  /// Last words of names, in small letters without separators.
  private static let names: [(word: StaticString, demand: Demand)] = [
    ("password", .none), ("passwd", .none), ("pwd", .none), ("pw", .none), ("passphrase", .none), ("passcode", .none),
    ("secret", .none), ("secretkey", .none), ("secretkeybase", .none), ("accesskey", .none), ("apikey", .none),
    ("privatekey", .none), ("signingkey", .none), ("encryptionkey", .none), ("masterkey", .none),
    ("accountkey", .none), ("sharedkey", .none), ("authkey", .none), ("sshkey", .none), ("licensekey", .none),
    ("hmackey", .none), ("token", .none), ("auth", .none), ("credentials", .none), ("credential", .none),
    ("creds", .none), ("sessionid", .none), ("sessid", .none), ("sessionkey", .none), ("cookie", .header),
    ("jwt", .none), ("passwort", .none), ("kennwort", .none), ("parola", .none), ("sifre", .none),
    ("contrasena", .none), ("senha", .none), ("motdepasse", .none),
    ("otp", .digit), ("totp", .digit), ("otpcode", .digit), ("mfacode", .digit), ("onetimecode", .digit),
    ("verificationcode", .digit), ("securitycode", .digit), ("pin", .digit), ("pincode", .digit), ("cvv", .digit),
    ("cvc", .digit), ("pass", .noCount),
    ("sid", .long), ("sig", .long), ("signature", .long), ("session", .long),
  ]
  private static let longValue = 12

  private static let namesByLastLetter: [[Int]] = {
    var table = [[Int]](repeating: [], count: 26)
    for (index, name) in names.enumerated() {
      table[Int(name.word.utf8Start[name.word.utf8CodeUnitCount - 1] - 97)].append(index)
    }
    return table
  }()

  /// The last letters of the names, as `crash_suspicions` takes them.
  static let endings: [UInt32] = {
    var endings = [UInt32](repeating: 0, count: 676)
    for (word, _) in names {
      let end = word.utf8Start + word.utf8CodeUnitCount
      let isShort = word.utf8CodeUnitCount == 2
      endings[Int(end[-1] - 97) * 26 + Int(end[-2] - 97)] |= 1 << UInt32(isShort ? 26 : end[-3] - 97)
    }
    return endings
  }()

  /// Programs that take a secret behind an option of one letter, and whether it may stand in the same word.
  private static let programs: [(name: StaticString, option: StaticString, isAttached: Bool)] = [
    ("mysql", "-p", true), ("mariadb", "-p", true), ("sshpass", "-p", false), ("curl", "-u", false),
    ("redis-cli", "-a", false), ("docker login", "-p", false), ("mongosh", "-p", false), ("ldapsearch", "-w", false),
  ]

  /// Bytes at which something can begin.
  private static let triggers: [Bool] = (0..<256).map { ":=>%-pPiImscrdl".utf8.contains(UInt8($0)) }

  static func values(_ text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var index = 0
    var program: Int?
    // Of a value that had to hold a digit and holds none: whatever ends where it does holds none either, so that
    // `pin=pin=pin=…` is read once.
    var barren = 0
    let triggers = triggers.span
    while index < text.count {
      let byte = text[index]
      guard triggers[Int(byte)] else {
        if byte == 10 { program = nil }
        index += 1
        continue
      }
      var value: Range<Int>?
      switch byte {
      case UInt8(ascii: ":"), UInt8(ascii: "="): value = behindSeparator(text, index, &barren)
      case UInt8(ascii: ">"): value = behindTag(text, index) ?? behindArrow(text, index)
      case UInt8(ascii: "%"): value = behindEncodedSeparator(text, index)
      case UInt8(ascii: "-"): value = behindOption(text, index, program: program)
      case UInt8(ascii: "i"), UInt8(ascii: "I"): value = behindIdentified(text, index)
      default:
        if byte | 32 == UInt8(ascii: "p"), let word = behindWord(text, index) {
          value = word
        } else if index + 4 < text.count, text.startsWord(index) {
          program = programs.firstIndex { text.has($0.name, at: index) } ?? program
        }
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
      let name = names[index].word
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

  private static func behindSeparator(_ text: Span<UInt8>, _ separator: Int, _ barren: inout Int) -> Range<Int>? {
    var end = separator
    if end > 0, text[end - 1] == 32 { end -= 1 }
    // `["token"] = …`
    if end > 1, text[end - 1] == UInt8(ascii: "]"), Byte.isQuote(text[end - 2]) { end -= 1 }
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
    let needsDigit = names[name].demand == .digit || names[name].demand == .long
    if needsDigit, start < barren { return nil }
    guard let extent = extent(text, from: start, name: name, isAssignment: text[separator] == UInt8(ascii: "=")) else {
      return nil
    }
    let value = judged(text, extent, name: name)
    if value == nil, needsDigit, !text.contains(in: extent, where: Byte.isDigit) { barren = extent.upperBound }
    return value
  }

  // `<password>hunter</password>`
  private static func behindTag(_ text: Span<UInt8>, _ index: Int) -> Range<Int>? {
    var start = index
    while start > 0, index - start < longestName, Byte.isToken(text[start - 1]) { start -= 1 }
    guard start > 0, text[start - 1] == UInt8(ascii: "<") || text[start - 1] == UInt8(ascii: ":"),
      let name = name(text, endingAt: index, from: start)
    else { return nil }
    let end = text.end(from: index + 1) { $0 != UInt8(ascii: "<") && $0 != 10 }
    // `Array<Token>` is a type.
    guard text.has("</", at: end) else { return nil }
    return judged(text, index + 1..<end, name: name)
  }

  // `password -> hunter2`. With a digit in it: `token -> String` is a type.
  private static func behindArrow(_ text: Span<UInt8>, _ index: Int) -> Range<Int>? {
    guard index > 2, text[index - 1] == UInt8(ascii: "-"), text[index - 2] == 32,
      let name = name(text, endingAt: index - 2, from: max(0, index - 2 - longestName))
    else { return nil }
    let start = text.end(from: index + 1) { $0 == 32 }
    guard let value = value(text, from: start, name: name, isAssignment: true),
      text.contains(in: value, where: Byte.isDigit)
    else { return nil }
    return value
  }

  // `password%3Dhunter`, `%22password%22%3A%22hunter%22`: a query that was encoded as a whole.
  private static func behindEncodedSeparator(_ text: Span<UInt8>, _ index: Int) -> Range<Int>? {
    guard text.hasKey("%3d", at: index) || text.hasKey("%3a", at: index) else { return nil }
    var end = index
    if end >= 3, text.has("%22", at: end - 3) { end -= 3 }
    guard let name = name(text, endingAt: end, from: max(0, end - longestName)) else { return nil }
    var start = index + 3
    while text.has("%22", at: start) || text.has("%20", at: start) { start += 3 }
    if let end = text.redactedEnd(at: start) { return start..<end }
    var stop = start
    while stop < text.count, !Byte.isSpace(text[stop]), !Byte.isQuote(text[stop]), text[stop] != UInt8(ascii: "&"),
      !isClosing(text[stop])
    {
      if text.has("%2", at: stop), stop + 2 < text.count,
        text[stop + 2] == UInt8(ascii: "6") || text[stop + 2] == UInt8(ascii: "2")
          || text[stop + 2] | 32 == UInt8(ascii: "c")
      {
        break
      }
      stop += 1
    }
    return judged(text, start..<stop, name: name)
  }

  // `passwd hunter3`, `password is hunter3`, `Password for jane: hunter3`: a word with a digit in it behind the name. Or
  // one in quotes, as SQL has it: `PASSWORD 'hunter'`.
  private static func behindWord(_ text: Span<UInt8>, _ index: Int) -> Range<Int>? {
    guard text.hasKey("passw", at: index), text.startsWord(index) else { return nil }
    let length = text.hasKey("password", at: index) ? 8 : text.hasKey("passwd", at: index) ? 6 : 0
    guard length > 0, index + length < text.count else { return nil }
    var start = index + length
    if text[start] == UInt8(ascii: "("), start + 1 < text.count, Byte.isQuote(text[start + 1]) { start += 1 }
    if text[start] == 32 { start += 1 }
    guard start > index + length, start < text.count else { return nil }
    if Byte.isQuote(text[start]) {
      let quote = text[start]
      let end = text.end(from: start + 1) { $0 != quote && $0 != 10 && $0 != 32 }
      guard end < text.count, text[end] == quote, end > start + 1 else { return nil }
      return start + 1..<end
    }
    if text.hasKey("is ", at: start) {
      start += 3
    } else if text.hasKey("for ", at: start) {
      // Whose it is: two words at most.
      var end = start + 4
      let limit = min(text.count, end + 64)
      while end < limit, text[end] != UInt8(ascii: ":"), text[end] != 10 { end += 1 }
      guard end + 1 < limit, text[end] == UInt8(ascii: ":"), text[end + 1] == 32 else { return nil }
      start = end + 2
    }
    let end = text.end(from: start) { !Byte.isSpace($0) && !Byte.isQuote($0) && !isClosing($0) }
    guard text.contains(in: start..<end, where: Byte.isDigit), text.contains(in: start..<end, where: Byte.isLetter),
      !text.contains(in: start..<end, where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "=") })
    else { return nil }
    return start..<end
  }

  // `IDENTIFIED BY 'hunter'`
  private static func behindIdentified(_ text: Span<UInt8>, _ index: Int) -> Range<Int>? {
    guard text.hasKey("identified by ", at: index), text.startsWord(index) else { return nil }
    var start = index + 14
    if text.hasKey("password ", at: start) { start += 9 }
    guard start < text.count, Byte.isQuote(text[start]) else { return nil }
    let quote = text[start]
    let end = text.end(from: start + 1) { $0 != quote && $0 != 10 }
    return end > start + 1 ? start + 1..<end : nil
  }

  // `--password hunter`, and `mysql -phunter`.
  private static func behindOption(_ text: Span<UInt8>, _ index: Int, program: Int?) -> Range<Int>? {
    guard index == 0 || Byte.isSpace(text[index - 1]) else { return nil }
    if let program, text.has(programs[program].option, at: index) {
      var start = index + 2
      let isAttached = start < text.count && text[start] != 32
      if isAttached != programs[program].isAttached { return nil }
      start = text.end(from: start) { $0 == 32 || Byte.isQuote($0) }
      let end = text.end(from: start) { !Byte.isSpace($0) && !Byte.isQuote($0) }
      return end > start ? start..<end : nil
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
    guard let value = extent(text, from: first, name: name, isAssignment: isAssignment) else { return nil }
    return judged(text, value, name: name)
  }

  /// The value, unless it is none or not what the name stands for.
  private static func judged(_ text: Span<UInt8>, _ value: Range<Int>, name: Int) -> Range<Int>? {
    guard !value.isEmpty else { return nil }
    if text.redactedEnd(at: value.lowerBound) == value.upperBound { return value }
    if isNothing(text, value) { return nil }
    let hasDigit = text.contains(in: value, where: Byte.isDigit)
    switch names[name].demand {
    case .none, .header: return value
    case .digit: return hasDigit ? value : nil
    case .noCount:
      return text.contains(in: value, where: { !Byte.isDigit($0) }) && !isVerdict(text, value) ? value : nil
    case .long: return hasDigit && value.count >= longValue ? value : nil
    }
  }

  private static func isNothing(_ text: Span<UInt8>, _ value: Range<Int>) -> Bool {
    let words: [StaticString] = ["nil", "null", "none", "true", "false", "undefined", "(null)", "(null", "<nil>"]
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
    if let end = text.redactedEnd(at: start) { return start..<end }
    // A header's cookies go on behind the semicolon.
    let isHeader = names[name].demand == .header && !isAssignment
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
