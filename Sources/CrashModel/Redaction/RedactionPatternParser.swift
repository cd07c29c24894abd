/// Reads a pattern from left to right and builds its positions on the way.
struct RedactionPatternParser {
  typealias Positions = RedactionPattern.Positions
  typealias Problem = RedactionPattern.Problem

  /// What a part of a pattern begins and ends with.
  private struct Part {
    var first = Positions.zero
    var last = Positions.zero
    var canBeEmpty = true
  }

  private(set) var matching = [Positions](repeating: .zero, count: 256)
  private(set) var next: [Positions] = []
  private(set) var first = Positions.zero
  private(set) var last = Positions.zero
  private(set) var startsAtWord = false
  private(set) var endsAtWord = false
  private(set) var kept = 0

  private let text: [UInt8]
  private var index = 0
  private var ignoresCase = false
  private static let depthLimit = 32

  init(_ text: String) { self.text = Array(text.utf8) }

  mutating func parse() throws(Problem) -> RedactionPatternParser {
    if take("(?i)") { ignoresCase = true }
    if take("\\b") { startsAtWord = true }
    var lookedBehind = Part()
    if take("(?<=") {
      lookedBehind = try alternatives(depth: 1)
      guard take(")") else { throw problem("'(?<=' has no ')'") }
      kept = try lengthOfChain(lookedBehind)
    }
    let part = try alternatives(depth: 0)
    if index < text.count { throw problem("')' without '('") }
    if part.canBeEmpty { throw Problem(message: "it matches the empty text", offset: 0) }
    let whole = join(lookedBehind, part)
    (first, last) = (whole.first, whole.last)
    return self
  }

  private func problem(_ message: String) -> Problem { Problem(message: message, offset: index) }

  private mutating func take(_ word: StaticString) -> Bool {
    guard text.span.has(word, at: index) else { return false }
    index += word.utf8CodeUnitCount
    return true
  }

  // MARK: Structure

  private mutating func alternatives(depth: Int) throws(Problem) -> Part {
    guard depth <= Self.depthLimit else { throw problem("groups are nested more than \(Self.depthLimit) deep") }
    var result = try sequence(depth: depth)
    while take("|") {
      let other = try sequence(depth: depth)
      result.first |= other.first
      result.last |= other.last
      result.canBeEmpty = result.canBeEmpty || other.canBeEmpty
    }
    return result
  }

  private mutating func sequence(depth: Int) throws(Problem) -> Part {
    var result = Part()
    while index < text.count, text[index] != UInt8(ascii: "|"), text[index] != UInt8(ascii: ")") {
      if take("\\b") {
        guard depth == 0, index == text.count else {
          throw problem("'\\b' stands at the very beginning or the very end, or nowhere")
        }
        endsAtWord = true
        break
      }
      result = join(result, try repeated(depth: depth))
    }
    return result
  }

  private mutating func join(_ left: Part, _ right: Part) -> Part {
    connect(left.last, right.first)
    return Part(
      first: left.canBeEmpty ? left.first | right.first : left.first,
      last: right.canBeEmpty ? left.last | right.last : right.last,
      canBeEmpty: left.canBeEmpty && right.canBeEmpty)
  }

  private mutating func connect(_ from: Positions, _ to: Positions) {
    for position in next.indices where from[position / 64] & 1 << UInt64(position % 64) != 0 { next[position] |= to }
  }

