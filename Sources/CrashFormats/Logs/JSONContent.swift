internal import CrashModel

/// What a JSON object that was found in a file or a log is.
enum JSONContent {
  case report(CrashReport)
  /// A crash of another making.
  case foreign(CrashReport)
  /// A log system's envelope.
  case logLine(JSONLogLine)
  /// What a log store, or a tool that puts several reports into one array, gives out.
  case list([JSONContent])
  case other(schema: String?)
}

/// Tells JSON objects apart by what is in them.
final class JSONContentReader {
  private let parser: JSONParser

  /// - Returns: nil without memory.
  init?() {
    guard let parser = JSONParser() else { return nil }
    self.parser = parser
  }

  /// - Throws: for what is no JSON, and for a crash with an error in it.
  func read(_ bytes: UnsafeRawBufferPointer, count: Int) throws(ReportError) -> JSONContent {
    try parser.withDocument(bytes, count: count) { root throws(ReportError) in
      if root.isArray { return try Self.list(root) }
      guard root.isObject else { throw root.expected("an object") }
      return try Self.content(of: root)
    }
  }

  /// Crashes, lines of a log, or lists of such lines.
  private static func list(_ root: JSONValue) throws(ReportError) -> JSONContent {
    var found: [JSONContent] = []
    var isOfCrashes = false
    try root.forEachElement { element throws(ReportError) in
      guard element.isObject else { return }
      let content = try content(of: element)
      switch content {
      case .report, .foreign: isOfCrashes = true
      default: break
      }
      found.append(content)
    }
    // Lines are put into their order.
    if !isOfCrashes, let lines = JSONLogList(root) { return .list(lines.lines.map(JSONContent.logLine)) }
    return .list(found)
  }

  private static func content(of root: JSONValue) throws(ReportError) -> JSONContent {
    if let schema = try? root.member("schema")?.string() {
      guard schema == CrashReport.schema else { return .other(schema: schema) }
      var decoder = ReportDecoder()
      return .report(try decoder.report(root))
    }
    if let log = SwiftJSONLog(root) { return .foreign(try log.report()) }
    if let event = SentryEvent(root) { return .foreign(try event.report()) }
    if let line = JSONLogLine(root) { return .logLine(line) }
    if let lines = JSONLogList(root) { return .list(lines.lines.map(JSONContent.logLine)) }
    return .other(schema: nil)
  }

  func read(_ bytes: ArraySlice<UInt8>) throws(ReportError) -> JSONContent {
    // Closures given to the standard library do not carry typed errors out of it.
    try bytes.withUnsafeBytes { buffer in
      Result { () throws(ReportError) in try read(buffer, count: buffer.count) }
    }.get()
  }
}
