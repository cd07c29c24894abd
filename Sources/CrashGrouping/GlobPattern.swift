/// A pattern with `*` for any text and `?` for one character, of the whole text.
///
/// By bytes, and in time that grows with the product of both lengths at most, whatever the pattern: the last `*` is the only
/// one that is ever gone back to.
struct GlobPattern: Hashable, Sendable {
  private let pattern: [UInt8]

  init(_ text: String) { pattern = Array(text.utf8) }

  func matches(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { matches($0.span) }
  }

  private func matches(_ text: Span<UInt8>) -> Bool {
    var (place, index) = (0, 0)
    var star: (place: Int, index: Int)?
    while index < text.count {
      if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
        star = (place, index)
        place += 1
      } else if place < pattern.count, pattern[place] == UInt8(ascii: "?") {
        place += 1
        // The rest of a character of several bytes belongs to it.
        index += 1
        while index < text.count, text[index] & 0xc0 == 0x80 { index += 1 }
      } else if place < pattern.count, pattern[place] == text[index] {
        place += 1
        index += 1
      } else if let back = star {
        star = (back.place, back.index + 1)
        place = back.place + 1
        index = back.index + 1
      } else {
        return false
      }
    }
    return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
