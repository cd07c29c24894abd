public import CrashModel

/// What a group table needs to know of one report.
///
/// A value of its own rather than the report, so that whoever adds up millions of them need not keep, or even make,
/// whole reports.
public struct GroupMember: Hashable, Sendable {
  public var reportID: String
  /// The run of the service that the report is about; nil where another tool wrote it.
  public var runID: String?
  /// The service, or the executable's name: groups never span two.
  public var scope: String
  public var hash: StackHash
  /// Hashes of the same crash, made with fewer names.
  public var previousHashes: [StackHash]
  public var reason: Reason?
  public var message: String?
  public var blame: Blame?
  public var timestamp: Timestamp?
  public var release: String?
  public var environment: String?
  public var host: String?
  /// Further crashes that were counted and not stored.
  public var suppressedCount: Int
  /// The build that crashed.
  public var build: BuildKey?
  /// `StackAnalysis.siteLine`.
  public var siteLine: Int?
  /// `StackAnalysis.callPath()`.
  public var callPath: [String]
  /// The stack as text: of a group's sample only.
  public package(set) var stack: String?

  public init(
    reportID: String, runID: String? = nil, scope: String, hash: StackHash, previousHashes: [StackHash] = [],
    reason: Reason? = nil, message: String? = nil, blame: Blame? = nil, timestamp: Timestamp? = nil,
    release: String? = nil, environment: String? = nil, host: String? = nil, suppressedCount: Int = 0,
    build: BuildKey? = nil, siteLine: Int? = nil, callPath: [String] = []
  ) {
    self.reportID = reportID
    self.runID = runID
    self.scope = scope
    self.hash = hash
    self.previousHashes = previousHashes
    self.reason = reason
    self.message = message
    self.blame = blame
    self.timestamp = timestamp
    self.release = release
    self.environment = environment
    self.host = host
    self.suppressedCount = suppressedCount
    self.build = build
    self.siteLine = siteLine
    self.callPath = callPath
  }

  /// - Parameter analysis: of this report. Where the report has a better hash from elsewhere, its names are not those that
  ///   the hash was made of, and say nothing about places and ways.
  /// - Returns: nil for a report without a stack hash.
  public init?(_ report: CrashReport, analysis: StackAnalysis) {
    guard let hash = report.stackHash else { return nil }
    let isSame = hash == analysis.hash
    self.init(
      reportID: report.id, runID: report.runID, scope: Self.scope(of: report), hash: hash,
      previousHashes: report.previousStackHashes, reason: report.reason, message: report.message,
      blame: analysis.blame, timestamp: report.timestamp, release: report.release, environment: report.environment,
      host: report.process?.host, suppressedCount: report.suppressedCount ?? 0, build: BuildKey(report),
      siteLine: isSame ? analysis.siteLine : nil, callPath: isSame ? analysis.callPath() : [])
  }

  static func scope(of report: CrashReport) -> String {
    report.service ?? report.process?.executable?.split(separator: "/").last.map(String.init) ?? ""
  }
}

/// Adds reports up to groups, one at a time and in any order.
///
/// Memory grows with groups, not with reports. Two tables that were given the same members in different orders, or in
/// parts that were then joined, have equal groups.
///
/// ```swift
/// var table = GroupTable()
/// for report in reports {
///   let analysis = StackHasher().analyze(report)
///   if let member = GroupMember(report, analysis: analysis) { table.add(member) }
/// }
/// for group in table.groups() { print(group.count, group.hash.digits) }
/// ```
public struct GroupTable: Sendable {
  /// Reports with the same hash, build and line, as they were added (`GroupCell`).
  ///
  /// Parts become groups at the end: which part a lower-quality hash belongs to, and which lines are different places, all
  /// others decide.
  private var parts: [GroupPart] = []
  private var places: [PartKey: Int] = [:]
  /// Few, and most reports in a row have the same.
  private var scopes: [String: InternedStrings.ID] = [:]
  private var lastScope: (name: String, number: InternedStrings.ID)?
  private var strings = InternedStrings()
  private let keepsMembers: Bool
  /// What the hashes of its reports were made with; nil while nobody said. Joining tables does not look at it.
  public var settings: HashSettings?
  private var lastFacts: (context: Int, generation: Int, facts: CommonFacts)?

