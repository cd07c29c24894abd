public import CrashModel

/// What a group table needs to know of one report.
///
/// A value of its own rather than the report, so that whoever adds up millions of them need not keep, or even make,
/// whole reports.
public struct GroupMember: Hashable, Sendable {
  public var reportID: String
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

  public init(
    reportID: String, scope: String, hash: StackHash, previousHashes: [StackHash] = [], reason: Reason? = nil,
    message: String? = nil, blame: Blame? = nil, timestamp: Timestamp? = nil, release: String? = nil,
    environment: String? = nil, host: String? = nil, suppressedCount: Int = 0, build: BuildKey? = nil,
    siteLine: Int? = nil, callPath: [String] = []
  ) {
    self.reportID = reportID
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
    let executable = report.process?.executable?.split(separator: "/").last.map(String.init)
    self.init(
      reportID: report.id, scope: report.service ?? executable ?? "", hash: hash,
      previousHashes: report.previousStackHashes, reason: report.reason, message: report.message,
      blame: analysis.blame, timestamp: report.timestamp, release: report.release, environment: report.environment,
      host: report.process?.host, suppressedCount: report.suppressedCount ?? 0, build: BuildKey(report),
      siteLine: isSame ? analysis.siteLine : nil, callPath: isSame ? analysis.callPath() : [])
  }
}

/// Adds reports up to groups, one at a time and in any order.
///
/// Memory grows with groups, not with reports. Two tables that were given the same members in different orders have
/// equal groups.
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
  /// What `groups()` makes groups of: see `GroupCell`.
  private var cells: [GroupCell: CrashGroup] = [:]
  /// For a hash: the better hashes of crashes that had it too. More than one means that it cannot say which is meant.
  private var better: [GroupCell.Bug: Set<StackHash>] = [:]

  public init() {}

  public mutating func add(_ member: GroupMember) {
    let cell = GroupCell(member)
    // In its place: nearly every report belongs to a cell that is there.
    if cells[cell]?.add(member) == nil { cells[cell] = CrashGroup(member) }
    for previous in member.previousHashes where previous.quality < member.hash.quality {
      better[GroupCell.Bug(scope: member.scope, hash: previous), default: []].insert(member.hash)
    }
  }

  /// The groups: largest first, then latest, then by hash.
  ///
  /// Reports that only have a lower-quality hash join the group that owns it. Where two groups own it (fewer names told
  /// the two bugs not apart), they stay a group of their own: a wrong union cannot be seen, an extra row can. Then
  /// different places within one function become groups (`GroupSites`), and groups that are one bug become one
  /// (`GroupMerges`).
  ///
  /// - Parameter rules: which groups are to be merged in any case, and which never by themselves.
  public func groups(rules: GroupingRules = GroupingRules()) -> [CrashGroup] {
    var joined: [GroupCell: CrashGroup] = [:]
    for (cell, group) in cells {
      let owner = owner(of: cell)
      if joined[owner] == nil {
        joined[owner] = group
      } else {
        joined[owner]?.formUnion(group)
      }
    }
    return GroupMerges.merge(GroupSites.split(joined), rules: rules).sorted { left, right in
      if left.count != right.count { return left.count > right.count }
      if left.lastSeen != right.lastSeen {
        return (left.lastSeen?.rawValue ?? .min) > (right.lastSeen?.rawValue ?? .min)
      }
      return (left.hash.digits, left.site ?? 0, left.scope) < (right.hash.digits, right.site ?? 0, right.scope)
    }
  }

  /// Follows the only better hash until there is none; ends, as the quality grows with every step.
  private func owner(of cell: GroupCell) -> GroupCell {
    var cell = cell
    while let candidates = better[cell.bug], candidates.count == 1, let next = candidates.first,
      next.quality > cell.bug.hash.quality
    {
      cell.bug.hash = next
    }
    return cell
  }
}
