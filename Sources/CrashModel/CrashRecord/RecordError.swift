/// Why bytes could not be read as a record at all.
///
/// What is damaged further inside does not end the reading: it becomes one of the record's `notes`.
public enum RecordError: Error, Hashable, Sendable, CustomStringConvertible {
  /// No bytes at all.
  case empty
  /// The first bytes are not those of a record.
  case notARecord
  /// A record of another version of the format.
  case unsupportedVersion(UInt32)
  /// Fewer bytes than the header takes.
  case headerCut(length: Int)
  /// More bytes than any record has.
  case tooLarge(length: Int)
  /// The header's own checksum does not hold, so that nothing behind it can be found.
  case headerDamaged
  /// The checksum holds, and still a field has a value that no writer gives it.
  case headerInvalid(field: String, value: UInt64)

  public var description: String {
    switch self {
    case .empty: "the file is empty; a run that was killed while it made its record leaves one"
    case .notARecord: "not a crash record: the first eight bytes are not \"\(CrashRecord.magic)\""
    case .unsupportedVersion(let version):
      "a crash record of version \(version); this program reads version \(CrashRecord.version). "
        + "Use the release that the service was built with, or a later one"
    case .headerCut(let length):
      "the crash record is cut inside its header: \(length) of \(CrashRecord.headerSize) bytes"
    case .tooLarge(let length):
      "the crash record claims \(length) bytes; none is larger than \(CrashRecord.maximumFileSize)"
    case .headerDamaged: "the crash record's header is damaged: its checksum does not match"
    case .headerInvalid(let field, let value): "the crash record's header is invalid: \(field) is \(value)"
    }
  }
}
