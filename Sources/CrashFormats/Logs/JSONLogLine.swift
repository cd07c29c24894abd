internal import CrashModel

/// One line of a log that is JSON: docker's `json-file`, `journalctl -o json`, Cloud Logging, fluent-bit, what Datadog,
/// Elasticsearch, Splunk, Loki and CloudWatch give out, and the loggers that write `message` or `msg`.
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
    "stringValue", "_raw", "LogMessage", "LogEntry", "Log_s", "LogEntry_s",
    // Only as objects that have one of those above.
    "content", "attributes", "_source", "fields", "result", "event",
  ]
  /// An object in an object in the line's.
  private static let textDepth = 3
  private static let timeKeys: [StaticString] = [
    "time", "timestamp", "@timestamp", "ts", "__REALTIME_TIMESTAMP", "date", "timeUnixNano", "TimeGenerated",
  ]
  private static let sourceKeys: [StaticString] = [
    "stream", "container_id", "container_name", "container", "pod", "host", "hostname", "service", "source", "logName",
    "_HOSTNAME", "_PID", "_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "CONTAINER_NAME", "pid", "COREDUMP_PID",
  ]
  /// Objects with keys that tell where a line is from.
  private static let sourceObjects: [StaticString] = ["kubernetes", "resource", "labels", "docker"]

  /// - Returns: nil for an object that holds no line of text.
  init?(_ root: JSONValue) {
    guard let (text, holder) = Self.text(of: root, depth: 0) else { return nil }
    self.text = text
    coreDump = CoreDumpFields(root)
    for name in Self.sourceKeys { addSource(root.member(name)) }
    for name in Self.sourceObjects {
      guard let object = root.member(name), object.isObject else { continue }
      addSources(object, depth: 0)
    }
    for name in Self.timeKeys where timestamp == nil { timestamp = root.member(name).flatMap(Self.time) }
    if holder.index != root.index {
      for name in Self.sourceKeys { addSource(holder.member(name)) }
      for name in Self.timeKeys where timestamp == nil { timestamp = holder.member(name).flatMap(Self.time) }
    }
    let isDocker = root.member("log") != nil && root.member("stream") != nil
    let isCutByJournal = (try? root.member("_LINE_BREAK")?.string()).map { $0 == "line-max" } ?? false
    isPartial = isCutByJournal || isDocker && text.last != UInt8(ascii: "\n")
  }

  /// The line, and the object that holds it.
  private static func text(of object: JSONValue, depth: Int) -> (text: [UInt8], holder: JSONValue)? {
    for name in textKeys {
      guard let value = object.member(name) else { continue }
      if value.isObject {
        if depth < textDepth, let found = text(of: value, depth: depth + 1) { return found }
      } else if let bytes = try? value.bytes() {
        return (Array(bytes), object)
      } else if name.utf8CodeUnitCount == 7, let bytes = byteList(value) {
        // The journal's way to write what is no plain text, colors for example.
        return (bytes, object)
      }
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
    if let number: Int64 = try? value.integer() { return Timestamp(sinceEpoch: number) }
    guard let text = try? value.string() else { return nil }
    return Timestamp(logTime: Array(text.utf8)[...]) ?? Int64(text).flatMap(Timestamp.init(sinceEpoch:))
  }
}

extension JSONLogLine {
  /// A pair of Loki's: a time in nanoseconds, and the line.
  fileprivate init?(pair value: JSONValue) {
    var parts: [JSONValue] = []
    try? value.forEachElement { (part) throws(ReportError) in if parts.count < 2 { parts.append(part) } }
    guard parts.count == 2, let time = try? parts[0].string(), let number = Int64(time),
      let bytes = try? parts[1].bytes()
    else { return nil }
    text = Array(bytes)
    timestamp = Timestamp(sinceEpoch: number)
  }

  /// Of what tells streams apart, that of the list that the line is in.
  fileprivate mutating func add(_ outer: [UInt8]) { key = outer + key }

  fileprivate mutating func addLabels(_ object: JSONValue) { addSources(object, depth: 0) }

  fileprivate init() {}
}

/// Lines of a log in one JSON document, as the interfaces of log stores give them out: an array, or an object with one in
/// it.
struct JSONLogList {
  private(set) var lines: [JSONLogLine] = []

  /// What holds the lines, or what holds them.
  private static let keys: [StaticString] = [
    "events", "logEvents", "hits", "entries", "data", "result", "results", "values", "streams", "logs", "records",
    "resourceLogs", "scopeLogs", "logRecords",
  ]
  private static let depthLimit = 8
  private static let lineLimit = 1 << 20

  /// - Returns: nil where there is no line.
  init?(_ root: JSONValue) {
    add(root, key: [], depth: 0)
    guard !lines.isEmpty else { return nil }
    // Stores like to give the newest first.
    if let first = lines.first?.timestamp, let last = lines.last?.timestamp, first > last { lines.reverse() }
  }

  private mutating func add(_ value: JSONValue, key: [UInt8], depth: Int) {
    guard depth < Self.depthLimit else { return }
    if value.isObject {
      var key = key
      for name: StaticString in ["stream", "resource"] {
        guard let labels = value.member(name), labels.isObject else { continue }
        var source = JSONLogLine()
        source.addLabels(labels)
        key += source.key
      }
      for name in Self.keys {
        if let inner = value.member(name) { add(inner, key: key, depth: depth + 1) }
      }
      return
    }
    var elements: [JSONValue] = []
    try? value.forEachElement { (element) throws(ReportError) in elements.append(element) }
    for element in elements where lines.count < Self.lineLimit {
      if var line = element.isObject ? JSONLogLine(element) : JSONLogLine(pair: element) {
        line.add(key)
        lines.append(line)
      } else {
        add(element, key: key, depth: depth + 1)
      }
    }
  }
}

extension Timestamp {
  /// Seconds, milliseconds, microseconds or nanoseconds since 1970; which of them, the size tells for this century.
  fileprivate init?(sinceEpoch number: Int64) {
    let unit: Int64
    switch number {
    case 1_000_000_000..<100_000_000_000: unit = 1_000_000_000
    case 1_000_000_000_000..<100_000_000_000_000: unit = 1_000_000
    case 100_000_000_000_000..<100_000_000_000_000_000: unit = 1_000
    case 100_000_000_000_000_000...: unit = 1
    default: return nil
    }
    let (nanoseconds, overflow) = number.multipliedReportingOverflow(by: unit)
    if overflow { return nil }
    self.init(rawValue: nanoseconds)
  }
}
