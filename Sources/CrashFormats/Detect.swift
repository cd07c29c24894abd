private import CLogScan
internal import CrashModel

/// What a file is, by its first bytes; names and suffixes are not trusted.
enum InputFormat {
  case record
  /// One or more JSON objects, of which at least the first is one of a report's making or goes over several lines.
  case json
  /// Lines of text, in any of which a crash may begin.
  case log

  /// - Parameters:
  ///   - prefix: the first bytes.
  ///   - isWhole: there are no others.
  init(prefix: UnsafeRawBufferPointer, isWhole: Bool) throws(InputError) {
    guard !prefix.isEmpty else {
      throw InputError(.empty, "the file is empty; whatever should have written it did not come to it")
    }
    if prefix.starts(with: "crashrec".utf8) {
      self = .record
      return
    }
    if isWhole, "crashrec".utf8.starts(with: prefix) {
      throw InputError(.damaged, "a crash record that is cut after \(prefix.count) bytes")
    }
    var start = prefix.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    while start < prefix.count, [0x20, 0x09, 0x0A, 0x0D].contains(prefix[start]) { start += 1 }
    guard start < prefix.count else {
      throw InputError(
        .unknownFormat,
        "not a crash file that symbolicate knows: nothing but white space in the first \(prefix.count) bytes")
    }
    if prefix[start] == UInt8(ascii: "{") {
      self = Self.isLogLine(prefix[start...]) ? .log : .json
      return
    }
    if Self.isArrayOfObjects(prefix[start...]) {
      self = .json
      return
    }
    if Self.hasReportBehind(prefix, from: start) {
      self = .json
      return
    }
    guard Self.mayBeLog(prefix, from: start) else {
      throw InputError(.unknownFormat, Self.refusal(of: prefix, from: start))
    }
    self = .log
  }

  /// What is read, for whoever gave something else.
  static let known =
    "it reads crash records (*.crashrecord), crash-report/1 JSON, crash logs of the Swift runtime (text and JSON), "
    + "backtraces of gdb, lldb, systemd-coredump and sanitizers, and Sentry events, alone or in a log"

  /// Why a file in which nothing was found is refused.
  static func refusal(of prefix: UnsafeRawBufferPointer, from start: Int) -> String {
    "not a crash file that symbolicate knows: found \(describe(prefix, from: start)); \(known)"
  }

  /// A log that was cut or rotated begins in the middle of a line; the lines behind it are what they were.
  private static func hasReportBehind(_ prefix: UnsafeRawBufferPointer, from start: Int) -> Bool {
    guard prefix[start] != UInt8(ascii: "["), !prefix.contains(0), hasMark(prefix) else { return false }
    return zip(prefix, prefix.dropFirst()).contains { $0 == UInt8(ascii: "\n") && $1 == UInt8(ascii: "{") }
  }

  private static func isArrayOfObjects(_ text: Slice<UnsafeRawBufferPointer>) -> Bool {
    guard text.first == UInt8(ascii: "[") else { return false }
    return text.dropFirst().first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "{")
  }

  /// A whole object on the first line that is no report: the line of a logger, as all others will be.
  private static func isLogLine(_ text: Slice<UnsafeRawBufferPointer>) -> Bool {
    guard let end = text.firstIndex(of: UInt8(ascii: "\n")) else { return false }
    let line = text[..<end]
    return line.last { $0 > 0x20 } == UInt8(ascii: "}") && line.count > 2
      && !hasMark(UnsafeRawBufferPointer(rebasing: line))
  }

  /// Text, or enough of it: what was written into a log by mistake does not make it unreadable, nor do the zeros in front
  /// of one that was cut while it was open.
  private static func mayBeLog(_ prefix: UnsafeRawBufferPointer, from start: Int) -> Bool {
    if known(prefix, from: start) != nil { return false }
    var others = 0
    var zeros = 0
    for byte in prefix[start...] {
      if byte == 0 {
        zeros += 1
      } else if byte < 0x20, ![0x09, 0x0A, 0x0D, 0x1B, 0x08, 0x0C].contains(byte) {
        others += 1
      }
    }
    let rest = prefix.count - start - zeros
    return rest > 0 && others * 8 < rest && (zeros * 8 < rest || prefix[start] == 0 && rest * 64 > zeros)
  }

  /// Something that a crash of another making begins with.
  static func hasBeginning(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return false }
    return CLogScan_find(start, bytes.count) < bytes.count
  }

  /// A key or a word that every report has near its beginning.
  static func hasMark(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let mark = Array("\"schema\"".utf8)
    var start = 0
    while let quote = bytes[start...].firstIndex(of: UInt8(ascii: "\"")) {
      if bytes[quote...].starts(with: mark) { return true }
      start = quote + 1
    }
    return false
  }

  /// What begins like a file of a kind that has a name.
  private static func known(_ prefix: UnsafeRawBufferPointer, from start: Int) -> String? {
    let known: [(magic: [UInt8], name: String)] = [
      ([0x7F, 0x45, 0x4C, 0x46], "an ELF file (a program, a library or a core)"),
      ([0x28, 0xB5, 0x2F, 0xFD], "zstd-compressed data; decompress it first (zstd -d)"),
      ([0x1F, 0x8B], "gzip-compressed data; decompress it first (gzip -d)"),
      (Array("[]".utf8), "a JSON array without elements"),
      (Array("MDMP".utf8), "a minidump"),
    ]
    return known.first { prefix[start...].starts(with: $0.magic) }?.name
  }

  private static func describe(_ prefix: UnsafeRawBufferPointer, from start: Int) -> String {
    if let name = known(prefix, from: start) { return name }
    let head = prefix[start...].prefix(32)
    if prefix.allSatisfy({ $0 == 0 }) { return "zero bytes" }
    let isText = head.allSatisfy {
      0x20..<0x7F ~= $0 || $0 >= 0x80 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 || $0 == 0x1B
    }
    if isText { return "text that begins with " + Printable.quoted(String(decoding: head, as: UTF8.self)) }
    return "bytes "
      + head.prefix(8).map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined(separator: " ")
  }
}