  private mutating func repeated(depth: Int) throws(Problem) -> Part {
    let start = index
    var part = try atom(depth: depth)
    guard index < text.count else { return part }
    switch text[index] {
    case UInt8(ascii: "*"), UInt8(ascii: "+"):
      if text[index] == UInt8(ascii: "*") { part.canBeEmpty = true }
      connect(part.last, part.first)
      index += 1
    case UInt8(ascii: "?"):
      part.canBeEmpty = true
      index += 1
    case UInt8(ascii: "{"):
      let (least, most) = try counts()
      let end = index
      // Each repetition is read anew, as positions of its own.
      var result = Part()
      if most == 0 { throw problem("a repetition of nothing") }
      let copies = most ?? max(least, 1)
      for copy in 0..<copies {
        var next = part
        if copy > 0 {
          index = start
          next = try atom(depth: depth)
        }
        if copy == copies - 1, most == nil { connect(next.last, next.first) }
        if copy >= least { next.canBeEmpty = true }
        result = join(result, next)
      }
      index = end
      part = result
    default: return part
    }
    if index < text.count,
      [UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{")].contains(text[index])
    {
      throw problem("a repetition of a repetition; put the first one in '( )'")
    }
    return part
  }

  private mutating func counts() throws(Problem) -> (least: Int, most: Int?) {
    index += 1
    guard let least = number() else { throw problem("'{' without a number; write '\\{' for the character") }
    if take("}") { return (least, least) }
    guard take(",") else { throw problem("'{' has no '}'") }
    if take("}") { return (least, nil) }
    guard let most = number(), take("}") else { throw problem("'{' has no '}'") }
    guard least <= most else { throw problem("{\(least),\(most)} is upside down") }
    return (least, most)
  }

  private mutating func number() -> Int? {
    let end = text.span.end(from: index, while: Byte.isDigit)
    guard end > index, end - index <= 4, let value = Int(String(decoding: text[index..<end], as: UTF8.self)) else {
      return nil
    }
    index = end
    return value
  }

  private mutating func atom(depth: Int) throws(Problem) -> Part {
    let byte = text[index]
    switch byte {
    case UInt8(ascii: "("):
      index += 1
      if take("?") {
        guard take(":") else {
          throw problem("of groups that begin with '(?' only '(?:' is known, and '(?i)' and '(?<=' at the beginning")
        }
      }
      let part = try alternatives(depth: depth + 1)
      guard take(")") else { throw problem("'(' has no ')'") }
      return part
    case UInt8(ascii: "["): return try position(of: byteClass())
    case UInt8(ascii: "."):
      index += 1
      return try position(of: (0..<256).map { $0 != 10 })
    case UInt8(ascii: "\\"): return try position(of: escaped())
    case UInt8(ascii: "^"), UInt8(ascii: "$"):
      throw problem("'^' and '$' are not known; write '\\^' or '\\$' for the character")
    case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
      throw problem("nothing to repeat")
    default:
      index += 1
      var part = try position(of: Self.only(byte))
      // A character of several bytes is repeated as a whole.
      while byte >= 0xc0, index < text.count, text[index] & 0xc0 == 0x80 {
        let byte = text[index]
        index += 1
        part = join(part, try position(of: Self.only(byte)))
      }
      return part
    }
  }

  private mutating func position(of bytes: [Bool]) throws(Problem) -> Part {
    let position = next.count
    guard position < RedactionPattern.positionLimit else {
      throw problem("it is too long: more than \(RedactionPattern.positionLimit) characters with all repetitions")
    }
    next.append(.zero)
    for byte in 0..<256 where bytes[byte] || ignoresCase && Byte.isLetter(UInt8(byte)) && bytes[byte ^ 32] {
      matching[byte].insert(position)
    }
    var part = Part(canBeEmpty: false)
    part.first.insert(position)
    part.last.insert(position)
    return part
  }

  // MARK: Bytes

  private static func only(_ byte: UInt8) -> [Bool] { (0..<256).map { $0 == Int(byte) } }

  private static func shorthand(_ letter: UInt8) -> [Bool]? {
    let known: ((UInt8) -> Bool)?
    switch letter | 32 {
    case UInt8(ascii: "d"): known = Byte.isDigit
    case UInt8(ascii: "w"): known = { Byte.isAlphanumeric($0) || $0 == UInt8(ascii: "_") }
    case UInt8(ascii: "s"): known = Byte.isSpace
    default: known = nil
    }
    guard let known else { return nil }
    return (0..<256).map { known(UInt8($0)) != Byte.isUpper(letter) }
  }

  private mutating func escaped() throws(Problem) -> [Bool] {
    index += 1
    guard index < text.count else { throw problem("'\\' at the end") }
    let byte = text[index]
    if let bytes = Self.shorthand(byte) {
      index += 1
      return bytes
    }
    switch byte {
    case UInt8(ascii: "t"):
      index += 1
      return Self.only(9)
    case _ where Byte.isAlphanumeric(byte) || byte >= 0x80:
      throw problem("'\\\(String(decoding: [byte & 0x7f], as: UTF8.self))' is not known")
    default:
      index += 1
      return Self.only(byte)
    }
  }

  private mutating func byteClass() throws(Problem) -> [Bool] {
    let start = index
    index += 1
    let isNegated = take("^")
    var bytes = [Bool](repeating: false, count: 256)
    var isFirst = true
    while index < text.count, isFirst || text[index] != UInt8(ascii: "]") {
      isFirst = false
      if text[index] >= 0x80 { throw problem("a class takes ASCII characters; write '(ä|ö)' for others") }
      if text[index] == UInt8(ascii: "\\"), index + 1 < text.count, let known = Self.shorthand(text[index + 1]) {
        for byte in 0..<256 where known[byte] { bytes[byte] = true }
        index += 2
        continue
      }
      let low = try classMember()
      var high = low
      if index + 1 < text.count, text[index] == UInt8(ascii: "-"), text[index + 1] != UInt8(ascii: "]") {
        index += 1
        high = try classMember()
        guard low <= high else { throw problem("a range in '[ ]' that is upside down") }
      }
      for byte in low...high { bytes[Int(byte)] = true }
    }
    guard take("]") else { throw Problem(message: "'[' has no ']'", offset: start) }
    return isNegated ? bytes.enumerated().map { !$0.element && $0.offset != 10 } : bytes
  }

  private mutating func classMember() throws(Problem) -> UInt8 {
    if text[index] == UInt8(ascii: "\\") {
      index += 1
      guard index < text.count, !Byte.isAlphanumeric(text[index]) || text[index] == UInt8(ascii: "t") else {
        throw problem("an escape in '[ ]' that is not known")
      }
      index += 1
      return text[index - 1] == UInt8(ascii: "t") ? 9 : text[index - 1]
    }
    guard text[index] < 0x80 else { throw problem("a class takes ASCII characters") }
    index += 1
    return text[index - 1]
  }

  // MARK: Looking behind

  /// The number of bytes of a part that is nothing but one byte after the other.
  private func lengthOfChain(_ part: Part) throws(Problem) -> Int {
    let count = next.count
    for position in 0..<count {
      var only = Positions.zero
      if position + 1 < count { only.insert(position + 1) }
      guard next[position] == only else {
        throw problem("what stands in '(?<=' must have one length, without '|' and '*'")
      }
    }
    var (start, end) = (Positions.zero, Positions.zero)
    if count > 0 {
      start.insert(0)
      end.insert(count - 1)
    }
    guard count > 0, part.first == start, part.last == end, !part.canBeEmpty else {
      throw problem("what stands in '(?<=' must have one length, without '|', '?' and '*'")
    }
    return count
  }
}
