internal import CrashModel

/// What log systems write before each line, and the line behind it.
///
/// Docker and docker compose, Kubernetes' CRI, `kubectl logs --prefix`, the journal, syslog, Heroku, foreman: any of them
/// behind any other. What the list does not know, `UnknownPrefix` learns from the first line of a crash.
struct LogPrefix {
  /// Lines with equal keys come from one process. Times are not in it.
  private(set) var key: [UInt8] = []
  private(set) var timestamp: Timestamp?
  /// The line goes on in the next one of the same key.
  private(set) var isPartial = false
  /// Of the journal's or syslog's own part, the last: further lines of its message have as many spaces in its place.
  private(set) var journalWidth = 0
  /// The key without that part.
  private(set) var outerKey: [UInt8] = []
  private(set) var text: ArraySlice<UInt8>

  /// Each level is one log system; more than a few are no log.
  private static let levels = 6

  init(_ line: ArraySlice<UInt8>) {
    text = line
    // Behind the mark of a piece nothing is a prefix before the pieces are together.
    for _ in 0..<Self.levels where !isPartial {
      guard
        stripTime() || stripCompose() || stripPod() || stripPairs()
      else { return }
    }
  }

  private mutating func take(_ part: some Sequence<UInt8>, rest: ArraySlice<UInt8>) {
    key.append(contentsOf: part)
    key.append(0)
    text = rest
  }

  /// `api-1  | `
  private mutating func stripCompose() -> Bool {
    guard let first = text.first, first.isASCIILetter || first.isASCIIDigit else { return false }
    let name = text.prefix(128).prefix {
      $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
        || $0 == UInt8(ascii: ".")
    }
    // `7| let x` is a line of source.
    guard name.contains(where: \.isASCIILetter) else { return false }
    var scanner = LineScanner(text[name.endIndex...])
    let isPadded = scanner.skipSpaces() > 0
    guard scanner.skip("|") else { return false }
    // nerdctl puts none behind the bar, and always one in front.
    guard scanner.isAtEnd || scanner.skip(" ") || isPadded else { return false }
    take(name, rest: scanner.rest)
    return true
  }

  /// `[pod/api-7d4b/app] `
  private mutating func stripPod() -> Bool {
    guard text.starts(with: "[pod/") || text.starts(with: "[container/") else { return false }
    var scanner = LineScanner(text)
    let name = scanner.word()
    guard name.last == UInt8(ascii: "]") else { return false }
    if !scanner.isAtEnd { scanner.skip(1) }
    take(name, rest: scanner.rest)
    return true
  }

  /// logfmt: `ts=2026-11-30T05:12:33Z level=error pid=7 msg="Thread 1 \\"worker\\":"`, with quotes where a value needs them.
  private mutating func stripPairs() -> Bool {
    guard text.first?.isASCIILetter == true, text.contains("msg=") || text.contains("message=") else { return false }
    var scanner = LineScanner(text)
    var source: [UInt8] = []
    var moment: Timestamp?
    for _ in 0..<32 {
      let name = scanner.rest.prefix { $0.isASCIILetter || $0.isASCIIDigit || $0 == 0x5f || $0 == 0x2e || $0 == 0x2d }
      scanner.skip(name.count)
      guard !name.isEmpty, scanner.skip("=") else { return false }
      let isText = name.equals("msg") || name.equals("message")
      let value = Self.value(&scanner, isText: isText)
      if isText {
        timestamp = timestamp ?? moment
        take(source, rest: value)
        return true
      }
      if let time = Timestamp(logTime: value) {
        moment = moment ?? time
      } else if !name.equals("ts"), !name.equals("time"), !name.equals("t") {
        source += name + [0] + value.prefix(128) + [0]
      }
      guard scanner.skipSpaces() > 0 else { return false }
    }
    return false
  }

  /// - Parameter isText: several lines in one stay as they are written, to be taken apart by `EscapedLines`.
  private static func value(_ scanner: inout LineScanner, isText: Bool) -> ArraySlice<UInt8> {
    guard scanner.skip("\"") else {
      let rest = scanner.rest
      let word = scanner.word()
      guard isText else { return word }
      // Whoever forgot the quotes wrote the line as it was, to its end.
      var next = scanner
      next.skipSpaces()
      let name = next.rest.prefix { $0.isASCIILetter || $0 == 0x5f }
      return next.isAtEnd || !name.isEmpty && next.rest[name.endIndex...].first == UInt8(ascii: "=") ? word : rest
    }
    var value: [UInt8] = []
    var isEscaped = false
    var length = 0
    for byte in scanner.rest {
      if !isEscaped, byte == UInt8(ascii: "\"") { break }
      length += 1
      isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
    }
    let raw = scanner.rest.prefix(length)
    scanner.skip(min(length + 1, scanner.rest.count))
    if isText, raw.contains("\\n") { return raw }
    var index = raw.startIndex
    while index < raw.endIndex {
      if raw[index] == UInt8(ascii: "\\"), index + 1 < raw.endIndex {
        index += 1
        value.append(raw[index] == UInt8(ascii: "t") ? 0x09 : raw[index])
      } else {
        value.append(raw[index])
      }
      index += 1
    }
    return value[...]
  }

