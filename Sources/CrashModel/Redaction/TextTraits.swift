/// What one reading of a text tells about it, so that most rules need not look at it at all.
struct TextTraits {
  private(set) var digits = 0
  private(set) var colons = 0
  private(set) var dots = 0
  private(set) var hyphens = 0
  /// Length of the longest run of letters, digits, `-` and `_`.
  private(set) var longestWord = 0
  private var seen: UInt16 = 0

  private enum Mark {
    static let at: UInt16 = 1
    static let slash: UInt16 = 2
    static let plus: UInt16 = 4
    static let equals: UInt16 = 8
    /// `?`, `#`, `%`, `\`: further bytes that the base rules start from.
    static let base: UInt16 = 16
    static let digit: UInt16 = 32
    static let colon: UInt16 = 64
    static let dot: UInt16 = 128
    static let hyphen: UInt16 = 256
    static let word: UInt16 = 512
  }

  private static let marks: [UInt16] = (0..<256).map { value in
    let byte = UInt8(value)
    switch byte {
    case UInt8(ascii: "@"): return Mark.at
    case UInt8(ascii: "/"): return Mark.slash
    case UInt8(ascii: "+"): return Mark.plus
    case UInt8(ascii: "="): return Mark.equals
    case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "%"), UInt8(ascii: "\\"): return Mark.base
    case UInt8(ascii: ":"): return Mark.colon
    case UInt8(ascii: "."): return Mark.dot
    case UInt8(ascii: "-"): return Mark.hyphen | Mark.word
    default:
      if Byte.isDigit(byte) { return Mark.digit | Mark.word }
      return Byte.isToken(byte) ? Mark.word : 0
    }
  }

  init(_ text: Span<UInt8>) {
    let marks = Self.marks.span
    var run = 0
    for index in text.indices {
      let mark = marks[Int(text[index])]
      seen |= mark
      if mark & Mark.word != 0 {
        run += 1
        if mark & Mark.digit != 0 { digits += 1 } else if mark & Mark.hyphen != 0 { hyphens += 1 }
      } else {
        if run > longestWord { longestWord = run }
        run = 0
        if mark & Mark.colon != 0 { colons += 1 } else if mark & Mark.dot != 0 { dots += 1 }
      }
    }
    longestWord = max(longestWord, run)
  }

  var hasAt: Bool { seen & Mark.at != 0 }
  var hasSlash: Bool { seen & Mark.slash != 0 }
  var hasPlus: Bool { seen & Mark.plus != 0 }
  var hasEquals: Bool { seen & Mark.equals != 0 }
  var wantsBaseRules: Bool { digits >= 7 || seen & (Mark.at | Mark.slash | Mark.base) != 0 }

  /// `xoxb-` and ten characters.
  static let shortestKey = 15
  var mayHoldKey: Bool { longestWord >= Self.shortestKey }
  var mayHoldWebToken: Bool { longestWord >= 10 && dots >= 2 }

  /// No rule can find anything.
  var isClean: Bool {
    digits == 0 && longestWord < Self.shortestKey && !mayHoldWebToken
      && seen & (Mark.at | Mark.slash | Mark.equals | Mark.base | Mark.colon | Mark.hyphen) == 0
  }
}
