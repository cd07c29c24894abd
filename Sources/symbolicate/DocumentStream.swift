internal import CrashFormats
internal import CrashModel

/// Results that are no reports, as JSON: always an array, or one object a line with a summary at the end.
struct DocumentStream {
  private let format: Options.Format
  private let pretty: Bool
  private let output: Output
  private var array: JSONArray

  init(_ options: Options, _ output: Output) {
    format = options.format
    pretty = options.pretty
    self.output = output
    array = JSONArray(isAlwaysArray: true, pretty: options.pretty)
  }

  /// - Parameter members: writes the members of the object; its schema stands before them.
  mutating func add(_ schema: String, _ members: (inout JSONWriter) -> Void) throws(Output.Failure) {
    guard format != .text else { return }
    var writer = JSONWriter(pretty: pretty && format == .json)
    writer.beginObject()
    writer.member("schema", schema)
    members(&writer)
    writer.endObject()
    if format == .json { try array.add(writer.bytes, to: output) } else { try output.write(writer.bytes + [0x0a]) }
  }

  func error(_ file: String, _ message: String) throws(Output.Failure) {
    if format == .ndjson { try output.write(StreamLines.error(file: file, line: nil, message: message)) }
  }

  /// - Parameter counts: of the summary.
  mutating func end(_ counts: KeyValuePairs<StaticString, Int>) throws(Output.Failure) {
    switch format {
    case .json: try array.end(output)
    case .ndjson:
      try add("symbolicate-summary/1") { writer in
        for (key, value) in counts { writer.member(key, value) }
      }
    default: break
    }
  }
}

extension JSONWriter {
  /// Nothing for an empty list: absent means unknown, or none.
  mutating func member(_ key: StaticString, strings: [String]) {
    guard !strings.isEmpty else { return }
    self.key(key)
    beginArray()
    for string in strings { self.string(string) }
    endArray()
  }

  mutating func member(_ key: StaticString, bool: Bool) {
    self.key(key)
    self.bool(bool)
  }
}