  /// A time, and what stands behind it only there.
  private mutating func stripTime() -> Bool {
    var scanner = LineScanner(text)
    if scanner.skip("<") {
      // Syslog over a network: `<13>1 `, `<13>`.
      guard let priority = scanner.decimal(), priority < 192, scanner.skip(">") else { return false }
      _ = scanner.skip("1 ")
    }
    guard let isSyslog = skipTime(&scanner) else { return false }
    guard scanner.isAtEnd || scanner.skipOneSpace() else { return false }
    var rest = scanner.rest
    var part: [UInt8] = []
    var partial = false
    if let stream = Self.criStream(&scanner, &partial) {
      part = Array(stream)
      rest = scanner.rest
    } else if let source = Self.journalSource(scanner.rest, isSyslog: isSyslog) {
      part = Array(source.name)
      rest = source.rest
      journalWidth = text.count - rest.count
      outerKey = key
    }
    isPartial = partial
    if part.isEmpty { text = rest } else { take(part, rest: rest) }
    return true
  }

  /// - Returns: nil where there is no time; whether it is one of syslog's, behind which a host always stands.
  private mutating func skipTime(_ scanner: inout LineScanner) -> Bool? {
    let start = scanner
    if let length = Self.isoLength(scanner.rest) {
      timestamp = timestamp ?? Timestamp(logTime: scanner.rest.prefix(length))
      scanner.skip(length)
      return false
    }
    // `Mon 2026-11-30 05:12:33 UTC`
    if Self.isDayName(scanner.rest.prefix(3)) {
      scanner.skip(3)
      if scanner.skip(" "), let length = Self.isoLength(scanner.rest) {
        scanner.skip(length)
        scanner.skipSpaces()
        let zone = scanner.word()
        if zone.equals("UTC") {
          let time = start.rest.dropFirst(4).prefix(length) + [UInt8(ascii: "Z")]
          timestamp = timestamp ?? Timestamp(logTime: time)
        }
        return true
      }
      scanner = start
    }
    // `Nov 30 05:12:33.042`
    if Self.isMonthName(scanner.rest.prefix(3)) {
      scanner.skip(3)
      if scanner.skipSpaces() > 0, scanner.decimal() != nil, scanner.skipSpaces() > 0, Self.skipClock(&scanner) {
        return true
      }
      scanner = start
    }
    if Self.skipClock(&scanner) { return false }
    scanner = start
    // daemontools' and s6's `@400000006747a6a1075bcd15`
    if scanner.skip("@4"), scanner.rest.prefix(while: \.isHexDigit).count == 23 {
      scanner.skip(23)
      return false
    }
    scanner = start
    // `[    5.123456]`, `1764479553.123456`
    let isBracketed = scanner.skip("[")
    scanner.skipSpaces()
    if scanner.decimal() != nil, scanner.skip("."), scanner.rest.prefix(while: \.isASCIIDigit).count >= 3 {
      _ = scanner.word()
      if isBracketed == (scanner.rest.startIndex > 0 && start.rest[scanner.rest.startIndex - 1] == UInt8(ascii: "]")) {
        return true
      }
    }
    scanner = start
    return nil
  }

  /// `05:12:33`, `05:12:33.042`
  private static func skipClock(_ scanner: inout LineScanner) -> Bool {
    let before = scanner
    for part in 0..<3 {
      guard part == 0 || scanner.skip(":"), scanner.rest.prefix(while: \.isASCIIDigit).count == 2,
        scanner.decimal() != nil
      else {
        scanner = before
        return false
      }
    }
    if scanner.starts(with: ".") || scanner.starts(with: ",") {
      scanner.skip(1)
      _ = scanner.rest.prefix(while: \.isASCIIDigit).count
      scanner.skip(scanner.rest.prefix(while: \.isASCIIDigit).count)
    }
    return true
  }