  /// - Parameter keepsMembers: the ids of reports are kept, of the latest `GroupMembers.limit` of each group. With them a
  ///   report that is added twice is counted once.
  public init(keepsMembers: Bool = false) { self.keepsMembers = keepsMembers }

  public var isEmpty: Bool { parts.isEmpty }

  /// Reports, each as often as it was added.
  public var reportCount: Int { parts.reduce(0) { $0.addingClamped($1.reportCount) } }

  /// - Parameter stack: the report's stack as text, asked for where the group is to be shown by this report.
  public mutating func add(_ member: GroupMember, stack: (() -> String?)? = nil) {
    sweepStrings()
    add(
      PartMember(member, &strings), hash: member.hash, scope: member.scope, build: member.build,
      siteLine: member.siteLine, callPath: member.callPath.map { strings.intern($0) },
      stack: stack.map { stack in { strings in stack().map { PartStack($0, &strings) } } })
  }

  private mutating func add(
    _ member: PartMember, hash: StackHash, scope: String, build: BuildKey?, siteLine: Int?,
    callPath: [InternedStrings.ID], stack: ((inout InternedStrings) -> PartStack?)?
  ) {
    let scopeNumber = number(ofScope: scope)
    let key = PartKey(GroupKey(hash, scope: scopeNumber), build: build, siteLine: siteLine)
    let place: Int
    if let known = places[key] {
      place = known
    } else {
      place = parts.count
      places[key] = place
      let cell = GroupCell(bug: GroupCell.Bug(scope: scope, hash: hash), build: build, siteLine: siteLine)
      parts.append(GroupPart(cell, scope: scopeNumber, sample: PartSample(member: member, callPath: [])))
    }
    parts[place].add(member, callPath: callPath, keepsMembers: keepsMembers, &strings, stack: stack)
  }

  /// Adds what another table was given.
  public mutating func formUnion(_ other: GroupTable) {
    for part in other.parts { add(part.group(other.strings)) }
  }

  /// Adds reports that were added up before.
  ///
  /// - Parameter part: as `forEachPart` has it, not a group: its hashes were not joined yet.
  package mutating func add(_ part: CrashGroup) {
    sweepStrings()
    let scope = number(ofScope: part.scope)
    let key = PartKey(GroupKey(part.hash, scope: scope), build: part.builds.keys.first, siteLine: part.siteLine)
    if let place = places[key] {
      var union = parts[place].group(strings)
      union.formUnion(part)
      parts[place] = GroupPart(union, scope: scope, &strings)
    } else {
      places[key] = parts.count
      parts.append(GroupPart(part, scope: scope, &strings))
    }
  }

  mutating func updateParts(_ hash: StackHash, scope: String, _ body: (inout CrashGroup) -> Void) {
    for index in parts.indices where parts[index].hash == hash && strings[parts[index].scope] == scope {
      var group = parts[index].group(strings)
      body(&group)
      parts[index] = GroupPart(group, scope: parts[index].scope, &strings)
    }
  }

  /// Texts of samples that were replaced, and of hosts that are not among the first, are needed no more.
  private mutating func sweepStrings() {
    guard strings.wantsSweep else { return }
    var used = strings.noneUsed
    for part in parts { part.mark(in: &used) }
    for number in scopes.values { used[Int(number)] = true }
    strings.sweep(using: used)
  }

  /// What the table is made of, in an order that does not depend on how it was made.
  package func forEachPart<Failure>(_ body: (CrashGroup) throws(Failure) -> Void) throws(Failure) {
    let sorted = parts.indices.sorted { isBefore(parts[$0], parts[$1]) }
    for index in sorted {
      var group = parts[index].group(strings)
      group.members.settle()
      try body(group)
    }
  }

