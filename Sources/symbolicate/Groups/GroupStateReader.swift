internal import CrashFormats
internal import CrashGrouping
internal import CrashModel
private import Glibc

/// Why a file is no state of groups, and where in it.
struct GroupStateError: Error {
  var message: String

  init(_ message: String) { self.message = message }
}

/// Reads `crash-groups/1` (`docs/group-state.md`).
///
/// A state is taken whole or not at all: a part of it would say that the other groups never were.
struct GroupStateReader {
  private let parser: JSONParser
  private static let schemaStart = 4_096

  /// - Returns: nil without memory.
  init?() {
    guard let parser = JSONParser() else { return nil }
    self.parser = parser
  }

  /// Whether a file looks like a state; for those among which there are others.
  static func isState(_ path: FilePath) -> Bool {
    guard let bytes = try? InputFile(path: path).beginning(schemaStart) else { return false }
    let name = Array("\"\(GroupTable.stateSchema)\"".utf8)
    // The first key, whatever space is around it: a report that quotes the name has its own schema first.
    let text = bytes.prefix { $0 != UInt8(ascii: ",") }.filter { $0 > 0x20 }
    return text.elementsEqual(Array("{\"schema\":".utf8) + name)
  }

  /// - Parameter path: nil for standard input.
  func table(of path: FilePath?) throws(GroupStateError) -> GroupTable {
    var table = GroupTable()
    let contents = try contents(of: path) { table.add($0) }
    guard contents.isState else {
      throw GroupStateError(
        "a list of \(CrashGroup.schema), which is good for --baseline; what can be merged is a "
          + "\(GroupTable.stateSchema), as 'group --partial' writes it")
    }
    table.settings = contents.settings
    return table
  }

  /// The state that a worker left in a file without a name.
  func table(ofDescriptor descriptor: CInt) throws(GroupStateError) -> GroupTable {
    let bytes: [UInt8]
    do throws(InputError) { bytes = try InputFile.opened(descriptor).contents(padding: JSONParser.padding) } catch {
      throw GroupStateError(error.description)
    }
    var table = GroupTable()
    let contents = try contents(of: bytes) { table.add($0) }
    table.settings = contents.settings
    return table
  }

  /// Groups to compare with: of a state, or as `group --format json` and `ndjson` write them.
  ///
  /// - Returns: with what the hashes were made with; nil where the file does not say it.
  func groups(of path: FilePath?, rules: GroupingRules) throws(GroupStateError) -> (
    groups: [CrashGroup], settings: HashSettings?
  ) {
    var table = GroupTable()
    let contents = try contents(of: path) { table.add($0) }
    guard contents.isState else { return (contents.parts, nil) }
    return (table.groups(rules: rules), contents.settings)
  }

  /// - `parts`: of a list. Those of a state are handed over one by one, as all of them together are several times what they
  ///   are in a table; where an error comes behind them, whoever has them throws them away.
  private typealias Contents = (parts: [CrashGroup], isState: Bool, settings: HashSettings?)

  private func contents(of path: FilePath?, _ part: (CrashGroup) -> Void) throws(GroupStateError) -> Contents {
    let bytes: [UInt8]
    do throws(InputError) {
      // With room behind it for the parser.
      if let path {
        bytes = try InputFile(path: path).contents(padding: JSONParser.padding)
      } else {
        bytes = try InputFile.standardInput().contents(padding: JSONParser.padding)
      }
    } catch {
      throw GroupStateError(error.description)
    }
    return try contents(of: bytes, part)
  }

