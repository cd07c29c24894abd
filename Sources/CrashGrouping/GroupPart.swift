internal import CrashModel

/// A group while it is added up: what a table has for each hash, build and line.
///
/// A tenth of a `CrashGroup`: all texts are numbers of the table's strings. There are many more parts than groups, as each
/// bug has one for each build that it was seen in.
struct GroupPart: Sendable {
  let scope: InternedStrings.ID
  let hash: StackHash
  let build: BuildKey?
  let siteLine: Int?
  var otherHashes: [StackHash]
  var reportCount: Int
  var count: Int
  var firstSeen: Timestamp?
  var lastSeen: Timestamp?
  var releases: ReleaseCounts
  var days: DayCounts
  /// The alphabetically first ones.
  var hosts: [InternedStrings.ID]
  var moreHosts: Bool
  /// One behind the other, each with its length in front: in the order of `CallPathSet`.
  var callPaths: [InternedStrings.ID]
  var members: GroupMembers
  var resolution: Resolution?
  var sample: PartSample
}

/// `CrashGroup.sample`, as far as a part does not have it itself.
struct PartSample: Sendable {
  var member: PartMember
  var callPath: [InternedStrings.ID]
  var stack: PartStack?
}

/// What a part takes of a report: a `GroupMember` whose texts are numbers, but for those that are hardly ever the same.
struct PartMember: Sendable {
  var id: GroupMembers.Entry.ID
  var run: GroupMembers.Entry.ID?
  var timestamp: Timestamp?
  var previousHashes: [StackHash]
  var reason: InternedStrings.ID?
  var blame: InternedStrings.ID?
  var file: InternedStrings.ID?
  var line: Int?
  var release: InternedStrings.ID?
  var environment: InternedStrings.ID?
  var host: InternedStrings.ID?
  var message: String?
  var suppressedCount: Int
}

/// The text of a stack: its lines, which are the same in many stacks.
enum PartStack: Sendable {
  /// Without the numbers in front of them.
  case lines([InternedStrings.ID])
  /// That are not numbered as lines of a stack are.
  case text(String)

  init(_ text: String, _ strings: inout InternedStrings) {
    var lines: [InternedStrings.ID] = []
    var number = 0
    for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      let head = "\(number) "
      guard line.starts(with: head.utf8), let content = String(line.dropFirst(head.utf8.count)) else {
        self = .text(text)
        return
      }
      lines.append(strings.intern(content))
      number += 1
    }
    self = .lines(lines)
  }

  func text(_ strings: InternedStrings) -> String {
    switch self {
    case .text(let text): return text
    case .lines(let lines):
      var text = ""
      for (number, line) in lines.enumerated() { text += "\(number > 0 ? "\n" : "")\(number) \(strings[line])" }
      return text
    }
  }
}

extension GroupPart {
  /// Without reports; they are added next.
  init(_ key: GroupCell, scope: InternedStrings.ID, sample: PartSample) {
    self.init(
      scope: scope, hash: key.bug.hash, build: key.build, siteLine: key.siteLine, otherHashes: [], reportCount: 0,
      count: 0, firstSeen: nil, lastSeen: nil, releases: ReleaseCounts(), days: DayCounts(), hosts: [],
      moreHosts: false, callPaths: [], members: GroupMembers(), resolution: nil, sample: sample)
  }

