/// One line of input of `symbolicate addr`, taken apart.
struct AddrLine {
  enum Problem: UInt8 {
    case none
    /// No hexadecimal number of at most 64 bits.
    case noAddress
    /// Neither `--exe` nor a name in the line.
    case noImage
    case dataAddress
    case tooLong
  }

  /// Empty where the line names none.
  var image = UnsafeRawBufferPointer(start: nil, count: 0)
  /// 0 where there is none, as `addr2line` takes it.
  var address: UInt64 = 0
  var problem = Problem.none

  /// - Parameters:
  ///   - line: without its line feed.
  ///   - namesImage: `IMAGE ADDRESS`; otherwise the address is the first word and what follows is not looked at, as
  ///     `addr2line` does.
  @inline(__always)
  init(_ line: UnsafeRawBufferPointer, namesImage: Bool) {
    var start = 0
    var end = line.count
    while start < end, Self.isSpace(line[start]) { start &+= 1 }
    while start < end, Self.isSpace(line[end &- 1]) { end &-= 1 }
    if end &- start > 5, Self.hasPrefix(line, start, "CODE ") {
      start &+= 5
      while start < end, Self.isSpace(line[start]) { start &+= 1 }
    } else if end &- start > 5, Self.hasPrefix(line, start, "DATA ") || Self.hasPrefix(line, start, "FRAME ") {
      problem = .dataAddress
      return
    }
    guard namesImage else {
      var wordEnd = start
      while wordEnd < end, !Self.isSpace(line[wordEnd]) { wordEnd &+= 1 }
      parse(line, start, wordEnd)
      return
    }
    var word = end
    while word > start, !Self.isSpace(line[word &- 1]) { word &-= 1 }
    parse(line, word, end)
    while word > start, Self.isSpace(line[word &- 1]) { word &-= 1 }
    // A name may hold spaces, in quotes or not: the address has none.
    if word &- start >= 2, line[start] == line[word &- 1],
      line[start] == UInt8(ascii: "\"") || line[start] == UInt8(ascii: "'")
    {
      start &+= 1
      word &-= 1
    }
    image = UnsafeRawBufferPointer(rebasing: line[start..<max(start, word)])
    if image.isEmpty, problem == .none { problem = .noImage }
  }

  init(problem: Problem) { self.problem = problem }

  @inline(__always)
  private mutating func parse(_ line: UnsafeRawBufferPointer, _ start: Int, _ end: Int) {
    var index = start
    if end &- index > 2, line[index] == UInt8(ascii: "0"), line[index &+ 1] | 0x20 == UInt8(ascii: "x") { index &+= 2 }
    var value: UInt64 = 0
    var isNumber = index < end
    while index < end {
      let byte = line[index]
      let letter = (byte | 0x20) &- UInt8(ascii: "a")
      let digit = byte &- UInt8(ascii: "0")
      guard digit < 10 || letter < 6 else {
        isNumber = false
        break
      }
      guard value >> 60 == 0 else {
        // What `strtoul` says of it; shown, and not looked up.
        address = .max
        problem = .noAddress
        return
      }
      value = value << 4 | UInt64(digit < 10 ? digit : letter &+ 10)
      index &+= 1
    }
    if isNumber { address = value } else { problem = .noAddress }
  }

  @inline(__always)
  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte &- 9 < 5 }

  @inline(__always)
  private static func hasPrefix(_ line: UnsafeRawBufferPointer, _ start: Int, _ prefix: StaticString) -> Bool {
    // The first byte decides for nearly all lines.
    guard line[start] == prefix.utf8Start.pointee, line.count &- start >= prefix.utf8CodeUnitCount else { return false }
    for offset in 0..<prefix.utf8CodeUnitCount where line[start &+ offset] != prefix.utf8Start[offset] { return false }
    return true
  }
}
