public import CrashModel

/// The reports of one bug: the document `crash-group/1`.
public struct CrashGroup: Hashable, Sendable {
  /// The value of the JSON key `schema`.
  public static let schema = "crash-group/1"
  /// So many hosts are named; a service in a cluster has a new one with every restart.
  public static let hostLimit = 64

  public var scope: String
  /// The best one.
  public package(set) var hash: StackHash
  /// Those that the group owns besides `hash`, by quality and digits.
  public package(set) var otherHashes: [StackHash]
  /// Reports, each as often as it was added.
  public package(set) var reportCount: Int
  /// Crashes, those included that were counted and not stored.
  public package(set) var count: Int
  public package(set) var firstSeen: Timestamp?
  public package(set) var lastSeen: Timestamp?
  public package(set) var releases: ReleaseCounts
  public package(set) var days: DayCounts
  /// The alphabetically first ones, at most `hostLimit`.
  public package(set) var hosts: [String]
  /// There were more than `hosts` names.
  public package(set) var moreHosts: Bool
  /// What tells whether two groups were ever seen in the same build, and so cannot be one bug.
  public package(set) var builds: BuildSet
  /// Ways on which the blamed function was called, of the reports with debug information.
  public package(set) var callPaths: CallPathSet
  /// Line within the blamed function, counted from its declaration; nil where no report says it, or several differ.
  public package(set) var siteLine: Int?
  /// Which of the places within the blamed function this is, from 1 on; nil where there is only one. A number of this
  /// answer: with other reports the places may be numbered otherwise.
  public package(set) var site: Int?
  /// Which groups were made one with this one, and by which rule; in the order of rule and hash.
  public package(set) var mergedBy: [GroupMerge] = []
  /// Which groups may be this one under another name. A person decides.
  public package(set) var suggestions: [GroupMerge] = []
  /// The report with the best names and, of those, the latest one. What a group is called comes from it.
  public package(set) var sample: GroupMember
  /// Empty unless the table keeps them.
  public package(set) var members: GroupMembers
  /// What somebody said of it.
  public package(set) var resolution: Resolution?
  /// Beside an earlier state; nil where there is none to compare with.
  public package(set) var comparison: GroupComparison?

  /// A group as it was written down.
  ///
  /// - Parameter sample: its hash is the group's.
  package init(
    sample: GroupMember, otherHashes: [StackHash], reportCount: Int, count: Int, firstSeen: Timestamp?,
    lastSeen: Timestamp?, releases: ReleaseCounts, days: DayCounts, hosts: [String], moreHosts: Bool,
    members: GroupMembers, resolution: Resolution?, builds: BuildSet, callPaths: CallPathSet, siteLine: Int?
  ) {
    scope = sample.scope
    hash = sample.hash
    self.otherHashes = []
    self.reportCount = max(reportCount, 0)
    self.count = max(count, 0)
    self.firstSeen = firstSeen
    self.lastSeen = lastSeen
    self.releases = releases
    self.days = days
    self.hosts = []
    self.moreHosts = moreHosts
    self.sample = sample
    self.members = members
    self.resolution = resolution
    self.builds = builds
    self.callPaths = callPaths
    self.siteLine = siteLine
    for other in otherHashes { add(hash: other) }
    let isInOrder = hosts.count <= Self.hostLimit && zip(hosts, hosts.dropFirst()).allSatisfy { $0 < $1 }
    if isInOrder { self.hosts = hosts } else { for host in hosts { add(host: host) } }
  }

  /// What went wrong and where, in a line: `bounds in orderd.Store.load(id:)`.
  public var title: String {
    let what = sample.reason?.rawValue ?? "crash"
    return sample.blame.map { "\(what) in \($0.function)" } ?? what
  }

  /// All hashes that the group owns.
  public var hashes: Set<StackHash> { Set(otherHashes + [hash]) }

  /// The crashing frames are not the ones that did the damage: the heap was corrupted earlier.
  public var hasUnreliableVictim: Bool { sample.reason?.hasUnreliableVictim ?? false }

  /// Beside an earlier state; nil where there is none to compare with.
  public var status: GroupStatus? { comparison?.status }

  private mutating func add(hash other: StackHash) {
    if other != hash { otherHashes.insertInOrder(other) }
  }

  private mutating func add(host: String) {
    // Equal names first: comparing for order costs more, and nearly every host is there.
    for known in hosts where known == host { return }
    if hosts.count == Self.hostLimit {
      moreHosts = true
      if let last = hosts.last, last < host { return }
    }
    hosts.insert(host, at: hosts.firstIndex { $0 > host } ?? hosts.count)
    if hosts.count > Self.hostLimit { hosts.removeLast() }
  }

  /// Commutative and associative, so that the order of reports does not matter.
  package mutating func formUnion(_ other: CrashGroup) {
    reportCount = reportCount.addingClamped(other.reportCount)
    count = count.addingClamped(other.count)
    firstSeen = Timestamp.earlier(firstSeen, other.firstSeen)
    lastSeen = Timestamp.later(lastSeen, other.lastSeen)
    releases.formUnion(other.releases)
    days.formUnion(other.days)
    moreHosts = moreHosts || other.moreHosts
    for host in other.hosts { add(host: host) }
    members.formUnion(other.members)
    builds.formUnion(other.builds)
    callPaths.formUnion(other.callPaths)
    if siteLine != other.siteLine { siteLine = nil }
    mergedBy = GroupMerge.union(mergedBy, other.mergedBy)
    suggestions = GroupMerge.union(suggestions, other.suggestions)
    if site != other.site { site = nil }
    resolution = Resolution.latest(resolution, other.resolution)
    let all = otherHashes + [hash] + other.otherHashes + [other.hash]
    if other.sample.compareAsSample(with: sample) == .better { sample = other.sample }
    hash = sample.hash
    otherHashes = []
    for hash in all { add(hash: hash) }
  }

  package mutating func forgetMembers() { members = GroupMembers() }

  /// Counts each of the kept reports once, however often it was added.
  package mutating func removeRepeats() {
    guard !members.isEmpty else { return }
    var group = self
    group.members.removeRepeats { entry, extraTimes in
      let (extra, overflow) = entry.crashes.multipliedReportingOverflow(by: extraTimes)
      let crashes = overflow ? .max : extra
      reportCount = max(reportCount - extraTimes, 0)
      count = max(count - crashes, 0)
      if let moment = entry.timestamp { days.remove(crashes, on: moment.day) }
      if let release = entry.release { releases.remove(crashes, of: release) }
    }
    members = group.members
  }
}

extension GroupMember {
  enum SampleOrder { case better, equal, worse }

  /// Whether a report, rather than another one, is what a group is shown by. A total order: which one it is must not depend
  /// on the order in which they came.
  func compareAsSample(with other: GroupMember) -> SampleOrder {
    if hash.quality != other.hash.quality { return hash.quality > other.hash.quality ? .better : .worse }
    if timestamp != other.timestamp {
      guard let timestamp else { return .worse }
      return other.timestamp.map { timestamp > $0 } ?? true ? .better : .worse
    }
    if reportID != other.reportID { return reportID < other.reportID ? .better : .worse }
    var (left, right) = (self, other)
    (left.stack, right.stack) = (nil, nil)
    if left != right {
      // Two reports of one id, which ought not to be: any order does, if it is one. All that a member holds is in this
      // text.
      return String(reflecting: left) < String(reflecting: right) ? .better : .worse
    }
    if stack == other.stack { return .equal }
    guard let stack else { return .equal }
    return other.stack.map { stack < $0 } ?? true ? .better : .worse
  }
}
