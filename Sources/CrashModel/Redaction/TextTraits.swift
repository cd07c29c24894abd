/// What one reading of a text tells about it, so that most rules need not look at it at all.
struct TextTraits {
  private(set) var digits = 0
  private(set) var colons = 0
  private(set) var dots = 0
  private(set) var hyphens = 0
  /// Length of the longest run of letters, digits, `-` and `_`.
  private(set) var longestWord = 0
  /// Marks of all its bytes; the letters that it has, in either case, stand in the upper half.
  private var seen: UInt64 = 0
  /// Two letters with two digits behind them, as an account number begins.
  private var hasAccountStart = false

  private enum Mark {
    static let at: UInt64 = 1
    static let slash: UInt64 = 2
    static let plus: UInt64 = 4
    static let equals: UInt64 = 8
    /// `?`, `#`, `%`, `\`: further bytes that the base rules start from.
    static let base: UInt64 = 16
    static let word: UInt64 = 32
    /// Two bits for each byte's kind.
    static let kindShift: UInt64 = 8
    static let letter: UInt64 = 1 << kindShift
    static let digit: UInt64 = 2 << kindShift
    static let accountStart: UInt64 = 0b01_01_10_10

    static func letter(_ byte: UInt8) -> UInt64 { 1 << UInt64(32 + (byte | 32) - UInt8(ascii: "a")) }
  }

  /// What a byte adds to four counts of 16 bits each.
  private enum Count {
    static let digit: UInt64 = 1
    static let colon: UInt64 = 1 << 16
    static let dot: UInt64 = 1 << 32
    static let hyphen: UInt64 = 1 << 48
  }

  private static let bytes: [(mark: UInt64, count: UInt64)] = (0..<256).map { value in
    let byte = UInt8(value)
    switch byte {
    case UInt8(ascii: "@"): return (Mark.at, 0)
    case UInt8(ascii: "/"): return (Mark.slash, 0)
    case UInt8(ascii: "+"): return (Mark.plus, 0)
    case UInt8(ascii: "="): return (Mark.equals, 0)
    case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "%"), UInt8(ascii: "\\"): return (Mark.base, 0)
    case UInt8(ascii: ":"): return (0, Count.colon)
    case UInt8(ascii: "."): return (0, Count.dot)
    case UInt8(ascii: "-"): return (Mark.word, Count.hyphen)
    default:
      if Byte.isDigit(byte) { return (Mark.word | Mark.digit, Count.digit) }
      if Byte.isLetter(byte) { return (Mark.word | Mark.letter | Mark.letter(byte), 0) }
      return (Byte.isToken(byte) ? Mark.word : 0, 0)
    }
  }

  /// A text without a branch for each byte: every text of every report goes through here.
  init(_ text: Span<UInt8>) {
    let table = Self.bytes.span
    var run = 0
    var kinds: UInt64 = 0
    var start = 0
    while start < text.count {
      // So few that no count overflows.
      let end = min(text.count, start + 0xffff)
      var counts: UInt64 = 0
      for index in start..<end {
        let byte = table[Int(text[index])]
        seen |= byte.mark
        counts &+= byte.count
        run = byte.mark & Mark.word != 0 ? run &+ 1 : 0
        longestWord = max(longestWord, run)
        kinds = (kinds &<< 2 | byte.mark &>> Mark.kindShift & 3) & 0xff
        hasAccountStart = hasAccountStart || kinds == Mark.accountStart
      }
      digits += Int(counts & 0xffff)
      colons += Int(counts >> 16 & 0xffff)
      dots += Int(counts >> 32 & 0xffff)
      hyphens += Int(counts >> 48)
      start = end
    }
  }

  /// Whether it has all of these letters, which a word that is made of them needs. Small letters.
  private func hasLetters(_ word: StaticString) -> Bool {
    word.withUTF8Buffer { letters in
      letters.allSatisfy { seen & Mark.letter($0) != 0 }
    }
  }

  /// `Authorization`, `Bearer`, `Basic`.
  var mayNameScheme: Bool { hasLetters("bear") || hasLetters("basic") || hasLetters("authorizn") }
  /// `password` and `passwd`, without a separator behind them.
  var mayNamePassword: Bool { hasLetters("pasw") }
  var hasAt: Bool { seen & Mark.at != 0 }
  var hasSlash: Bool { seen & Mark.slash != 0 }
  var hasPlus: Bool { seen & Mark.plus != 0 }
  var hasEquals: Bool { seen & Mark.equals != 0 }
  var wantsBaseRules: Bool { digits >= 7 || seen & (Mark.at | Mark.slash | Mark.base) != 0 }

  /// `xoxb-` and ten characters.
  static let shortestKey = 15
  var mayHoldKey: Bool { longestWord >= Self.shortestKey }
  var mayHoldAccount: Bool { digits >= 4 && hasAccountStart }
  var mayHoldWebToken: Bool { longestWord >= 10 && dots >= 2 }

  /// No rule can find anything.
  var isClean: Bool {
    digits == 0 && longestWord < Self.shortestKey && !mayHoldWebToken
      && colons == 0 && hyphens == 0 && seen & (Mark.at | Mark.slash | Mark.equals | Mark.base) == 0
  }
}
