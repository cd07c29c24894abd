internal import CrashModel

extension GroupTable {
  /// The value of the JSON key `schema` of a table that is written down.
  public static let stateSchema = "crash-groups/1"

  /// Writes the document `crash-groups/1` (`docs/group-state.md`): all that the table holds.
  ///
  /// The same bytes for the same reports, in whichever order they were added and however many tables were joined. One line
  /// for each part, so that two states can be compared by any tool that compares lines.
  ///
  /// - Parameter emit: gets the document piece by piece.
  public func writeState<Failure>(_ emit: ([UInt8]) throws(Failure) -> Void) throws(Failure) {
    var header = #"{"schema":"\#(Self.stateSchema)","algorithm":"\#(StackHasher.algorithm)""#
    if let digest = settings?.rulesDigest { header += #","rules":"\#(digest)""# }
    if settings?.acrossBuilds ?? false { header += #","across_builds":true"# }
    try emit(Array((header + #","groups":["#).utf8))
    var writer = JSONWriter()
    var isFirst = true
    try forEachPart { part throws(Failure) in
      writer.removeAll()
      part.writePart(to: &writer)
      try emit(Array((isFirst ? "\n" : ",\n").utf8) + writer.bytes)
      isFirst = false
    }
    // Behind the groups, so that a file that was cut has none.
    try emit(Array("\n],\"group_count\":\(partCount)}\n".utf8))
  }
}

extension CrashGroup {
  /// One part of a state.
  fileprivate func writePart(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("service", scope.isEmpty ? nil : scope)
    writer.member("stack_hash", hash.digits)
    writer.member("stack_hash_quality", hash.quality.rawValue)
    writer.array("other_hashes", otherHashes) { $0.object($1) }
    writer.member("reports", reportCount)
    writer.member("count", count)
    writer.exactMember("first_seen", firstSeen)
    writer.exactMember("last_seen", lastSeen)
    writer.array("releases", releases.entries) { writer, release in
      writer.beginObject()
      writer.member("release", release.name)
      writer.member("count", release.count)
      writer.exactMember("first_seen", release.firstSeen)
      writer.exactMember("last_seen", release.lastSeen)
      writer.endObject()
    }
    writer.member("other_releases_count", releases.otherCount > 0 ? releases.otherCount : nil)
    days.write(to: &writer)
    writer.array("hosts", hosts) { $0.string($1) }
    writer.flag("more_hosts", moreHosts)
    // A part has one build at most.
    writer.member("build", builds.keys.first?.description)
    writer.member("site_line", siteLine)
    writer.array("call_paths", callPaths.paths) { writer, path in writer.strings(path) }
    if let resolution {
      writer.key("resolution")
      writer.beginObject()
      writer.member("release", resolution.release)
      writer.exactMember("at", resolution.moment)
      writer.endObject()
    }
    writer.key("sample")
    writeSample(to: &writer)
    writer.array("members", members.entries) { writer, entry in
      writer.beginObject()
      writer.member("id", entry.id)
      writer.exactMember("timestamp", entry.timestamp)
      writer.member("release", entry.release)
      writer.member("crashes", entry.crashes > 1 ? entry.crashes : nil)
      writer.member("times", entry.times > 1 ? entry.times : nil)
      writer.endObject()
    }
    writer.endObject()
  }

  private func writeSample(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("id", sample.reportID)
    writer.member("run_id", sample.runID)
    writer.exactMember("timestamp", sample.timestamp)
    writer.member("reason", sample.reason?.rawValue)
    writer.member("message", sample.message)
    if let blame = sample.blame {
      writer.key("blame")
      writer.beginObject()
      writer.member("function", blame.function)
      writer.member("file", blame.file)
      writer.member("line", blame.line)
      writer.endObject()
    }
    writer.member("release", sample.release)
    writer.member("environment", sample.environment)
    writer.member("host", sample.host)
    writer.array("previous_stack_hashes", sample.previousHashes) { $0.object($1) }
    writer.member("suppressed_count", sample.suppressedCount != 0 ? sample.suppressedCount : nil)
    if !sample.callPath.isEmpty {
      writer.key("call_path")
      writer.strings(sample.callPath)
    }
    writer.member("stack", sample.stack)
    writer.endObject()
  }
}

extension JSONWriter {
  fileprivate mutating func strings(_ texts: [String]) {
    beginArray()
    for text in texts { string(text) }
    endArray()
  }

  /// With all nine digits of the second: of two reports in one millisecond, the later one is the sample of a group.
  fileprivate mutating func exactMember(_ key: StaticString, _ moment: Timestamp?) {
    guard let moment else { return }
    let nanoseconds = moment.rawValue % 1_000_000
    let digits = String(nanoseconds < 0 ? nanoseconds + 1_000_000 : nanoseconds)
    self.key(key)
    string("\(moment.rfc3339.dropLast())\(String(repeating: "0", count: max(6 - digits.utf8.count, 0)))\(digits)Z")
  }
}