  /// The same as `CrashGroup.formUnion` with the group of this report alone.
  ///
  /// - Parameter stack: the report's stack, asked for where it becomes the sample or might.
  mutating func add(
    _ member: PartMember, callPath: [InternedStrings.ID], keepsMembers: Bool, _ strings: inout InternedStrings,
    stack: ((inout InternedStrings) -> PartStack?)?
  ) {
    for other in member.previousHashes where other != hash { otherHashes.insertInOrder(other) }
    let crashes = 1.addingClamped(member.suppressedCount)
    let isFirst = reportCount == 0
    reportCount = reportCount.addingClamped(1)
    count = count.addingClamped(crashes)
    if let moment = member.timestamp {
      if firstSeen.map({ moment < $0 }) ?? true { firstSeen = moment }
      if lastSeen.map({ moment > $0 }) ?? true { lastSeen = moment }
      days.add(crashes, on: moment.day)
    }
    let release = member.release.map { strings[$0] }
    if let release { releases.add(release, count: crashes, at: member.timestamp) }
    if let host = member.host { add(host: host, strings) }
    insert(callPath: callPath[...], strings)
    if keepsMembers {
      members.add(GroupMembers.Entry(member.id, timestamp: member.timestamp, release: release, crashes: crashes))
    }
    switch isFirst ? .better : compareAsSample(member, callPath: callPath, strings) {
    case .better:
      sample.set(member, callPath: callPath)
      sample.stack = stack?(&strings)
    case .equal:
      // The same report once more.
      if let found = stack?(&strings), sample.stack.map({ found.text(strings) < $0.text(strings) }) ?? true {
        sample.stack = found
      }
    case .worse: break
    }
  }

  /// `GroupMember.compareAsSample`, for reports of one hash.
  private func compareAsSample(
    _ member: PartMember, callPath: [InternedStrings.ID], _ strings: InternedStrings
  ) -> GroupMember.SampleOrder {
    let known = sample.member
    if member.timestamp != known.timestamp {
      guard let timestamp = member.timestamp else { return .worse }
      return known.timestamp.map { timestamp > $0 } ?? true ? .better : .worse
    }
    if member.id != known.id { return member.id.string < known.id.string ? .better : .worse }
    var (left, right) = (self, self)
    left.sample = PartSample(member: member, callPath: callPath)
    right.sample.stack = nil
    return left.member(strings).compareAsSample(with: right.member(strings))
  }

  mutating func add(host: InternedStrings.ID, _ strings: InternedStrings) {
    for known in hosts where known == host { return }
    if hosts.count == CrashGroup.hostLimit {
      moreHosts = true
      if let last = hosts.last, strings.isBefore(last, host) { return }
    }
    hosts.insert(host, at: hosts.firstIndex { strings.isBefore(host, $0) } ?? hosts.count)
    if hosts.count > CrashGroup.hostLimit { hosts.removeLast() }
  }

  /// `CallPathSet.insert`.
  mutating func insert(callPath: ArraySlice<InternedStrings.ID>, _ strings: InternedStrings) {
    guard !callPath.isEmpty else { return }
    var (place, number) = (0, 0)
    while place < callPaths.count {
      let known = callPaths[(place + 1)...(place + Int(callPaths[place]))]
      if known.elementsEqual(callPath) { return }
      if Self.isBefore(callPath, known, strings) { break }
      place += known.count + 1
      number += 1
    }
    guard number < CallPathSet.limit else { return }
    callPaths.insert(contentsOf: [InternedStrings.ID(callPath.count)] + callPath, at: place)
    var (end, kept) = (0, 0)
    while end < callPaths.count, kept < CallPathSet.limit {
      end += Int(callPaths[end]) + 1
      kept += 1
    }
    if end < callPaths.count { callPaths.removeSubrange(end...) }
  }

  private static func isBefore(
    _ left: ArraySlice<InternedStrings.ID>, _ right: ArraySlice<InternedStrings.ID>, _ strings: InternedStrings
  ) -> Bool {
    for (one, other) in zip(left, right) where one != other { return strings.isBefore(one, other) }
    return left.count < right.count
  }
}

extension PartSample {
  /// Keeps the memory that it has: in the order of time, each report is the sample of its part for a while.
  mutating func set(_ member: PartMember, callPath: [InternedStrings.ID]) {
    self.member = member
    self.callPath.removeAll(keepingCapacity: true)
    self.callPath.append(contentsOf: callPath)
  }
}

