internal import CrashModel

/// One line of a log that is JSON: docker's `json-file`, `journalctl -o json`, Cloud Logging, fluent-bit, and the loggers
/// that write `message` or `msg`.
struct JSONLogLine {
  private(set) var text: [UInt8] = []
  /// Of what tells one process's lines from another's.
  private(set) var key: [UInt8] = []
  private(set) var timestamp: Timestamp?
  /// The line goes on in the next one: docker cuts at 16 KiB, the journal at 48.
  private(set) var isPartial = false
  /// Of an entry of systemd-coredump.
  private(set) var coreDump: CoreDumpFields?

  /// What holds the line, most particular first.
  private static let textKeys: [StaticString] = [
    "log", "MESSAGE", "textPayload", "message", "msg", "@message", "line", "body", "jsonPayload", "short_message",
  ]
  private static let timeKeys: [StaticString] = [
    "time", "timestamp", "@timestamp", "ts", "__REALTIME_TIMESTAMP", "date",
  ]
  private static let sourceKeys: [StaticString] = [
    "stream", "container_id", "container_name", "container", "pod", "host", "hostname", "service", "source", "logName",
    "_HOSTNAME", "_PID", "_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "CONTAINER_NAME", "pid", "COREDUMP_PID",
  ]
  /// Objects with keys that tell where a line is from.
  private static let sourceObjects: [StaticString] = ["kubernetes", "resource", "labels", "docker"]

  /// - Returns: nil for an object that holds no line of text.
  init?(_ root: JSONValue) {
    guard let text = Self.text(of: root) else { return nil }
    self.text = text
    coreDump = CoreDumpFields(root)
    for name in Self.sourceKeys { addSource(root.member(name)) }
    for name in Self.sourceObjects {
      guard let object = root.member(name), object.isObject else { continue }
      addSources(object, depth: 0)
    }
    for name in Self.timeKeys where timestamp == nil { timestamp = root.member(name).flatMap(Self.time) }
    let isDocker = root.member("log") != nil && root.member("stream") != nil
    let isCutByJournal = (try? root.member("_LINE_BREAK")?.string()).map { $0 == "line-max" } ?? false
    isPartial = isCutByJournal || isDocker && text.last != UInt8(ascii: "\n")
  }

  private static func text(of root: JSONValue) -> [UInt8]? {
    for name in textKeys {
      guard let value = root.member(name) else { continue }
      if let bytes = try? value.bytes() { return Array(bytes) }
      // The journal's way to write what is no plain text, colors for example.
      if name.utf8CodeUnitCount == 7, let bytes = byteList(value) { return bytes }
      if value.isObject, let bytes = try? value.member("message")?.bytes() { return Array(bytes) }
    }
    return nil
  }

  private static func byteList(_ value: JSONValue) -> [UInt8]? {
    var bytes: [UInt8] = []
    do throws(ReportError) {
      try value.forEachElement { element throws(ReportError) in bytes.append(try element.integer()) }
    } catch {
      return nil
    }
    return bytes
  }

  private mutating func addSource(_ value: JSONValue?) {
    guard let value else { return }
    if let bytes = try? value.bytes() {
      key += bytes.prefix(128)
    } else if let number: Int64 = try? value.integer() {
      key += String(number).utf8
    }
    key.append(0)
  }

  private mutating func addSources(_ object: JSONValue, depth: Int) {
    guard depth < 2 else { return }
    var parts: [JSONValue] = []
    try? object.forEachMember { (_, value) throws(ReportError) in if parts.count < 32 { parts.append(value) } }
    for part in parts {
      if part.isObject { addSources(part, depth: depth + 1) } else { addSource(part) }
    }
  }

  private static func time(_ value: JSONValue) -> Timestamp? {
    guard let text = try? value.string() else { return nil }
    if let moment = Timestamp(logTime: Array(text.utf8)[...]) { return moment }
    // Microseconds since 1970, as text.
    guard text.utf8.count >= 15, let microseconds = Int64(text) else { return nil }
    let (nanoseconds, overflow) = microseconds.multipliedReportingOverflow(by: 1_000)
    return overflow ? nil : Timestamp(rawValue: nanoseconds)
  }
}
