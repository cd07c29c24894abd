public import CrashModel

extension CrashGroup {
  /// Writes the document `crash-group/1` as one object.
  public func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("schema", Self.schema)
    writer.member("stack_hash", hash.digits)
    writer.array("stack_hashes", [hash] + otherHashes) { $0.object($1) }
    writer.member("quality", hash.quality.rawValue)
    writer.member("status", status?.rawValue)
    writer.member("title", title)
    writer.member("service", scope.isEmpty ? nil : scope)
    writer.member("reason", sample.reason?.rawValue)
    writer.member("message", sample.message)
    if let blame = sample.blame {
      writer.key("blame")
      writer.object(blame)
    }
    writer.member("count", count)
    writer.member("first_seen", firstSeen)
    writer.member("last_seen", lastSeen)
    writer.array("releases", releases.byCount) { writer, release in
      writer.beginObject()
      writer.member("release", release.name)
      writer.member("count", release.count)
      writer.member("first_seen", release.firstSeen)
      writer.member("last_seen", release.lastSeen)
      writer.endObject()
    }
    writer.member("other_releases_count", releases.otherCount > 0 ? releases.otherCount : nil)
    days.write(to: &writer)
    writer.array("hosts", hosts) { $0.string($1) }
    writer.flag("more_hosts", moreHosts)
    writer.member("environment", sample.environment)
    writer.member("site", site)
    writer.flag("unreliable_victim", hasUnreliableVictim)
    writer.array("merged_by", mergedBy) { $1.write(to: &$0) }
    writer.array("may_be", suggestions) { $1.write(to: &$0) }
    writer.member("sample", sample.reportID)
    writer.member("run_id", sample.runID)
    writer.member("stack", sample.stack)
    if let resolution, let release = resolution.release {
      writer.member("resolved_in", release)
      writer.member("resolved_at", resolution.moment)
    }
    if let comparison, comparison.status != .new {
      writer.key("baseline")
      writer.beginObject()
      writer.member("count", comparison.earlierCount)
      writer.member("last_seen", comparison.earlierLastSeen)
      writer.array("new_releases", comparison.newReleases) { $0.string($1) }
      writer.endObject()
    }
    let members = members.entries
    writer.array("members", members) { $0.string($1.id) }
    writer.flag("more_members", !members.isEmpty && reportCount > members.count)
    writer.endObject()
  }
}

extension DayCounts.Day {
  /// `2026-11-30`
  public var text: String {
    let (nanoseconds, overflow) = Int64(number).multipliedReportingOverflow(by: 86_400_000_000_000)
    return overflow ? "-" : String(Timestamp(rawValue: nanoseconds).rfc3339.prefix(10))
  }
}

extension DayCounts {
  /// Two members: each day's count under its date, and what lies before them.
  func write(to writer: inout JSONWriter) {
    if !days.isEmpty {
      writer.key("days")
      writer.beginObject()
      for day in days {
        writer.key(day.text)
        writer.integer(day.count)
      }
      writer.endObject()
    }
    writer.member("earlier_count", earlierCount > 0 ? earlierCount : nil)
  }
}

extension JSONWriter {
  mutating func object(_ hash: StackHash) {
    beginObject()
    member("stack_hash", hash.digits)
    member("stack_hash_quality", hash.quality.rawValue)
    endObject()
  }

  mutating func object(_ blame: Blame) {
    beginObject()
    member("function", blame.function)
    member("file", blame.file)
    // 0 is what compilers give to code that stands nowhere.
    member("line", blame.line.flatMap { $0 > 0 ? $0 : nil })
    endObject()
  }
}

extension GroupMerge {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("rule", rule.rawValue)
    writer.member("stack_hash", stackHash)
    writer.endObject()
  }
}