  private func contents(of bytes: [UInt8], _ part: (CrashGroup) -> Void) throws(GroupStateError) -> Contents {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(GroupStateError) in
        try contents(UnsafeRawBufferPointer(rebasing: buffer.dropLast(JSONParser.padding)), buffer, part)
      }
    }
    return try result.get()
  }

  private func contents(
    _ text: UnsafeRawBufferPointer, _ padded: UnsafeRawBufferPointer, _ part: (CrashGroup) -> Void
  ) throws(GroupStateError) -> Contents {
    let objects: [JSONValues.Object]
    do throws(JSONValues.Failure) { objects = try JSONValues.read(text, arrayUnder: "groups") } catch {
      switch error {
      case .unclosed(let place):
        throw GroupStateError("cut off: the text ends within what begins at byte \(place); make it once more")
      case .twice(let place): throw GroupStateError("not JSON that can be read: a second \"groups\" at byte \(place)")
      }
    }
    guard let first = objects.first else { throw GroupStateError("empty") }
    if let elements = first.elements, let inside = first.inside {
      guard objects.count == 1 else {
        throw GroupStateError(
          "more than one document: another one begins at byte \(objects[1].range.lowerBound); merge files, do not join "
            + "them")
      }
      return ([], true, try state(first, elements, inside, text, padded, part))
    }
    return (try list(objects, padded), false, nil)
  }

  private func state(
    _ object: JSONValues.Object, _ elements: [Range<Int>], _ inside: Range<Int>, _ text: UnsafeRawBufferPointer,
    _ padded: UnsafeRawBufferPointer, _ take: (CrashGroup) -> Void
  ) throws(GroupStateError) -> HashSettings {
    // What is around the groups is a document of its own.
    var frame = Array(text[object.range.lowerBound..<inside.lowerBound])
    frame += text[inside.upperBound..<object.range.upperBound]
    var count: Int?
    var settings = HashSettings()
    try parse(frame) { root throws(ReportError) in
      var schema: String?
      var algorithm: String?
      try root.forEachMember { key, value throws(ReportError) in
        switch key {
        case "schema": schema = try value.string()
        case "algorithm": algorithm = try value.string()
        case "rules": settings.rulesDigest = try GroupDecoder.digits(value)
        case "across_builds": settings.acrossBuilds = try value.bool()
        case "group_count": count = try value.integer(0...Int.max)
        default: break
        }
      }
      guard schema == GroupTable.stateSchema else {
        let found = schema.map { Printable.quoted(String($0.prefix(64))) } ?? "none"
        throw ReportError("expected \(Printable.quoted(GroupTable.stateSchema)), found \(found)", path: "schema")
      }
      guard algorithm == StackHasher.algorithm else {
        let found = algorithm.map { Printable.quoted(String($0.prefix(64))) } ?? "none"
        throw ReportError(
          "made with \(found), and this program groups by \(StackHasher.algorithm); make it once more from the reports",
          path: "algorithm")
      }
    }
    guard count == elements.count else {
      throw GroupStateError(
        "group_count is \(count.map(String.init) ?? "missing") and there are \(elements.count) groups: the file was cut "
          + "or changed")
    }
    for (index, range) in elements.enumerated() { take(try part(range, padded, place: "groups[\(index)]")) }
    return settings
  }

  private func list(_ objects: [JSONValues.Object], _ padded: UnsafeRawBufferPointer) throws(GroupStateError)
    -> [CrashGroup]
  {
    var parts: [CrashGroup] = []
    var other: String?
    for (index, object) in objects.enumerated() {
      var schema: String?
      var group: CrashGroup?
      try parse(object.range, padded, place: "[\(index)]") { root throws(ReportError) in
        schema = try root.isObject ? root.member("schema")?.string() : nil
        if schema == CrashGroup.schema { group = try GroupDecoder.group(root) }
      }
      if let group { parts.append(group) } else { other = other ?? schema ?? "none" }
    }
    // What NDJSON has besides: errors and the summary. Alone they are the answer of a run that found nothing.
    guard other != GroupTable.stateSchema else { throw GroupStateError("groups: no array of groups is in it") }
    guard !parts.isEmpty || other == "symbolicate-summary/1" else {
      throw GroupStateError(
        "expected \(Printable.quoted(GroupTable.stateSchema)) or \(Printable.quoted(CrashGroup.schema)), found schema "
          + Printable.quoted(String((other ?? "none").prefix(64))))
    }
    return parts
  }

  private func part(_ range: Range<Int>, _ padded: UnsafeRawBufferPointer, place: String) throws(GroupStateError)
    -> CrashGroup
  {
    var group: CrashGroup?
    try parse(range, padded, place: place) { root throws(ReportError) in group = try GroupDecoder.group(root) }
    guard let group else { throw GroupStateError("\(place): no group") }
    return group
  }

  private func parse(
    _ range: Range<Int>, _ padded: UnsafeRawBufferPointer, place: String,
    _ body: (JSONValue) throws(ReportError) -> Void
  ) throws(GroupStateError) {
    let bytes = UnsafeRawBufferPointer(rebasing: padded[range.lowerBound...])
    do throws(ReportError) { try parser.withDocument(bytes, count: range.count, body) } catch {
      throw GroupStateError(
        error.path.hasPrefix("[") ? "\(place)\(error)" : error.path.isEmpty ? "\(place): \(error)" : "\(place).\(error)"
      )
    }
  }

  private func parse(_ bytes: [UInt8], _ body: (JSONValue) throws(ReportError) -> Void) throws(GroupStateError) {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(ReportError) in try parser.withDocument(buffer, count: buffer.count, body) }
    }
    do throws(ReportError) { try result.get() } catch { throw GroupStateError(error.description) }
  }
}

