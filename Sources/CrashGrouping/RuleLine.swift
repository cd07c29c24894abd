/// A line of a rules file, in words.
struct RuleLine {
  struct Word {
    var text: String
    /// What stands in front of the first colon outside of quotes; nil where there is none.
    var key: String?
    var value: String
    /// It began with a quote.
    var isQuoted: Bool
  }

  var words: [Word] = []

  /// - Parameter line: words with spaces or tabs between; quotes keep spaces, and `\"` and `\\` in them stand for `"` and
  ///   `\`. A word that begins with `#` begins a comment.
  init(_ line: Substring) throws(RuleProblem) {
    var rest = line
    while true {
      rest = rest.drop { $0 == " " || $0 == "\t" }
      guard let first = rest.first, first != "#" else { return }
      words.append(try Self.word(&rest))
    }
  }

  /// The words, however they were parted and quoted: no word has a NUL in it that another line could have here.
  var text: String { words.map { ($0.isQuoted ? "\"" : "") + $0.text }.joined(separator: "\0") }

  private static func word(_ rest: inout Substring) throws(RuleProblem) -> Word {
    var word = Word(text: "", key: nil, value: "", isQuoted: rest.first == "\"")
    var isInQuotes = false
    while let character = rest.first {
      rest = rest.dropFirst()
      switch character {
      case "\"":
        isInQuotes.toggle()
        continue
      case "\\" where isInQuotes && (rest.first == "\"" || rest.first == "\\"):
        word.add(rest.removeFirst())
        continue
      case " " where !isInQuotes, "\t" where !isInQuotes: return word
      case ":" where !isInQuotes && word.key == nil && !word.isQuoted:
        word.key = word.text
        word.text.append(character)
        word.value = ""
        continue
      default: word.add(character)
      }
    }
    if isInQuotes { throw RuleProblem("a quote is not closed") }
    return word
  }
}

extension RuleLine.Word {
  fileprivate mutating func add(_ character: Character) {
    text.append(character)
    value.append(character)
  }
}
