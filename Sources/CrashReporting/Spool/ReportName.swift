private import CrashModel

/// The name of a report's file: `<id>.<stack hash>.json`.
///
/// Id and hash are in the name, so that the limits can be kept without opening a single report.
struct ReportName: Hashable, Comparable {
  /// UUIDv7: sorts by the time of the crash.
  var id: String
  var hash: String

  var fileName: String { "\(id).\(hash).json" }

  init(id: String, hash: String) {
    self.id = id
    self.hash = hash
  }

  /// nil for a name that is no report's.
  init?(fileName: String) {
    let parts = fileName.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2] == "json", Self.isID(parts[0]), Self.isHash(parts[1]) else { return nil }
    self.init(id: String(parts[0]), hash: String(parts[1]))
  }

  static func < (left: ReportName, right: ReportName) -> Bool { left.id < right.id }

  static func isHash(_ text: Substring) -> Bool { text.utf8.count == 32 && text.utf8.allSatisfy(isDigit) }

  static func isID(_ text: Substring) -> Bool {
    text.utf8.count == 36
      && text.utf8.enumerated().allSatisfy { index, byte in
        [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : isDigit(byte)
      }
  }

  /// When the crash was, seconds since 1970.
  static func seconds(ofID id: String) -> Int64? {
    Hex.value(id.prefix(8) + id.dropFirst(9).prefix(4)).map { Int64(clamping: $0 / 1_000) }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }
}
