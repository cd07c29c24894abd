internal import CrashGrouping
internal import CrashModel

/// The lines of NDJSON output that are no reports.
enum StreamLines {
  /// `symbolicate-error/1`
  static func error(file: String, line: Int?, message: String) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("schema", "symbolicate-error/1")
    writer.member("file", file)
    writer.member("line", line)
    writer.member("message", message)
    writer.endObject()
    writer.newline()
    return writer.bytes
  }

  /// `symbolicate-summary/1`: always the last line, so that a reader knows that nothing was cut off.
  static func summary(_ totals: Totals, groups: [CrashGroup]? = nil) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("schema", "symbolicate-summary/1")
    writer.member("reports", totals.reports)
    writer.member("incomplete_reports", totals.incomplete)
    if let groups {
      writer.member("groups", groups.count { $0.status != .gone })
      if groups.contains(where: { $0.status != nil }) {
        writer.member("new_groups", groups.count { $0.status == .new })
        writer.member("known_groups", groups.count { $0.status == .known })
        writer.member("regressed_groups", groups.count { $0.status == .regressed })
        writer.member("gone_groups", groups.count { $0.status == .gone })
      }
    }
    writer.member("frames", totals.frames)
    writer.member("unresolved_frames", totals.unresolvedFrames)
    writer.member("errors", totals.errors)
    writer.member("skipped", totals.skipped)
    writer.member("older_reports", totals.older > 0 ? totals.older : nil)
    writer.member("undated_reports", totals.undated > 0 ? totals.undated : nil)
    writer.endObject()
    writer.newline()
    return writer.bytes
  }
}

/// Documents as one JSON value: the only one as it is, several as an array. Several inputs always give an array, so that
/// the shape follows from the command line and not from what lies in a directory.
struct JSONArray {
  let isAlwaysArray: Bool
  let pretty: Bool
  private var first: [UInt8]?
  private var count = 0

  init(isAlwaysArray: Bool, pretty: Bool) {
    self.isAlwaysArray = isAlwaysArray
    self.pretty = pretty
  }

  mutating func add(_ document: [UInt8], to output: Output) throws(Output.Failure) {
    count += 1
    if count == 1 {
      first = document
      return
    }
    if let first {
      try output.write([UInt8(ascii: "[")] + first)
      self.first = nil
    }
    try output.write(Array(",\n".utf8) + document)
  }

  mutating func end(_ output: Output) throws(Output.Failure) {
    if let first {
      try output.write(isAlwaysArray ? [UInt8(ascii: "[")] + first + Array("]\n".utf8) : first + [UInt8(ascii: "\n")])
    } else if count > 0 {
      try output.write("]\n")
    } else {
      // Nothing is none of one kind or the other, and a reader of JSON cannot read no bytes.
      try output.write("[]\n")
    }
  }
}
