internal import CrashModel

/// The names of a crash's frames, to be written into the lines that it was read from.
struct LineNames {
  private struct Key: Hashable {
    var address: UInt64
    var kind: FrameKind
  }

  /// Innermost first; all but the last were inlined.
  private var names: [Key: [SymbolicatedFrame]] = [:]

  private let images: [Image]

  init(_ report: CrashReport) {
    images = report.images
    for thread in report.threads {
      var chain: [SymbolicatedFrame] = []
      for case .symbolicated(let frame) in thread.frames {
        chain.append(frame)
        if frame.inlined { continue }
        let key = Key(address: frame.captured.address.rawValue, kind: frame.captured.kind)
        if frame.function != nil, names[key] == nil { names[key] = chain }
        chain = []
      }
    }
  }

  /// The lines to write for a line: itself, with a name if it is a frame without one, and before it one for each function
  /// that was inlined there.
  ///
  /// A log system that writes JSON may put a whole crash into one line, with `\n` between the crash's own: then each of
  /// those gets its names, and what is one line stays one.
  func lines(for line: [UInt8]) -> [[UInt8]] {
    guard !names.isEmpty else { return [line] }
    let feeds = Self.escapedLineFeeds(in: line)
    guard feeds.isEmpty else { return [named(line, between: feeds)] }
    guard let (place, chain) = frame(in: line) else { return [line] }
    return chain.map { Array(line[..<place.start]) + text(of: $0, at: place, in: line) + Array(line[place.behind...]) }
  }

  private func frame(in line: [UInt8]) -> (Place, [SymbolicatedFrame])? {
    guard let place = Place(in: line) else { return nil }
    let marked: FrameKind =
      Self.contains(line, "[ra]") ? .returnAddress : Self.contains(line, "[async]") ? .asyncResume : .programCounter
    // Formats without marks have one kind for each address.
    let kinds = [marked] + FrameKind.allCases.filter { $0 != marked }
    return kinds.lazy.compactMap { names[Key(address: place.address, kind: $0)] }.first.map { (place, $0) }
  }

  /// The address and the names behind it.
  private func text(of frame: SymbolicatedFrame, at place: Place, in line: [UInt8]) -> [UInt8] {
    var text = place.style.text(
      of: frame, in: frame.captured.imageIndex.flatMap { images.indices.contains($0) ? images[$0] : nil })
    if place.isInJSON { text = Self.escaped(text) }
    // Its place in the log's own look: before the address.
    let mark = frame.inlined && place.style == .swift ? "[inlined] " : ""
    return Array(mark.utf8) + Array(line[place.start..<place.end]) + Array(text.utf8)
  }

  private func named(_ line: [UInt8], between feeds: [Int]) -> [UInt8] {
    var result: [UInt8] = []
    var start = 0
    for end in feeds + [line.count] {
      let part = Array(line[start..<end])
      if let (place, chain) = frame(in: part) {
        // Before the first line stands what the document begins with.
        let quote = start == 0 ? part[..<place.start].lastIndex(of: UInt8(ascii: "\"")).map { $0 + 1 } ?? 0 : 0
        for (index, frame) in chain.enumerated() {
          result +=
            index == 0 ? part[..<place.start] : [UInt8(ascii: "\\"), UInt8(ascii: "n")] + part[quote..<place.start]
          result += text(of: frame, at: place, in: part)
        }
        result += part[place.behind...]
      } else {
        result += part
      }
      if end < line.count { result += line[end..<(end + 2)] }
      start = min(end + 2, line.count)
    }
    return result
  }

  /// Where `\n` stands for a line feed between two lines of a text in JSON. The one at the text's end separates nothing.
  private static func escapedLineFeeds(in line: [UInt8]) -> [Int] {
    var feeds: [Int] = []
    var index = 0
    while index + 1 < line.count {
      guard line[index] == UInt8(ascii: "\\") else {
        index += 1
        continue
      }
      if line[index + 1] == UInt8(ascii: "n"), index + 2 < line.count, line[index + 2] != UInt8(ascii: "\"") {
        feeds.append(index)
      }
      index += 2
    }
    return feeds
  }

  private static func contains(_ line: [UInt8], _ text: String) -> Bool {
    let needle = Array(text.utf8)
    return line.indices.dropLast(needle.count - 1).contains { line[$0...].starts(with: needle) }
  }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\" + String(scalar)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// How a format writes names.
  private enum Style {
    /// ` name in image at file:line`
    case swift
    /// ` in name file:line:column`
    case sanitizer
    /// A word in the place of the name.
    case word

    func text(of frame: SymbolicatedFrame, in image: Image?) -> String {
      let name = Self.line(frame.function ?? "")
      var place = ""
      if let file = frame.file {
        place = Self.line(file)
        if let line = frame.line, line > 0 {
          place += ":\(line)"
          if let column = frame.column, column > 0 { place += ":\(column)" }
        }
      }
      switch self {
      case .swift:
        return " " + name + (image.map { " in " + Self.line($0.name) } ?? "") + (place.isEmpty ? "" : " at \(place)")
      case .sanitizer: return " in " + name + (place.isEmpty ? "" : " \(place)")
      case .word: return " " + name
      }
    }

    private static func line(_ text: String) -> String {
      String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }))
    }
  }

  /// Where in a line the address of a frame without a name stands.
  private struct Place {
    var address: UInt64
    var start: Int
    /// Behind the address.
    var end: Int
    /// Where the line goes on behind the name.
    var behind: Int
    var style: Style
    /// What follows the text belongs to JSON around it.
    var isInJSON: Bool

    init?(in line: [UInt8]) {
      isInJSON = line.first { $0 > 0x20 } == UInt8(ascii: "{")
      var index = 0
      while index + 2 < line.count {
        guard line[index] == UInt8(ascii: "0"), line[index + 1] == UInt8(ascii: "x") else {
          index += 1
          continue
        }
        let digits = line[(index + 2)...].prefix { byte in
          switch byte {
          case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
          default: false
          }
        }
        guard let value = Hex.value(String(decoding: digits, as: UTF8.self)) else {
          index += 2
          continue
        }
        (address, start, end) = (value, index, digits.endIndex)
        let rest = line[end...]
        for word in [" n/a", " <unavailable>"] where rest.starts(with: word.utf8) {
          (behind, style) = (end + word.utf8.count, .word)
          return
        }
        if rest.starts(with: "]".utf8) {
          // `api(+0x21f0)[0x55d0c0a0a1f0]`
          end += 1
          (behind, style) = (end, .swift)
          return
        }
        if rest.starts(with: "  (".utf8) || rest.starts(with: " (/".utf8) {
          (behind, style) = (end, .sanitizer)
          return
        }
        guard Self.endsText(rest) else {
          index = end
          continue
        }
        (behind, style) = (end, .swift)
        if let next = rest.first(where: { $0 != 0x20 }), next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\") {
          isInJSON = true
        }
        return
      }
      return nil
    }

    /// Only what a log system or a terminal puts behind a line.
    private static func endsText(_ rest: ArraySlice<UInt8>) -> Bool {
      guard let next = rest.first(where: { $0 != 0x20 }) else { return true }
      return [0x0a, 0x0d, 0x1b, UInt8(ascii: "\""), UInt8(ascii: "\\")].contains(next)
    }
  }
}