  private func isBefore(_ left: GroupPart, _ right: GroupPart) -> Bool {
    if left.scope != right.scope { return strings.isBefore(left.scope, right.scope) }
    if left.hash != right.hash {
      return (right.hash.quality, left.hash.digits) < (left.hash.quality, right.hash.digits)
    }
    if left.build != right.build {
      guard let one = left.build, let other = right.build else { return left.build == nil }
      return one < other
    }
    guard let line = left.siteLine, let otherLine = right.siteLine else {
      return left.siteLine == nil && right.siteLine != nil
    }
    return line < otherLine
  }

  package var partCount: Int { parts.count }

  /// The groups: largest first, then latest, then by hash.
  ///
  /// Reports that only have a lower-quality hash join the group that owns it. Where two groups own it (fewer names told
  /// the two bugs not apart), they stay a group of their own: a wrong union cannot be seen, an extra row can. Then
  /// different places within one function become groups (`GroupSites`), and groups that are one bug become one
  /// (`GroupMerges`).
  ///
  /// - Parameter rules: which groups are to be merged in any case, and which never by themselves.
  public func groups(rules: GroupingRules = GroupingRules()) -> [CrashGroup] {
    // For a hash: the better hashes of crashes that had it too. More than one means that it cannot say which is meant.
    var better: [GroupKey: (owner: StackHash, isOnlyOne: Bool)] = [:]
    for part in parts {
      for other in part.otherHashes where other.quality < part.hash.quality {
        let key = GroupKey(other, scope: part.scope)
        if let known = better[key] {
          if known.owner != part.hash { better[key]?.isOnlyOne = false }
        } else {
          better[key] = (part.hash, true)
        }
      }
    }
    var bugs: [GroupKey: (hash: StackHash, parts: [Int32])] = [:]
    for (index, part) in parts.enumerated() {
      // Ends, as the quality grows with every step.
      var hash = part.hash
      while let next = better[GroupKey(hash, scope: part.scope)], next.isOnlyOne { hash = next.owner }
      bugs[GroupKey(hash, scope: part.scope), default: (hash, [])].parts.append(Int32(truncatingIfNeeded: index))
    }
    // One bug at a time: as groups, all parts together are ten times as large as they are here.
    var groups: [CrashGroup] = []
    for (hash, indices) in bugs.values {
      var joined: [GroupCell: CrashGroup] = [:]
      for index in indices {
        var part = parts[Int(index)].group(strings)
        // Before anything is decided by counts: a report that was added twice must not.
        part.removeRepeats()
        let cell = GroupCell(
          bug: GroupCell.Bug(scope: part.scope, hash: hash), build: part.builds.keys.first, siteLine: part.siteLine)
        if joined[cell]?.formUnion(part) == nil { joined[cell] = part }
      }
      groups += GroupSites.split(joined)
    }
    bugs = [:]
    groups = GroupMerges.merge(groups, rules: rules)
    for index in groups.indices {
      groups[index].members.settle()
      groups[index].removeRepeats()
    }
    return GroupOrder.count.sorted(groups)
  }

  private mutating func number(ofScope name: String) -> InternedStrings.ID {
    if let lastScope, lastScope.name == name { return lastScope.number }
    let number = scopes[name] ?? strings.intern(name)
    scopes[name] = number
    lastScope = (name, number)
    return number
  }
}

// MARK: Reports with names

