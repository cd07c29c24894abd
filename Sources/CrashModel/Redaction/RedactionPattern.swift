/// A regular expression of an own rule, and the search for it: over bytes, without backtracking.
///
/// What is understood: characters, `.`, `\d` `\w` `\s` and their capitals, classes `[a-z_]`, groups `( )` and `(?: )`, `|`,
/// `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`; at the very beginning `(?i)`, `\b` and a look-behind of fixed length `(?<=…)`, at
/// the very end `\b`. The longest of the matches that begin first counts.
///
/// The expression becomes a set of positions, one for each byte that it can match, with the positions that may follow each
/// (Glushkov's construction). Of a text every byte is looked at once for all of them, and then again within a match.
struct RedactionPattern: Sendable {
  struct Problem: Error {
    var message: String
    /// Bytes of the pattern before it.
    var offset: Int
  }

  /// A set of positions.
  typealias Positions = SIMD4<UInt64>
  static let positionLimit = 256

  /// By byte: the positions that match it.
  private let matching: [Positions]
  private let first: Positions
  private let last: Positions
  /// By position: those that may come next, and those that may have come before.
  private let next: [Positions]
  private let previous: [Positions]
  /// By byte: whether a match can begin with it.
  private let begins: [Bool]
  private let startsAtWord: Bool
  private let endsAtWord: Bool
  /// Bytes at the beginning of a match that stay.
  private let kept: Int

  /// - Throws: for what it does not understand, for what can match nothing at all, and for what is too large.
  init(_ text: String) throws(Problem) {
    var parser = RedactionPatternParser(text)
    let parsed = try parser.parse()
    matching = parsed.matching
    (first, last, next) = (parsed.first, parsed.last, parsed.next)
    var previous = [Positions](repeating: .zero, count: next.count)
    for (position, following) in next.enumerated() {
      Self.forEach(following) { previous[$0].insert(position) }
    }
    self.previous = previous
    begins = matching.map { ($0 & parsed.first) != .zero }
    (startsAtWord, endsAtWord, kept) = (parsed.startsAtWord, parsed.endsAtWord, parsed.kept)
  }

  @inline(__always)
  private static func forEach(_ positions: Positions, _ body: (Int) -> Void) {
    for word in 0..<4 {
      var bits = positions[word]
      while bits != 0 {
        body(word * 64 + bits.trailingZeroBitCount)
        bits &= bits &- 1
      }
    }
  }

  @inline(__always)
  private static func union(_ sets: Span<Positions>, of positions: Positions) -> Positions {
    var result = Positions.zero
    forEach(positions) { result |= sets[$0] }
    return result
  }

  /// What is to be replaced: ascending, without overlap.
  ///
  /// Linear. Only a match that could always have gone on, and never did, makes text be read twice; where that gets out of
  /// hand, all that is left of the text counts as found.
  func find(in text: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var position = 0
    // Bytes that may still be looked at, all in all.
    var patience = 64 &* text.count &+ 4096
    let begins = begins.span
    while position < text.count {
      guard begins[Int(text[position])] else {
        position += 1
        continue
      }
      guard let some = firstEnd(text, from: position, &patience) else { break }
      var start = leftmostStart(text, endingAt: some, from: position, &patience)
      var end = longestEnd(text, from: start, &patience) ?? some
      // One that ends later may begin earlier.
      for earlier in position..<start where begins[Int(text[earlier])] && patience >= 0 {
        guard !startsAtWord || text.isWordBoundary(earlier),
          let further = longestEnd(text, from: earlier, &patience)
        else { continue }
        (start, end) = (earlier, further)
        break
      }
      let range = min(start + kept, end)..<end
      if !range.isEmpty { found.append(range) }
      position = max(end, position + 1)
      if patience < 0 {
        if position < text.count { found.append(position..<text.count) }
        break
      }
    }
    return found
  }

  /// The end of the match that ends first.
  private func firstEnd(_ text: Span<UInt8>, from start: Int, _ patience: inout Int) -> Int? {
    let (matching, next) = (matching.span, next.span)
    var active = Positions.zero
    var index = start
    while index < text.count {
      var reachable = Self.union(next, of: active)
      if !startsAtWord || text.isWordBoundary(index) { reachable |= first }
      active = reachable & matching[Int(text[index])]
      index += 1
      if (active & last) != .zero, !endsAtWord || text.isWordBoundary(index) {
        patience -= index - start
        return index
      }
    }
    return nil
  }

  private func leftmostStart(_ text: Span<UInt8>, endingAt end: Int, from limit: Int, _ patience: inout Int) -> Int {
    let (matching, previous) = (matching.span, previous.span)
    var reachable = last
    var start = end - 1
    var index = end - 1
    while index >= limit {
      let active = reachable & matching[Int(text[index])]
      if active == .zero { break }
      if (active & first) != .zero, !startsAtWord || text.isWordBoundary(index) { start = index }
      reachable = Self.union(previous, of: active)
      index -= 1
    }
    patience -= end - index
    return start
  }

  private func longestEnd(_ text: Span<UInt8>, from start: Int, _ patience: inout Int) -> Int? {
    let (matching, next) = (matching.span, next.span)
    var reachable = first
    var end: Int?
    var index = start
    while index < text.count {
      let active = reachable & matching[Int(text[index])]
      if active == .zero { break }
      index += 1
      if (active & last) != .zero, !endsAtWord || text.isWordBoundary(index) { end = index }
      reachable = Self.union(next, of: active)
    }
    patience -= index - start
    return end
  }
}

extension RedactionPattern.Positions {
  mutating func insert(_ position: Int) { self[position / 64] |= 1 << UInt64(position % 64) }
}

extension Span<UInt8> {
  fileprivate func isWordBoundary(_ index: Int) -> Bool { startsWord(index) != endsWord(index) }
}