extension PartMember {
  init(_ member: GroupMember, _ strings: inout InternedStrings) {
    self.init(
      id: GroupMembers.Entry.ID(member.reportID), run: member.runID.map { GroupMembers.Entry.ID($0) },
      timestamp: member.timestamp, previousHashes: member.previousHashes,
      reason: member.reason.map { strings.intern($0.rawValue) },
      blame: member.blame.map { strings.intern($0.function) },
      file: member.blame?.file.map { strings.intern($0) }, line: member.blame?.line,
      release: member.release.map { strings.intern($0) }, environment: member.environment.map { strings.intern($0) },
      host: member.host.map { strings.intern($0) }, message: member.message, suppressedCount: member.suppressedCount)
  }
}

// MARK: As a group

extension GroupPart {
  /// The sample as a report of its own.
  func member(_ strings: InternedStrings) -> GroupMember {
    let known = sample.member
    var member = GroupMember(
      reportID: known.id.string, runID: known.run?.string, scope: strings[scope], hash: hash,
      previousHashes: known.previousHashes,
      reason: known.reason.map { Reason(rawValue: strings[$0]) }, message: known.message,
      blame: known.blame.map {
        Blame(function: strings[$0], file: known.file.map { strings[$0] }, line: known.line)
      },
      timestamp: known.timestamp, release: known.release.map { strings[$0] },
      environment: known.environment.map { strings[$0] }, host: known.host.map { strings[$0] },
      suppressedCount: known.suppressedCount, build: build, siteLine: siteLine,
      callPath: sample.callPath.map { strings[$0] })
    member.stack = sample.stack?.text(strings)
    return member
  }

  func group(_ strings: InternedStrings) -> CrashGroup {
    var paths = CallPathSet()
    var place = 0
    while place < callPaths.count {
      let end = place + 1 + Int(callPaths[place])
      paths.insert(callPaths[(place + 1)..<end].map { strings[$0] })
      place = end
    }
    return CrashGroup(
      sample: member(strings), otherHashes: otherHashes, reportCount: reportCount, count: count, firstSeen: firstSeen,
      lastSeen: lastSeen, releases: releases, days: days, hosts: hosts.map { strings[$0] }, moreHosts: moreHosts,
      members: members, resolution: resolution, builds: BuildSet(build), callPaths: paths, siteLine: siteLine)
  }

  init(_ group: CrashGroup, scope: InternedStrings.ID, _ strings: inout InternedStrings) {
    let sample = PartSample(
      member: PartMember(group.sample, &strings), callPath: group.sample.callPath.map { strings.intern($0) },
      stack: group.sample.stack.map { PartStack($0, &strings) })
    self.init(
      scope: scope, hash: group.hash, build: group.builds.keys.first, siteLine: group.siteLine,
      otherHashes: group.otherHashes, reportCount: group.reportCount, count: group.count, firstSeen: group.firstSeen,
      lastSeen: group.lastSeen, releases: group.releases, days: group.days,
      hosts: group.hosts.map { strings.intern($0) }, moreHosts: group.moreHosts,
      callPaths: group.callPaths.paths.flatMap { path in
        [InternedStrings.ID(path.count)] + path.map { strings.intern($0) }
      }, members: group.members, resolution: group.resolution, sample: sample)
  }

  func mark(in used: inout [Bool]) {
    func mark(_ id: InternedStrings.ID?) { if let id { used[Int(id)] = true } }
    mark(scope)
    for host in hosts { mark(host) }
    var place = 0
    while place < callPaths.count {
      let end = place + 1 + Int(callPaths[place])
      for name in callPaths[(place + 1)..<end] { mark(name) }
      place = end
    }
    let member = sample.member
    for id in [member.reason, member.blame, member.file, member.release, member.environment, member.host] { mark(id) }
    for name in sample.callPath { mark(name) }
    if case .lines(let lines) = sample.stack { for line in lines { mark(line) } }
  }
}

extension [StackHash] {
  /// By quality, best first, and digits; each once.
  mutating func insertInOrder(_ hash: StackHash) {
    let place = firstIndex { !Self.isBefore($0, hash) } ?? count
    if place < count, self[place] == hash { return }
    insert(hash, at: place)
  }

  private static func isBefore(_ left: StackHash, _ right: StackHash) -> Bool {
    (right.quality, left.digits) < (left.quality, right.digits)
  }
}
