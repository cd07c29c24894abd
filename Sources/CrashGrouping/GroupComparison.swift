public import CrashModel

/// What a group is beside an earlier state.
public enum GroupStatus: String, Hashable, Sendable, CaseIterable {
  /// Not in the earlier state.
  case new
  case known
  /// Called mended in a release, and seen in a newer one.
  case regressed
  /// In the earlier state only.
  case gone
}

/// A group beside what an earlier state had of it.
public struct GroupComparison: Hashable, Sendable {
  public var status: GroupStatus
  /// Crashes in the earlier state.
  public var earlierCount: Int
  /// The last crash in the earlier state.
  public var earlierLastSeen: Timestamp?
  /// Releases that the earlier state did not have of it, by name.
  public var newReleases: [String]
}

/// An earlier state, to say what is new.
///
/// A group is found again by its hash, or by a hash that it owned while it had fewer names. A hash of lower quality that
/// neither is known by proves nothing: two bugs may share it.
///
/// ```swift
/// let baseline = GroupBaseline(groupsOfLastWeek)
/// for group in baseline.compare(groups) where group.status == .new { print(group.title) }
/// ```
public struct GroupBaseline: Sendable {
  private struct Key: Hashable {
    var scope: String
    var hash: StackHash
  }

  private let groups: [CrashGroup]
  private var byMainHash: [Key: [Int]] = [:]
  private var byAnyHash: [Key: [Int]] = [:]
  /// When each release of a service was seen first, in which group ever.
  private var firstSeen: [String: [String: Timestamp]] = [:]

  public init(_ groups: [CrashGroup]) {
    self.groups = groups
    for (index, group) in groups.enumerated() {
      byMainHash[Key(scope: group.scope, hash: group.hash), default: []].append(index)
      for hash in group.hashes { byAnyHash[Key(scope: group.scope, hash: hash), default: []].append(index) }
    }
    note(groups)
  }

  private mutating func note(_ groups: [CrashGroup]) {
    for group in groups {
      for release in group.releases.entries {
        guard let moment = release.firstSeen else { continue }
        let known = firstSeen[group.scope]?[release.name]
        firstSeen[group.scope, default: [:]][release.name] = Timestamp.earlier(known, moment)
      }
    }
  }

  /// The groups with their status, in their order, and behind them those that are gone.
  public func compare(_ current: [CrashGroup]) -> [CrashGroup] {
    var all = self
    all.note(current)
    var isFound = [Bool](repeating: false, count: groups.count)
    var result = current
    for index in result.indices {
      let places = places(of: result[index])
      for place in places { isFound[place] = true }
      all.compare(&result[index], with: places.map { groups[$0] })
    }
    for (index, group) in groups.enumerated() where !isFound[index] {
      var group = group
      group.comparison = GroupComparison(
        status: .gone, earlierCount: group.count, earlierLastSeen: group.lastSeen, newReleases: [])
      result.append(group)
    }
    return result
  }

  private func places(of group: CrashGroup) -> [Int] {
    var places = Set(byAnyHash[Key(scope: group.scope, hash: group.hash)] ?? [])
    for hash in group.otherHashes { places.formUnion(byMainHash[Key(scope: group.scope, hash: hash)] ?? []) }
    return places.sorted()
  }

  private func compare(_ group: inout CrashGroup, with earlier: [CrashGroup]) {
    guard !earlier.isEmpty else {
      group.comparison = GroupComparison(status: .new, earlierCount: 0, earlierLastSeen: nil, newReleases: [])
      return
    }
    let resolution = earlier.map(\.resolution).reduce(group.resolution, Resolution.latest)
    group.resolution = resolution
    let known = Set(earlier.flatMap { $0.releases.entries.map(\.name) })
    group.comparison = GroupComparison(
      status: resolution.map { isRegressed(group, $0) } ?? false ? .regressed : .known,
      earlierCount: earlier.reduce(0) { $0.addingClamped($1.count) },
      earlierLastSeen: earlier.map(\.lastSeen).reduce(nil, Timestamp.later),
      newReleases: group.releases.entries.map(\.name).filter { !known.contains($0) })
  }

  /// Seen in a newer release than the one that it was mended in. Newer by version where both names are one; otherwise the
  /// one that was seen first later, in whichever group. Of a group without releases its last crash decides.
  private func isRegressed(_ group: CrashGroup, _ resolution: Resolution) -> Bool {
    guard let mended = resolution.release else { return false }
    if group.releases.isEmpty { return group.lastSeen.map { $0 > resolution.moment } ?? false }
    let version = ReleaseVersion(mended)
    // A release that no crash came from was not seen first at any time; it was there when it was named.
    let mendedFirstSeen = firstSeen[group.scope]?[mended] ?? resolution.moment
    return group.releases.entries.contains { release in
      guard release.name != mended else { return false }
      if let version, let other = ReleaseVersion(release.name) { return other > version }
      return (firstSeen[group.scope]?[release.name]).map { $0 > mendedFirstSeen } ?? false
    }
  }
}