/// One group: a part of a state, or a `crash-group/1`, which has less and some of it elsewhere.
private enum GroupDecoder {
  static func group(_ root: JSONValue) throws(ReportError) -> CrashGroup {
    var digits: String?
    var quality: StackHash.Quality?
    var scope = ""
    var others: [StackHash] = []
    var reports: Int?
    var count: Int?
    var firstSeen: Timestamp?
    var lastSeen: Timestamp?
    var releases: [ReleaseCounts.Release] = []
    var otherReleases = 0
    var days: [DayCounts.Day] = []
    var earlier = 0
    var hosts: [String] = []
    var moreHosts = false
    var members: [GroupMembers.Entry] = []
    var resolution: Resolution?
    var build: BuildKey?
    var callPaths = CallPathSet()
    var resolvedIn: String?
    var resolvedAt: Timestamp?
    var sample = GroupMember(reportID: "", scope: "", hash: StackHash(digits: "", quality: .offsets))
    var hasSample = false
    try root.forEachMember { key, value throws(ReportError) in
      switch key {
      case "service": scope = try value.string()
      case "stack_hash": digits = try self.digits(value)
      case "stack_hash_quality", "quality": quality = try self.quality(value)
      case "other_hashes", "stack_hashes":
        try value.forEachElement { element throws(ReportError) in others.append(try hash(element)) }
      case "reports": reports = try value.integer(0...Int.max)
      case "count": count = try value.integer(0...Int.max)
      case "first_seen": firstSeen = try timestamp(value)
      case "last_seen": lastSeen = try timestamp(value)
      case "releases":
        try value.forEachElement { element throws(ReportError) in releases.append(try release(element)) }
      case "other_releases_count": otherReleases = try value.integer(0...Int.max)
      case "days":
        try value.forEachMember { key, value throws(ReportError) in
          guard
            let moment = Timestamp(rfc3339: key.string + "T00:00:00Z") ?? Timestamp(rfc3339: key.string + "T23:59:59Z")
          else { throw ReportError("expected a date such as 2026-11-30") }
          days.append(DayCounts.Day(number: moment.day, count: try value.integer(0...Int.max)))
        }
      case "earlier_count": earlier = try value.integer(0...Int.max)
      case "hosts": try value.forEachElement { element throws(ReportError) in hosts.append(try element.string()) }
      case "more_hosts": moreHosts = try value.bool()
      case "resolution": resolution = try self.resolution(value)
      case "build": build = try self.build(value)
      case "site_line": sample.siteLine = try value.integer()
      case "call_paths":
        try value.forEachElement { element throws(ReportError) in callPaths.insert(try callPath(element)) }
      case "resolved_in": resolvedIn = try value.string()
      case "resolved_at": resolvedAt = try timestamp(value)
      case "members":
        try value.forEachElement { element throws(ReportError) in
          if element.isObject { members.append(try member(element)) }
        }
      case "sample":
        hasSample = true
        if value.isObject { try self.sample(value, &sample) } else { sample.reportID = try value.string() }
      // Of a crash-group/1, which has them beside the sample's id.
      case "reason": sample.reason = Reason(rawValue: try value.string())
      case "message": sample.message = try value.string()
      case "blame": sample.blame = try blame(value)
      case "environment": sample.environment = try value.string()
      case "stack": sample.stack = try value.string()
      default: break
      }
    }
    guard let digits else { throw ReportError("missing", path: "stack_hash") }
    guard let quality else { throw ReportError("missing", path: "stack_hash_quality") }
    guard let count else { throw ReportError("missing", path: "count") }
    guard hasSample else { throw ReportError("missing", path: "sample") }
    sample.scope = scope
    sample.build = build
    sample.hash = StackHash(digits: digits, quality: quality)
    if let resolvedIn, let resolvedAt { resolution = Resolution(release: resolvedIn, moment: resolvedAt) }
    return CrashGroup(
      sample: sample, otherHashes: others, reportCount: reports ?? count, count: count, firstSeen: firstSeen,
      lastSeen: lastSeen, releases: ReleaseCounts(entries: releases, otherCount: otherReleases),
      days: DayCounts(days: days, earlierCount: earlier), hosts: hosts, moreHosts: moreHosts,
      members: GroupMembers(members), resolution: resolution, builds: BuildSet(build), callPaths: callPaths,
      siteLine: sample.siteLine)
  }

