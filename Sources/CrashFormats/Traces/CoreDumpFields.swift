internal import CrashModel

/// What systemd-coredump says of the process beside its message, in fields of the journal: `COREDUMP_SIGNAL=4` on a line
/// of its own (`journalctl -o verbose`, `-o export`), or a member of the entry's JSON object.
struct CoreDumpFields: Sendable {
  private enum Field: CaseIterable {
    case process, signal, executable, host, time

    var name: StaticString {
      switch self {
      case .process: "COREDUMP_PID"
      case .signal: "COREDUMP_SIGNAL"
      case .executable: "COREDUMP_EXE"
      case .host: "COREDUMP_HOSTNAME"
      case .time: "COREDUMP_TIMESTAMP"
      }
    }
  }

  private(set) var process: Int32?
  private(set) var signal: Int32?
  private(set) var executable: String?
  private(set) var host: String?
  private(set) var timestamp: Timestamp?

  /// - Returns: nil for a line that is none of the fields.
  init?(line: ArraySlice<UInt8>) {
    for field in Field.allCases where line.starts(with: field.name) {
      let rest = line.dropFirst(field.name.utf8CodeUnitCount)
      guard rest.first == UInt8(ascii: "=") else { continue }
      set(field, rest.dropFirst())
      return
    }
    return nil
  }

  /// - Returns: nil for an object with none of the fields.
  init?(_ entry: JSONValue) {
    var isEmpty = true
    for field in Field.allCases {
      guard let value = entry.member(field.name) else { continue }
      // The journal writes numbers as text; what passes its entries on may not.
      if let bytes = try? value.bytes() {
        guard bytes.count <= 4_096 else { continue }
        set(field, Array(bytes)[...])
      } else if let number: Int64 = try? value.integer() {
        set(field, Array(String(number).utf8)[...])
      } else {
        continue
      }
      isEmpty = false
    }
    if isEmpty { return nil }
  }

  private mutating func set(_ field: Field, _ value: ArraySlice<UInt8>) {
    var scanner = LineScanner(value)
    let text = value.isEmpty ? nil : value.string
    switch field {
    case .process: process = scanner.decimal().flatMap(Int32.init(exactly:))
    case .signal: signal = scanner.decimal().flatMap(Int32.init(exactly:))
    case .executable: executable = text
    case .host: host = text
    case .time:
      // Microseconds since 1970.
      let nanoseconds = scanner.decimal().flatMap(Int64.init(exactly:))?.multipliedReportingOverflow(by: 1_000)
      if let nanoseconds, !nanoseconds.overflow { timestamp = Timestamp(rawValue: nanoseconds.partialValue) }
    }
  }
}
