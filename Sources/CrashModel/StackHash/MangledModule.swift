/// The module that defines a Swift function, read from its linker name.
///
/// A mangling starts with the context that the function stands in, module first, so a few bytes at its start say what is
/// needed; what follows (types, specialisations, thunks) does not matter. The demangled text is no substitute: that of a
/// specialisation starts with the specialisation, whose arguments name functions of other modules.
///
/// Grammar: docs/ABI/Mangling.rst of the Swift compiler. The parser goes forward only, keeps at most 26 words, calls
/// nothing recursively, and gives nil where it is not sure.
struct MangledModule {
  private let text: [UInt8]
  private var index: Int
  // Parts of identifiers that later identifiers refer to by a letter.
  private var words: [Range<Int>] = []

  /// - Returns: nil for other names than Swift's, for functions of no module (a reabstraction thunk), and for contexts
  ///   that this parser does not read.
  static func module(of rawFunction: String) -> String? {
    // `_T0`, which Swift 4 began its names with, has another grammar.
    guard SwiftName.isSwift(rawFunction), !rawFunction.hasPrefix("_T") else { return nil }
    let text = Array(rawFunction.utf8)
    var parser = MangledModule(text: text, index: text[0] == UInt8(ascii: "_") ? 3 : 2)
    return parser.context()
  }

  private init(text: [UInt8], index: Int) {
    self.text = text
    self.index = index
    words.reserveCapacity(26)
  }

  private var next: UInt8 { index < text.count ? text[index] : 0 }