extension GroupTable {
  /// The same as `add` with what `StackHasher.analyze` makes of the report, made faster.
  ///
  /// - Parameters:
  ///   - analyzer: remembers what it saw; one for each table.
  ///   - stackLimit: how long the text of a stack may be, in bytes; nil to keep none.
  ///   - whole: the report, asked for where nothing of its kind was seen before.
  /// - Returns: false where nothing was added, as the report is not one of those that this is for.
  package mutating func add(
    _ report: NamedReport, with analyzer: inout NamedStackAnalyzer, stackLimit: Int?, whole: () -> CrashReport?
  ) -> Bool {
    sweepStrings()
    guard let result = analyzer.analyze(report, in: &strings, stackLimit: stackLimit, whole: whole) else {
      return false
    }
    let facts = facts(of: result.context, analyzer)
    var member = PartMember(
      id: analyzer.redacted(report.id).map { GroupMembers.Entry.ID($0) } ?? GroupMembers.Entry.ID(report.id),
      run: report.runID.map { text in
        analyzer.redacted(text).map { GroupMembers.Entry.ID($0) } ?? GroupMembers.Entry.ID(text)
      }, timestamp: report.timestamp, previousHashes: report.previousStackHashes, reason: result.reason,
      blame: result.blame, file: result.file, line: result.line, release: facts.release,
      environment: facts.environment, host: report.host.map { analyzer.redacted($0, in: &strings) },
      message: report.message.map { analyzer.redacted($0) ?? String(decoding: $0, as: UTF8.self) },
      suppressedCount: report.suppressedCount ?? 0)
    // What the report had before is kept.
    if let earlier = report.stackHash, earlier != result.hash {
      if !member.previousHashes.contains(earlier) { member.previousHashes.append(earlier) }
      member.previousHashes.removeAll { $0 == result.hash }
    }
    // Of its own, and no larger than it must be: an array that is shared is copied with all its room when it is filled the
    // next time, and the allocator rounds that up, each time.
    let stackLines = analyzer.stackLines.map { $0 }
    add(
      member, hash: result.hash, scope: facts.scope, build: facts.build, siteLine: result.siteLine,
      callPath: analyzer.callPath, stack: stackLimit == nil ? nil : { _ in .lines(stackLines) })
    return true
  }

  private mutating func facts(of context: Int, _ analyzer: NamedStackAnalyzer) -> CommonFacts {
    if let lastFacts, lastFacts.context == context, lastFacts.generation == analyzer.contextGeneration {
      return lastFacts.facts
    }
    let template = analyzer.template(ofContext: context)
    let facts = CommonFacts(
      scope: GroupMember.scope(of: template), build: BuildKey(template),
      release: template.release.map { strings.intern($0) },
      environment: template.environment.map { strings.intern($0) })
    lastFacts = (context, analyzer.contextGeneration, facts)
    return facts
  }

  /// What all reports of a context have in common.
  fileprivate struct CommonFacts {
    var scope: String
    var build: BuildKey?
    var release: InternedStrings.ID?
    var environment: InternedStrings.ID?
  }
}

/// What a part of the table is found by.
private struct PartKey: Hashable {
  private let bug: GroupKey
  private let build: BuildKey?
  private let siteLine: Int?

  init(_ bug: GroupKey, build: BuildKey?, siteLine: Int?) {
    self.bug = bug
    self.build = build
    self.siteLine = siteLine
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(bug.number &+ (build?.rawValue ?? 0) &+ UInt64(bitPattern: Int64(siteLine ?? 0)))
  }
}

/// A hash within a service: the digest as the number that it is, which is hashed and compared in no time.
private struct GroupKey: Hashable {
  private let high: UInt64
  private let low: UInt64
  private let quality: UInt32
  private let scope: UInt32

  init(_ hash: StackHash, scope: UInt32) {
    self.scope = scope
    var quality: UInt32 =
      switch hash.quality {
      case .offsets: 0
      case .symtab: 1
      case .dwarf: 2
      }
    var digits = hash.digits
    if let number = digits.withUTF8(Self.number) {
      (high, low) = number
    } else {
      // No reader lets such a hash in, but a caller may have made one: no two of them are the same.
      let digest = SHA256.digest(Array(hash.digits.utf8))
      (high, low) = (
        digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
        digest.dropFirst(8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
      )
      quality |= 1 << 31
    }
    self.quality = quality
  }

  /// The digest is spread as well as a number can be; whoever chooses digests meets the hasher's secret.
  func hash(into hasher: inout Hasher) { hasher.combine(number) }

  var number: UInt64 { low ^ UInt64(scope) &* 0x9E37_79B9_7F4A_7C15 }

  private static func number(_ digits: UnsafeBufferPointer<UInt8>) -> (UInt64, UInt64)? {
    guard digits.count == 32 else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for index in 0..<32 {
      let byte = digits[index]
      let digit: UInt8
      if UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte {
        digit = byte &- UInt8(ascii: "0")
      } else if UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte {
        digit = byte &- UInt8(ascii: "a") &+ 10
      } else {
        return nil
      }
      high = high << 4 | low >> 60
      low = low << 4 | UInt64(digit)
    }
    return (high, low)
  }
}
