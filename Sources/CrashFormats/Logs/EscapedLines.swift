/// A crash that a logger wrote as one line, its line feeds spelled `\\n`: logfmt's `msg="…"`, what was printed as a literal.
enum EscapedLines {
  /// Longer ones are none.
  private static let limit = 16 * 1024 * 1024

  /// What follows a line feed within a crash.
  private static let marks: [StaticString] = [
    "Thread ", "*** ", "\u{1F4A3}", "#0 ", "#1 ", "0 ", "    #0 ", "    #1 ", "0x", "Received signal ",
    "Stack trace of ", "* thread #",
  ]

  /// - Returns: nil for a line of which nothing says that it is several.
  static func lines(of text: ArraySlice<UInt8>) -> [[UInt8]]? {
    // Nearly all lines end here.
    guard text.count <= limit, let first = text.firstIndex(of: "\\n"), isCrash(text[first...]) else { return nil }
    var lines: [[UInt8]] = [[]]
    var index = text.startIndex
    while index < text.endIndex {
      let next = index + 1
      guard text[index] == UInt8(ascii: "\\"), next < text.endIndex else {
        lines[lines.count - 1].append(text[index])
        index = next
        continue
      }
      index = next + 1
      switch text[next] {
      case UInt8(ascii: "n"): lines.append([])
      case UInt8(ascii: "t"): lines[lines.count - 1].append(0x09)
      case UInt8(ascii: "r"): break
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): lines[lines.count - 1].append(text[next])
      // Of an escape sequence, or whatever it is.
      default: lines[lines.count - 1] += [UInt8(ascii: "\\"), text[next]]
      }
    }
    return lines
  }

  private static func isCrash(_ text: ArraySlice<UInt8>) -> Bool {
    var rest = text
    var feeds = 0
    var isMarked = false
    while feeds < 64, let index = rest.firstIndex(of: "\\n") {
      rest = rest[(index + 2)...]
      feeds += 1
      isMarked = isMarked || marks.contains { rest.starts(with: $0) }
      if isMarked, feeds > 1 { return true }
    }
    return false
  }
}