  private mutating func skip(_ letter: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: letter) else { return false }
    index += 1
    return true
  }

  /// Words are only ever added, so that their number is enough to know which there were.
  private mutating func goBack(to place: (index: Int, wordCount: Int)) {
    index = place.index
    words.removeLast(words.count - place.wordCount)
  }

  // MARK: Context

  private mutating func context() -> String? {
    guard let start = moduleOrStandardType() else { return nil }
    let first = start.module
    var module = first
    var isType = start.isType
    // Each round takes a nested type or an extension, or ends.
    while index < text.count {
      if Byte.isDigit(next) {
        guard let name = identifier() else { break }
        skipDiscriminator()
        if isNominalKind(next) {
          index += 1
          isType = true
          continue
        }
        guard isType, isExtension() else { break }
        module = string(name)
        isType = false
      } else if isType, skip("s"), isExtension() {
        module = "Swift"
        isType = false
      } else if isType, next == UInt8(ascii: "A") {
        // The module that the name began with is its first substitution (`AA`, and `A2A` where the extension's
        // requirements begin with it too); another one is beyond this parser.
        var letter = index + 1
        while letter < text.count, Byte.isDigit(text[letter]) { letter += 1 }
        let isFirst = letter < text.count && text[letter] == UInt8(ascii: "A")
        skipSubstitution()
        guard isExtension() else { break }
        guard isFirst, !start.isType else { return nil }
        module = first
        isType = false
      } else {
        break
      }
    }
    return module
  }

  private mutating func moduleOrStandardType() -> (module: String, isType: Bool)? {
    if Byte.isDigit(next) { return identifier().map { (string($0), false) } }
    if skip("s") { return ("Swift", false) }
    guard skip("S"), index < text.count else { return nil }
    let letter = text[index]
    index += 1
    switch letter {
    case UInt8(ascii: "o"): return ("__C", false)
    case UInt8(ascii: "C"): return ("__C_Synthesized", false)
    case UInt8(ascii: "c"):
      // `Sc…`: types of concurrency, which are the module's `_Concurrency` and print as Swift's.
      guard Byte.isLetter(next) else { return nil }
      index += 1
      return ("Swift", true)
    default: return Byte.isLetter(letter) ? ("Swift", true) : nil
    }
  }

  private func isNominalKind(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "V"), UInt8(ascii: "C"), UInt8(ascii: "O"), UInt8(ascii: "P"), UInt8(ascii: "a"): true
    default: false
    }
  }

  private func isEntityKind(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "F"), UInt8(ascii: "f"), UInt8(ascii: "v"), UInt8(ascii: "i"), UInt8(ascii: "T"),
      UInt8(ascii: "W"), UInt8(ascii: "U"), UInt8(ascii: "Z"), UInt8(ascii: "M"):
      true
    default: false
    }
  }

  // `33_0123…LL` behind the name of something private, `L_`, `L0_` behind that of something local.
  private mutating func skipDiscriminator() {
    if next == UInt8(ascii: "L") {
      var end = index + 1
      while end < text.count, Byte.isDigit(text[end]) { end += 1 }
      if end < text.count, text[end] == UInt8(ascii: "_") { index = end + 1 }
      return
    }
    let before = (index, words.count)
    guard Byte.isDigit(next), identifier() != nil, skip("L"), skip("L") || skip("l") else {
      goBack(to: before)
      return
    }
  }

  // Behind a module's name: `E`, or the requirements of a constrained extension and `E`. On success the parser stands
  // behind the `E`, else where it stood.
  private mutating func isExtension() -> Bool {
    let before = (index, words.count)
    guard startsRequirements() else {
      goBack(to: before)
      return false
    }
    goBack(to: before)
    var previous: UInt8 = 0
    while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: "E") {
        guard index == before.0 || previous == UInt8(ascii: "l") else { break }
        index += 1
        return true
      }
      previous = byte
      if Byte.isDigit(byte) {
        guard identifier() != nil else { break }
      } else if byte == UInt8(ascii: "A") {
        skipSubstitution()
      } else if byte == UInt8(ascii: "S") {
        skipStandardType()
      } else if byte == UInt8(ascii: "R") {
        skipRequirement()
      } else if isEntityKind(byte) {
        break  // a function, a variable, a thunk: what stood before was its name and type
      } else {
        index += byte == UInt8(ascii: "Q") || byte == UInt8(ascii: "Y") || byte == UInt8(ascii: "X") ? 2 : 1
      }
    }
    goBack(to: before)
    return false
  }

  // Requirements begin with a type. A name alone is an argument's label, `y` and `_` begin a function's type: what looked
  // like a module was the function's name.
  private mutating func startsRequirements() -> Bool {
    if next == UInt8(ascii: "y") || next == UInt8(ascii: "_") { return false }
    guard Byte.isDigit(next) else { return true }
    guard identifier() != nil else { return false }
    if isNominalKind(next) || next == UInt8(ascii: "Q") { return true }
    guard Byte.isDigit(next), identifier() != nil else { return false }
    return isNominalKind(next)
  }

  // `AA`, `A2aD`, `A3_`: references to what was mangled before.
  private mutating func skipSubstitution() {
    index += 1
    while index < text.count {
      let byte = text[index]
      index += 1
      if Byte.isUpper(byte) || byte == UInt8(ascii: "_") { return }
      guard Byte.isAlphanumeric(byte) else {
        index -= 1
        return
      }
    }
  }

  // `Si`, `S2i`, `ScM`, `Sg`.
  private mutating func skipStandardType() {
    index += 1
    while index < text.count, Byte.isDigit(text[index]) { index += 1 }
    if next == UInt8(ascii: "c") { index += 1 }
    index += 1
  }

  // `Rz`, `Rsz`, `Rd__`, `RpzrlE`: kind, then which parameter.
  private mutating func skipRequirement() {
    index += 1
    while index < text.count {
      let byte = text[index]
      guard byte != UInt8(ascii: "E"), byte != UInt8(ascii: "l"), byte != UInt8(ascii: "r"), !Byte.isUpper(byte) else {
        return
      }
      index += 1
      if byte == UInt8(ascii: "z") || byte == UInt8(ascii: "_") { return }
    }
  }

  // MARK: Identifiers

  /// Most are passed over, so that none is made a String before somebody wants it.
  private enum Identifier {
    case piece(Range<Int>)
    /// Put together from words of earlier ones.
    case composed([UInt8])
  }

  private func string(_ identifier: Identifier) -> String {
    switch identifier {
    case .piece(let range): String(decoding: text[range], as: UTF8.self)
    case .composed(let bytes): String(decoding: bytes, as: UTF8.self)
    }
  }

  private mutating func identifier() -> Identifier? {
    var hasWords = false
    var isPunycode = false
    if skip("0") {
      if skip("0") { isPunycode = true } else { hasWords = true }
    }
    var name: [UInt8] = []
    repeat {
      while hasWords, Byte.isLetter(next) {
        let letter = next
        index += 1
        if Byte.isUpper(letter) { hasWords = false }
        let word = Int((letter | 32) &- UInt8(ascii: "a"))
        guard words.indices.contains(word) else { return nil }
        name += text[words[word]]
      }
      if skip("0") { break }
      guard let length = number(), length > 0 else { return nil }
      if isPunycode { _ = skip("_") }
      guard length <= text.count - index else { return nil }
      if !isPunycode { noteWords(index..<index + length) }
      if !hasWords, name.isEmpty {
        index += length
        return .piece(index - length..<index)
      }
      name += text[index..<index + length]
      index += length
    } while hasWords
    return .composed(name)
  }

  private mutating func number() -> Int? {
    var value = 0
    let start = index
    while Byte.isDigit(next), value < 1 << 24 {
      value = value * 10 + Int(next - 48)
      index += 1
    }
    return index > start ? value : nil
  }

  // A word starts at a letter and ends in front of `_`, of a capital behind anything else, and at the end.
  private mutating func noteWords(_ range: Range<Int>) {
    var start: Int?
    for position in range.lowerBound...range.upperBound {
      let byte = position < range.upperBound ? text[position] : 0
      if let begin = start {
        let isEnd = byte == 0 || byte == UInt8(ascii: "_") || (Byte.isUpper(byte) && !Byte.isUpper(text[position - 1]))
        if isEnd {
          if position - begin >= 2, words.count < 26 { words.append(begin..<position) }
          start = nil
        }
      }
      if start == nil, byte != 0, byte != UInt8(ascii: "_"), !Byte.isDigit(byte) { start = position }
    }
  }
}
