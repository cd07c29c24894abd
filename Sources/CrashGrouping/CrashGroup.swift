public import CrashModel

/// The reports of one bug: the document `crash-group/1`.
public struct CrashGroup: Hashable, Sendable {
  /// The value of the JSON key `schema`.
  public static let schema = "crash-group/1"
  /// So many hosts are named; a service in a cluster has a new one with every restart.
  public static let hostLimit = 64

  public var scope: String
  /// The best one.
  public private(set) var hash: StackHash
  /// All that the group owns.
  public private(set) var hashes: Set<StackHash>
  /// Crashes, those included that were counted and not stored.
  public private(set) var count: Int
  public private(set) var firstSeen: Timestamp?
  public private(set) var lastSeen: Timestamp?
  /// How many crashes each release had.
  public private(set) var releases: [String: Int]
  /// The alphabetically first ones, at most `hostLimit`.
  public private(set) var hosts: [String]
  /// There were more than `hosts` names.
  public private(set) var moreHosts: Bool
  /// What tells whether two groups were ever seen in the same build, and so cannot be one bug.
  public private(set) var builds: BuildSet
  /// Ways on which the blamed function was called, of the reports with debug information.
  public private(set) var callPaths: CallPathSet
  /// Line within the blamed function, counted from its declaration; nil where no report says it, or several differ.
  public private(set) var siteLine: Int?
  /// Which of the places within the blamed function this is, from 1 on; nil where there is only one. A number of this
  /// answer: with other reports the places may be numbered otherwise.
  public internal(set) var site: Int?
  /// Which groups were made one with this one, and by which rule; in the order of rule and hash.
  public internal(set) var mergedBy: [GroupMerge] = []
  /// Which groups may be this one under another name. A person decides.
  public internal(set) var suggestions: [GroupMerge] = []
  /// The report with the best names and, of those, the latest one. What a group is called comes from it.
  public private(set) var sample: GroupMember

  init(_ member: GroupMember) {
    scope = member.scope
    hash = member.hash
    hashes = Set(member.previousHashes + [member.hash])
    count = 1.addingClamped(member.suppressedCount)
    firstSeen = member.timestamp
    lastSeen = member.timestamp
    releases = member.release.map { [$0: 1.addingClamped(member.suppressedCount)] } ?? [:]
    hosts = member.host.map { [$0] } ?? []
    moreHosts = false
    builds = BuildSet(member.build)
    callPaths = CallPathSet([member.callPath])
    siteLine = member.siteLine
    sample = member
  }

  /// What went wrong and where, in a line: `bounds in orderd.Store.load(id:)`.
  public var title: String {
    let what = sample.reason?.rawValue ?? "crash"
    return sample.blame.map { "\(what) in \($0.function)" } ?? what
  }

  /// The crashing frames are not the ones that did the damage: the heap was corrupted earlier.
  public var hasUnreliableVictim: Bool { sample.reason?.hasUnreliableVictim ?? false }

  /// The same as a union with the group of this report alone.
  mutating func add(_ member: GroupMember) {
    hashes.insert(member.hash)
    for hash in member.previousHashes { hashes.insert(hash) }
    let crashes = 1.addingClamped(member.suppressedCount)
    count = count.addingClamped(crashes)
    if let moment = member.timestamp {
      firstSeen = min(firstSeen ?? moment, moment)
      lastSeen = max(lastSeen ?? moment, moment)
    }
    if let release = member.release { releases[release] = (releases[release] ?? 0).addingClamped(crashes) }
    if let host = member.host { add(host: host) }
    builds.insert(member.build)
    callPaths.insert(member.callPath)
    if siteLine != member.siteLine { siteLine = nil }
    if Self.isBetterSample(member, than: sample) {
      sample = member
      hash = member.hash
    }
  }

  private mutating func add(host: String) {
    var low = 0
    var high = hosts.count
    while low < high {
      let middle = low + (high - low) / 2
      if hosts[middle] < host { low = middle + 1 } else { high = middle }
    }
    guard low == hosts.count || hosts[low] != host else { return }
    if hosts.count == Self.hostLimit { moreHosts = true }
    hosts.insert(host, at: low)
    if hosts.count > Self.hostLimit { hosts.removeLast() }
  }

  /// Commutative and associative, so that the order of reports does not matter.
  mutating func formUnion(_ other: CrashGroup) {
    hashes.formUnion(other.hashes)
    count = count.addingClamped(other.count)
    firstSeen = [firstSeen, other.firstSeen].compactMap { $0 }.min()
    lastSeen = [lastSeen, other.lastSeen].compactMap { $0 }.max()
    releases.merge(other.releases) { $0.addingClamped($1) }
    if other.hosts != hosts || other.moreHosts {
      let all = Set(hosts).union(other.hosts).sorted()
      moreHosts = moreHosts || other.moreHosts || all.count > Self.hostLimit
      hosts = Array(all.prefix(Self.hostLimit))
    }
    builds.formUnion(other.builds)
    callPaths.formUnion(other.callPaths)
    if siteLine != other.siteLine { siteLine = nil }
    mergedBy = GroupMerge.union(mergedBy, other.mergedBy)
    suggestions = GroupMerge.union(suggestions, other.suggestions)
    if site != other.site { site = nil }
    if Self.isBetterSample(other.sample, than: sample) { sample = other.sample }
    hash = sample.hash
  }

  private static func isBetterSample(_ left: GroupMember, than right: GroupMember) -> Bool {
    if left.hash.quality != right.hash.quality { return left.hash.quality > right.hash.quality }
    if left.timestamp != right.timestamp {
      return (left.timestamp?.rawValue ?? .min) > (right.timestamp?.rawValue ?? .min)
    }
    return left.reportID < right.reportID
  }
}

extension Int {
  /// Counts from outside can be anything up to the largest number.
  func addingClamped(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(Swift.max(other, 0))
    return overflow ? .max : sum
  }
}
