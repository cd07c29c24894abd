/// What stands before the first line of a crash and is none of the prefixes that are known: a process manager's `api: `,
/// another logger's `[2026-11-30 05:12:33] [error] `.
///
/// The next lines of the crash have the same before them, but for the time. So the words that hold nothing but digits and
/// the marks of a time may change, and all others may not: `worker-1` and `worker-2` are two processes.
struct UnknownPrefix: Equatable {
  private enum Part: Equatable {
    case fixed([UInt8])
    case time
    /// So many at least one.
    case spaces
  }

  private let parts: [Part]
  /// Longer ones are no prefix but a line in which a crash is mentioned.
  private static let limit = 256

  /// - Returns: nil for one that is too long to be any.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count <= Self.limit else { return nil }
    var parts: [Part] = []
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let isSpace = Self.isSpace(bytes[index])
      let end = bytes[index...].firstIndex { Self.isSpace($0) != isSpace } ?? bytes.endIndex
      let word = bytes[index..<end]
      parts.append(isSpace ? .spaces : Self.isTime(word) ? .time : .fixed(Array(word)))
      index = end
    }
    self.parts = parts
  }

  /// Only spaces: a line that is indented has no prefix.
  var isBlank: Bool { parts.allSatisfy { $0 == .spaces } }

  /// What of the key of a stream the prefix stands for.
  var key: [UInt8] {
    parts.flatMap { part -> [UInt8] in
      switch part {
      case .fixed(let bytes): bytes + [0]
      case .time: [1]
      case .spaces: []
      }
    }
  }

  /// The line behind the prefix; nil for a line with another one.
  func removed(from line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var rest = line
    for (index, part) in parts.enumerated() {
      switch part {
      case .fixed(let bytes):
        guard rest.starts(with: bytes) else { return nil }
        rest = rest.dropFirst(bytes.count)
      case .time:
        let word = rest.prefix { !Self.isSpace($0) }
        guard Self.isTime(word) else { return nil }
        rest = rest[word.endIndex...]
      case .spaces:
        let isLast = index == parts.count - 1
        // Of an empty line, a logger may have cut the space too.
        guard rest.first.map(Self.isSpace) ?? isLast else { return nil }
        // The indentation of the line itself begins behind the first one.
        rest = isLast ? rest.dropFirst() : rest.drop(while: Self.isSpace)
      }
    }
    return rest
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// `2026-11-30`, `[05:12:33.042]`, `30`, `Nov`.
  private static func isTime(_ word: ArraySlice<UInt8>) -> Bool {
    if LogPrefix.isMonthName(word) || LogPrefix.isDayName(word) { return true }
    guard word.contains(where: \.isASCIIDigit) else { return false }
    // A number in brackets alone is a process.
    if word.first == UInt8(ascii: "["), word.last == UInt8(ascii: "]") || word.last == UInt8(ascii: ":"),
      word.filter({ !$0.isASCIIDigit }).allSatisfy({
        [UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ":")].contains($0)
      })
    {
      return false
    }
    return word.allSatisfy { byte in
      byte.isASCIIDigit || "TZ:-./,+[]()|".utf8.contains(byte)
    }
  }
}