  private static func sample(_ value: JSONValue, _ sample: inout GroupMember) throws(ReportError) {
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "id": sample.reportID = try value.string()
      case "run_id": sample.runID = try value.string()
      case "timestamp": sample.timestamp = try timestamp(value)
      case "reason": sample.reason = Reason(rawValue: try value.string())
      case "message": sample.message = try value.string()
      case "blame": sample.blame = try blame(value)
      case "release": sample.release = try value.string()
      case "environment": sample.environment = try value.string()
      case "host": sample.host = try value.string()
      case "previous_stack_hashes":
        try value.forEachElement { element throws(ReportError) in sample.previousHashes.append(try hash(element)) }
      case "suppressed_count": sample.suppressedCount = try value.integer()
      case "call_path": sample.callPath = try callPath(value)
      case "stack": sample.stack = try value.string()
      default: break
      }
    }
  }

  private static func build(_ value: JSONValue) throws(ReportError) -> BuildKey {
    let text = try value.string()
    guard text.utf8.count == 16, let key = Hex.value(text) else {
      throw ReportError("expected 16 hex digits, found \(Printable.quoted(String(text.prefix(40))))")
    }
    return BuildKey(rawValue: key)
  }

  private static func callPath(_ value: JSONValue) throws(ReportError) -> [String] {
    var names: [String] = []
    try value.forEachElement { element throws(ReportError) in names.append(try element.string()) }
    return names
  }

  private static func hash(_ value: JSONValue) throws(ReportError) -> StackHash {
    var digits: String?
    var quality: StackHash.Quality?
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "stack_hash": digits = try self.digits(value)
      case "stack_hash_quality": quality = try self.quality(value)
      default: break
      }
    }
    guard let digits, let quality else { throw ReportError("expected stack_hash and stack_hash_quality") }
    return StackHash(digits: digits, quality: quality)
  }

  static func digits(_ value: JSONValue) throws(ReportError) -> String {
    let text = try value.string()
    let isHash =
      text.utf8.count == 32
      && text.utf8.allSatisfy {
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0
      }
    guard isHash else { throw ReportError("expected 32 lower-case hex digits") }
    return text
  }

  private static func quality(_ value: JSONValue) throws(ReportError) -> StackHash.Quality {
    let text = try value.string()
    guard let quality = StackHash.Quality(rawValue: text) else {
      let all = StackHash.Quality.allCases.map(\.rawValue).joined(separator: ", ")
      throw ReportError("expected one of \(all), found \(Printable.quoted(String(text.prefix(40))))")
    }
    return quality
  }

  private static func timestamp(_ value: JSONValue) throws(ReportError) -> Timestamp {
    let text = try value.string("an RFC 3339 time")
    guard let moment = Timestamp(rfc3339: text) else {
      throw ReportError("expected an RFC 3339 time, found \(Printable.quoted(String(text.prefix(40))))")
    }
    return moment
  }

  private static func release(_ value: JSONValue) throws(ReportError) -> ReleaseCounts.Release {
    var name: String?
    var count: Int?
    var firstSeen: Timestamp?
    var lastSeen: Timestamp?
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "release": name = try value.string()
      case "count": count = try value.integer(0...Int.max)
      case "first_seen": firstSeen = try timestamp(value)
      case "last_seen": lastSeen = try timestamp(value)
      default: break
      }
    }
    guard let name, let count else { throw ReportError("expected release and count") }
    return ReleaseCounts.Release(name: name, count: count, firstSeen: firstSeen, lastSeen: lastSeen)
  }

  private static func blame(_ value: JSONValue) throws(ReportError) -> Blame {
    var blame = Blame(function: "")
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "function": blame.function = try value.string()
      case "file": blame.file = try value.string()
      case "line": blame.line = try value.integer(0...Int(Int32.max))
      default: break
      }
    }
    return blame
  }

  private static func resolution(_ value: JSONValue) throws(ReportError) -> Resolution {
    var release: String?
    var moment: Timestamp?
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "release": release = try value.string()
      case "at": moment = try timestamp(value)
      default: break
      }
    }
    guard let moment else { throw ReportError("missing", path: "at") }
    return Resolution(release: release, moment: moment)
  }

  private static func member(_ value: JSONValue) throws(ReportError) -> GroupMembers.Entry {
    var id: String?
    var moment: Timestamp?
    var release: String?
    var crashes = 1
    var times = 1
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "id": id = try value.string()
      case "timestamp": moment = try timestamp(value)
      case "release": release = try value.string()
      case "crashes": crashes = try value.integer(1...Int.max)
      case "times": times = try value.integer(1...Int.max)
      default: break
      }
    }
    guard let id else { throw ReportError("missing", path: "id") }
    return GroupMembers.Entry(id: id, timestamp: moment, release: release, crashes: crashes, times: times)
  }
}
