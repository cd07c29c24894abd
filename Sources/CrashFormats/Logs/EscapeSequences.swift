/// Removes what only a terminal understands: colors, titles, erasures.
enum EscapeSequences {
  /// How an escape character looks in a log, besides as itself: `cat -v`, rsyslog, printf.
  private static let spellings: [StaticString] = ["^[[", "#033[", "\\033[", "\\x1b[", "\\x1B[", "\\e[", "\\u001b["]

  /// - Returns: nil where there is nothing to remove, as in nearly every line.
  static func removed(from line: ArraySlice<UInt8>) -> [UInt8]? {
    // Every spelling has the bracket, and a pipeline that drops the escape character leaves that.
    guard line.contains(where: { $0 == 0x1b || $0 == UInt8(ascii: "[") }) else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(line.count)
    var index = line.startIndex
    var isChanged = false
    while index < line.endIndex {
      if let end = sequence(at: index, in: line) {
        isChanged = true
        index = end
        continue
      }
      result.append(line[index])
      index += 1
    }
    return isChanged ? result : nil
  }

  /// The index behind an escape sequence that begins at `index`; nil where none does.
  private static func sequence(at index: Int, in line: ArraySlice<UInt8>) -> Int? {
    let byte = line[index]
    if byte == 0x1b {
      guard index + 1 < line.endIndex else { return index + 1 }
      switch line[index + 1] {
      case UInt8(ascii: "["):
        // Parameters, intermediate bytes, one final byte.
        let final = line[(index + 2)...].firstIndex { 0x40...0x7e ~= $0 || $0 < 0x20 } ?? line.endIndex
        return min(final + 1, line.endIndex)
      case UInt8(ascii: "]"):
        // A title: up to BEL or ESC \.
        let final = line[(index + 2)...].firstIndex { $0 == 0x07 || $0 == 0x1b } ?? line.endIndex
        guard final < line.endIndex else { return final }
        return line[final] == 0x07 ? final + 1 : min(final + 2, line.endIndex)
      default: return index + 2
      }
    }
    let rest = line[index...]
    if byte == UInt8(ascii: "^") || byte == UInt8(ascii: "#") || byte == UInt8(ascii: "\\"),
      let spelling = spellings.first(where: { rest.starts(with: $0) })
    {
      return color(from: index + spelling.utf8CodeUnitCount, in: line)
    }
    // `[91m`, of which the escape character was lost.
    return byte == UInt8(ascii: "[") ? color(from: index + 1, in: line, needsDigit: true) : nil
  }

  /// `91m`, `38;5;2m`, `0K`.
  private static func color(from start: Int, in line: ArraySlice<UInt8>, needsDigit: Bool = false) -> Int? {
    let parameters = line[start...].prefix(24).prefix { $0.isASCIIDigit || $0 == UInt8(ascii: ";") }
    guard parameters.endIndex < line.endIndex, !needsDigit || !parameters.isEmpty else { return nil }
    let final = line[parameters.endIndex]
    return final == UInt8(ascii: "m") || final == UInt8(ascii: "K") ? parameters.endIndex + 1 : nil
  }
}