  /// The length of an ISO 8601 time at the start; nil where there is none.
  private static func isoLength(_ bytes: ArraySlice<UInt8>) -> Int? {
    var scanner = LineScanner(bytes)
    for (part, digits) in [4, 2, 2].enumerated() {
      guard part == 0 || scanner.skip("-") || scanner.skip("/"),
        scanner.rest.prefix(while: \.isASCIIDigit).count == digits
      else { return nil }
      scanner.skip(digits)
    }
    guard scanner.skip("T") || scanner.skip(" ") || scanner.skip("t"), skipClock(&scanner) else { return nil }
    if !scanner.skip("Z"), !scanner.skip("z"), scanner.starts(with: "+") || scanner.starts(with: "-") {
      scanner.skip(1)
      scanner.skip(scanner.rest.prefix(5).prefix { $0.isASCIIDigit || $0 == UInt8(ascii: ":") }.count)
    }
    return scanner.rest.startIndex - bytes.startIndex
  }

  /// `stdout F `
  private static func criStream(_ scanner: inout LineScanner, _ isPartial: inout Bool) -> ArraySlice<UInt8>? {
    let before = scanner
    let stream = scanner.word()
    guard stream.equals("stdout") || stream.equals("stderr"), scanner.skip(" ") else {
      scanner = before
      return nil
    }
    // Tags are separated by colons; the first one is F or P.
    let tags = scanner.word()
    guard tags.first == UInt8(ascii: "F") || tags.first == UInt8(ascii: "P"),
      tags.count == 1 || tags[tags.startIndex + 1] == UInt8(ascii: ":")
    else {
      scanner = before
      return nil
    }
    isPartial = tags.first == UInt8(ascii: "P")
    if !scanner.isAtEnd { scanner.skip(1) }
    return stream
  }

  /// `host api[1234]: `, `app[web.1]: `; without a number in brackets only where the time was syslog's, as `Fatal error: `
  /// looks the same.
  private static func journalSource(_ bytes: ArraySlice<UInt8>, isSyslog: Bool) -> (
    name: ArraySlice<UInt8>, rest: ArraySlice<UInt8>
  )? {
    var scanner = LineScanner(bytes)
    for position in 0..<2 {
      let word = scanner.word()
      guard !word.isEmpty, word.count <= 256 else { return nil }
      if word.last == UInt8(ascii: ":"), word.count > 1 {
        let isNumbered = word.dropLast().last == UInt8(ascii: "]") && word.contains(UInt8(ascii: "["))
        // Behind a time that `ts` put there, `main.swift:7: Fatal error: ` and `Thread 1:` look like one.
        guard isNumbered || isSyslog && position == 1 && Self.isProgram(word.dropLast()) else { return nil }
        let name = bytes[..<(word.endIndex - 1)]
        if !scanner.isAtEnd { scanner.skip(1) }
        return (name, scanner.rest)
      }
      guard scanner.skip(" ") else { return nil }
    }
    return nil
  }

  private static func isProgram(_ name: ArraySlice<UInt8>) -> Bool {
    name.contains(where: \.isASCIILetter) && !name.equals("error") && !name.equals("failed") && !name.ends(with: "\"")
  }

  static func isMonthName(_ bytes: ArraySlice<UInt8>) -> Bool {
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].contains { bytes.equals($0) }
  }

  static func isDayName(_ bytes: ArraySlice<UInt8>) -> Bool {
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains { bytes.equals($0) }
  }
}

extension LineScanner {
  fileprivate mutating func skipOneSpace() -> Bool { skip(" ") || skip("\t") }
}

extension Timestamp {
  /// A time with its distance from UTC, as log systems write it; nil for a local time, which could be any.
  init?(logTime bytes: ArraySlice<UInt8>) {
    var text = Array(bytes)
    guard text.count >= 20 else { return nil }
    if text[10] == 0x20 { text[10] = UInt8(ascii: "T") }
    if text[4] == UInt8(ascii: "/") { (text[4], text[7]) = (UInt8(ascii: "-"), UInt8(ascii: "-")) }
    if let comma = text.firstIndex(of: UInt8(ascii: ",")) { text[comma] = UInt8(ascii: ".") }
    // `+0000`
    let zone = text.suffix(5)
    if zone.first == UInt8(ascii: "+") || zone.first == UInt8(ascii: "-"), zone.dropFirst().allSatisfy(\.isASCIIDigit) {
      text.insert(UInt8(ascii: ":"), at: text.count - 2)
    }
    self.init(rfc3339: String(decoding: text, as: UTF8.self))
  }
}
