public import CrashModel

extension CrashGroup {
  /// Writes the document `crash-group/1` as one object.
  public func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("schema", Self.schema)
    writer.member("stack_hash", hash.digits)
    writer.array("stack_hashes", hashes.sorted { ($1.quality, $0.digits) < ($0.quality, $1.digits) }) { writer, hash in
      writer.beginObject()
      writer.member("stack_hash", hash.digits)
      writer.member("stack_hash_quality", hash.quality.rawValue)
      writer.endObject()
    }
    writer.member("quality", hash.quality.rawValue)
    writer.member("title", title)
    writer.member("service", scope.isEmpty ? nil : scope)
    writer.member("reason", sample.reason?.rawValue)
    writer.member("message", sample.message)
    if let blame = sample.blame {
      writer.key("blame")
      writer.beginObject()
      writer.member("function", blame.function)
      writer.member("file", blame.file)
      // 0 is what compilers give to code that stands nowhere.
      writer.member("line", blame.line.flatMap { $0 > 0 ? $0 : nil })
      writer.endObject()
    }
    writer.member("count", count)
    writer.member("first_seen", firstSeen)
    writer.member("last_seen", lastSeen)
    writer.array("releases", sortedReleases) { writer, release in
      writer.beginObject()
      writer.member("release", release.name)
      writer.member("count", release.count)
      writer.endObject()
    }
    writer.array("hosts", hosts) { $0.string($1) }
    writer.flag("more_hosts", moreHosts)
    writer.member("environment", sample.environment)
    writer.member("site", site)
    writer.flag("unreliable_victim", hasUnreliableVictim)
    writer.array("merged_by", mergedBy) { $1.write(to: &$0) }
    writer.array("may_be", suggestions) { $1.write(to: &$0) }
    writer.member("sample", sample.reportID)
    writer.endObject()
  }

  /// Most crashes first, then by name.
  public var sortedReleases: [(name: String, count: Int)] {
    releases.map { (name: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.name) < ($0.count, $1.name) }
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
