public import CrashModel

/// Writes a report as an OpenTelemetry log record: OTLP/JSON, one export request with one record.
///
/// Names are those of the semantic conventions (`exception.*`, `service.*`, `host.*`, `process.*`, `thread.*`); what they
/// have no name for begins with `crash.`. One request a line is what a collector's `otlpjsonfile` receiver reads, and what
/// `POST /v1/logs` takes.
///
/// ```swift
/// let line = OTLPLogWriter().json(of: report) + [UInt8(ascii: "\n")]
/// ```
public struct OTLPLogWriter: Sendable {
  /// One member a line; otherwise all on one line.
  public var pretty = false

  static let resourceSchema = "https://opentelemetry.io/schemas/1.37.0"

  public init() {}

  /// - Returns: one JSON object, without a line feed behind it.
  public func json(of report: CrashReport) -> [UInt8] {
    var writer = JSONWriter(pretty: pretty)
    writer.beginObject()
    writer.key("resourceLogs")
    writer.beginArray()
    writer.beginObject()
    writer.key("resource")
    writer.beginObject()
    resource(of: report, to: &writer)
    writer.endObject()
    writer.key("scopeLogs")
    writer.beginArray()
    writer.beginObject()
    writer.key("scope")
    writer.beginObject()
    writer.member("name", Product.name)
    writer.member("version", Product.version)
    writer.endObject()
    writer.key("logRecords")
    writer.beginArray()
    record(of: report, to: &writer)
    writer.endArray()
    writer.endObject()
    writer.endArray()
    writer.member("schemaUrl", Self.resourceSchema)
    writer.endObject()
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  private func resource(of report: CrashReport, to writer: inout JSONWriter) {
    var attributes = Attributes()
    attributes.add("service.name", report.service ?? report.process?.executable.map(Self.lastComponent))
    attributes.add("service.version", report.release)
    attributes.add("service.instance.id", report.runID)
    attributes.add("deployment.environment.name", report.environment)
    if let process = report.process {
      attributes.add("host.name", process.host)
      attributes.add("host.arch", process.architecture.map(Self.architecture))
      attributes.add("os.type", "linux")
      attributes.add("os.description", process.system)
      attributes.add("process.pid", process.id)
      attributes.add("process.executable.path", process.executable)
      attributes.add("process.executable.name", process.executable.map(Self.lastComponent))
      attributes.add("process.creation.time", process.startTime?.rfc3339)
      attributes.add(
        "process.executable.build_id.gnu",
        report.executableImageIndex.flatMap { report.images[$0].buildID?.description })
    }
    attributes.write(to: &writer)
  }

  private func record(of report: CrashReport, to writer: inout JSONWriter) {
    writer.beginObject()
    // Numbers of 64 bits are strings in OTLP's JSON. There are none before 1970.
    if let time = report.timestamp, time.rawValue > 0 { writer.member("timeUnixNano", String(time.rawValue)) }
    writer.member("severityNumber", report.fatal ? 21 : 17)
    writer.member("severityText", report.fatal ? "FATAL" : "ERROR")
    writer.member("eventName", "exception")
    writer.key("body")
    writer.beginObject()
    writer.member("stringValue", report.message ?? TextReportWriter.headline(of: report))
    writer.endObject()

    var attributes = Attributes()
    attributes.add("log.record.uid", report.id)
    attributes.add("exception.type", report.failureTitle)
    attributes.add("exception.message", report.message ?? TextReportWriter.headline(of: report))
    attributes.add("exception.stacktrace", report.crashedThread.map { TextReportWriter().stack(of: $0, in: report) })
    attributes.add("thread.id", report.crashedThread?.id)
    attributes.add("thread.name", report.crashedThread?.name)
    attributes.add("user.id", report.userID)
    attributes.add("crash.kind", report.kind.rawValue)
    attributes.add("crash.reason", report.reason?.rawValue)
    attributes.add("crash.stack_hash", report.stackHash?.digits)
    attributes.add("crash.stack_hash_quality", report.stackHash?.quality.rawValue)
    attributes.add("crash.operation", report.operation)
    attributes.add("crash.suppressed_count", report.suppressedCount)
    if let signal = report.signal {
      attributes.add("crash.signal.number", signal.number)
      attributes.add("crash.signal.name", signal.name)
      attributes.add("crash.signal.code", signal.code)
      attributes.add("crash.signal.code_name", signal.codeName)
      attributes.add("crash.signal.address", signal.address?.description)
      attributes.add("crash.signal.sender_pid", signal.senderPID)
    }
    if let task = report.task {
      attributes.add("crash.task.id", String(task.id))
      attributes.add("crash.task.name", task.name)
      for local in task.locals { attributes.add("crash.task.local." + local.key, local.value) }
    }
    for tag in report.tags { attributes.add("crash.tag." + tag.key, tag.value) }
    attributes.add(
      "crash.breadcrumbs",
      report.breadcrumbs.map { crumb in
        "\(crumb.timestamp.rfc3339) " + (crumb.category.map { "[\($0)] " } ?? "") + crumb.message
      })
    attributes.add("crash.notes", report.notes)
    attributes.write(to: &writer)
    writer.endObject()
  }

  private static func lastComponent(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  /// The conventions' words.
  private static func architecture(_ name: String) -> String {
    switch name {
    case "x86_64": "amd64"
    case "aarch64": "arm64"
    default: name
    }
  }

  /// A list of keys and values in which no key stands twice: the last value of one that was set again, as for tags.
  private struct Attributes {
    private enum Value {
      case string(String)
      case integer(String)
      case strings([String])
    }

    private var keys: [String] = []
    private var values: [String: Value] = [:]

    mutating func add(_ key: String, _ value: String?) { set(key, value.map(Value.string)) }
    mutating func add(_ key: String, _ value: (some BinaryInteger)?) {
      set(key, value.map { .integer(String($0)) })
    }
    mutating func add(_ key: String, _ value: [String]) { set(key, value.isEmpty ? nil : .strings(value)) }

    private mutating func set(_ key: String, _ value: Value?) {
      guard let value else { return }
      if values.updateValue(value, forKey: key) == nil { keys.append(key) }
    }

    func write(to writer: inout JSONWriter) {
      writer.array("attributes", keys) { writer, key in
        guard let value = values[key] else { return }
        writer.beginObject()
        writer.member("key", key)
        writer.key("value")
        writer.beginObject()
        switch value {
        case .string(let text): writer.member("stringValue", text)
        case .integer(let digits): writer.member("intValue", digits)
        case .strings(let texts):
          writer.key("arrayValue")
          writer.beginObject()
          writer.array("values", texts) { writer, text in
            writer.beginObject()
            writer.member("stringValue", text)
            writer.endObject()
          }
          writer.endObject()
        }
        writer.endObject()
        writer.endObject()
      }
    }
  }
}
