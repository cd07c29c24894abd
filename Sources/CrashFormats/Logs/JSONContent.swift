internal import CrashModel

/// What a JSON object that was found in a file or a log is.
enum JSONContent {
  case report(CrashReport)
  /// A crash of another making.
  case foreign(CrashReport)
  /// A log system's envelope.
  case logLine(JSONLogLine)
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
      guard root.isObject else { throw root.expected("an object") }
      if let schema = try? root.member("schema")?.string() {
        guard schema == CrashReport.schema else { return .other(schema: schema) }
        var decoder = ReportDecoder()
        return .report(try decoder.report(root))
      }
      if let log = SwiftJSONLog(root) { return .foreign(try log.report()) }
      if let event = SentryEvent(root) { return .foreign(try event.report()) }
      if let line = JSONLogLine(root) { return .logLine(line) }
      return .other(schema: nil)
    }
  }

  func read(_ bytes: ArraySlice<UInt8>) throws(ReportError) -> JSONContent {
    // Closures given to the standard library do not carry typed errors out of it.
    try bytes.withUnsafeBytes { buffer in
      Result { () throws(ReportError) in try read(buffer, count: buffer.count) }
    }.get()
  }
}
