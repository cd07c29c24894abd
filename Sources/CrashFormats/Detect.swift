internal import CrashModel

/// What a file is, by its first bytes; names and suffixes are not trusted.
enum InputFormat {
  case record
  /// One or more JSON objects.
  case json

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
    guard prefix[start] == UInt8(ascii: "{") || Self.hasReportBehind(prefix, from: start) else {
      throw InputError(
        .unknownFormat,
        "not a crash file that symbolicate knows: found \(Self.describe(prefix, from: start)); "
          + "it reads crash records (*.crashrecord) and crash-report/1 JSON")
    }
    self = .json
  }

  /// A log that was cut or rotated begins in the middle of a line; the lines behind it are what they were.
  private static func hasReportBehind(_ prefix: UnsafeRawBufferPointer, from start: Int) -> Bool {
    guard prefix[start] != UInt8(ascii: "["), !prefix.contains(0), hasMark(prefix) else { return false }
    return zip(prefix, prefix.dropFirst()).contains { $0 == UInt8(ascii: "\n") && $1 == UInt8(ascii: "{") }
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

  private static func describe(_ prefix: UnsafeRawBufferPointer, from start: Int) -> String {
    let known: [(magic: [UInt8], name: String)] = [
      ([0x7F, 0x45, 0x4C, 0x46], "an ELF file (a program, a library or a core)"),
      ([0x28, 0xB5, 0x2F, 0xFD], "zstd-compressed data; decompress it first (zstd -d)"),
      ([0x1F, 0x8B], "gzip-compressed data; decompress it first (gzip -d)"),
      ([0x5B], "a JSON array; give its elements one a line (jq -c '.[]')"),
      (Array("MDMP".utf8), "a minidump"),
    ]
    for (magic, name) in known where prefix[start...].starts(with: magic) { return name }
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
