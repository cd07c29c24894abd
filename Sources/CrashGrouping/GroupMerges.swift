private import CrashModel

/// Groups that are one bug under several stack hashes.
///
/// One compiler inlines a function, another one leaves its frame out with a tail call, a third puts a closure around it: the
/// blamed function is then another one, and so is the hash. What remains is that the one group's callers are the other
/// group's blamed function and its callers. That alone is weak, as functions have many callees that fail; it becomes
/// strong with what a bug cannot do: the same build always gives it the same hash. So two groups that were ever seen in
/// one build are two bugs, and are never merged.
///
/// A pure function of the groups, whatever their order; `docs/stack-hash.md` has the rules.
///
/// ```swift
/// for group in GroupMerges.merge(groups) where !group.mergedBy.isEmpty { print(group.title, group.mergedBy) }
/// ```
public enum GroupMerges {
  /// So many names of two call paths are compared. What lies further out is how the work reached the thread, and differs
  /// within one bug.
  static let comparedCount = 5
  /// One function failing in one way has one hash, and so as many groups as places; more of them with one call path were made
  /// up, and comparing them all would take the square of their number.
  private static let meetingLimit = 256
  /// Functions that one function calls, and that failed in the same way: with more of them, guesses are not worth much.
  private static let renameLimit = 32

  /// - Parameters:
  ///   - groups: after their places were parted.
  ///   - rules: which groups are to be merged in any case, and which never by themselves.
  /// - Returns: fewer groups or as many, each with what it was merged from and what may be the same as it.
  public static func merge(_ groups: [CrashGroup], rules: GroupingRules = GroupingRules()) -> [CrashGroup] {
    // All ties are broken by it.
    let groups = groups.sorted { left, right in
      (left.scope, left.hash.digits, left.site ?? 0) < (right.scope, right.hash.digits, right.site ?? 0)
    }
    var clusters = Clusters(groups)
    for hashes in rules.merges {
      let meant = groups.indices.filter { groups[$0].hashes.contains { hashes.contains($0.digits) } }
      for other in meant.dropFirst() {
        clusters.merge(Candidate(inner: other, outer: meant[0], likeness: 1000, rule: .userRule))
      }
    }
    for candidate in candidates(groups, splits: rules.splits) { clusters.merge(candidate) }
    var merged = clusters.merged(groups)
    suggestRenames(&merged)
    return merged
  }

  // MARK: Containment

  fileprivate struct Candidate {
    /// Blames the deeper function.
    var inner: Int
    /// Blames its caller.
    var outer: Int
    /// How well the call paths agree, in thousandths.
    var likeness: Int
    var rule: GroupMerge.Rule
  }

  /// What two groups must have in common to be compared: an index by it makes the work linear.
  private struct Meeting: Hashable {
    var scope: String
    var reason: Reason?
    var first: String
    var second: String
  }

  private static func isMergeable(_ group: CrashGroup, splits: Set<String> = []) -> Bool {
    // Names of symbol tables lack what was inlined, and the frames of damaged memory are anybody's.
    group.hash.quality == .dwarf && !group.hasUnreliableVictim
      && (splits.isEmpty || !group.hashes.contains { splits.contains($0.digits) })
  }

  // Best first.
  private static func candidates(_ groups: [CrashGroup], splits: Set<String>) -> [Candidate] {
    var blamed: [Meeting: [Int]] = [:]
    for (index, group) in groups.enumerated() where isMergeable(group, splits: splits) {
      for path in group.callPaths.paths where path.count > 1 {
        let meeting = Meeting(scope: group.scope, reason: group.sample.reason, first: path[0], second: path[1])
        if blamed[meeting]?.last != index { blamed[meeting, default: []].append(index) }
      }
    }
    var candidates: [Candidate] = []
    for (index, group) in groups.enumerated() where isMergeable(group, splits: splits) {
      let isHang = group.sample.reason == .hang
      var likeness: [Int: Int] = [:]
      for path in group.callPaths.paths where path.count > 2 {
        let meeting = Meeting(scope: group.scope, reason: group.sample.reason, first: path[1], second: path[2])
        guard let others = blamed[meeting], others.count <= meetingLimit else { continue }
        for other in others where other != index {
          guard isHang || group.builds.isKnownDisjoint(with: groups[other].builds) else { continue }
          for outer in groups[other].callPaths.paths {
            let found = self.likeness(path.dropFirst(), outer[...])
            if found >= 750 { likeness[other] = max(likeness[other] ?? 0, found) }
          }
        }
      }
      for (other, likeness) in likeness {
        candidates.append(
          Candidate(inner: index, outer: other, likeness: likeness, rule: isHang ? .hang : .containment))
      }
    }
    let contested = contested(candidates, groups)
    return candidates.filter { !contested.contains($0.outer) }.sorted { left, right in
      (right.likeness, left.inner, left.outer) < (left.likeness, right.inner, right.outer)
    }
  }

  /// Groups that contain several bugs: two that were seen in one build both have the group as their caller. It is the one
  /// bug's as well as the other's, or a mixture of both.
  private static func contested(_ candidates: [Candidate], _ groups: [CrashGroup]) -> Set<Int> {
    var inner: [Int: [Int]] = [:]
    for candidate in candidates where candidate.rule == .containment {
      inner[candidate.outer, default: []].append(candidate.inner)
    }
    var contested: Set<Int> = []
    for (outer, inner) in inner where inner.count > 1 {
      var seen: Set<BuildKey> = []
      for group in inner where !contested.contains(outer) {
        if groups[group].builds.keys.contains(where: { !seen.insert($0).inserted }) { contested.insert(outer) }
      }
    }
    return contested
  }

  /// How well two call paths agree, in thousandths: the length of their longest common subsequence, of the longer one's.
  /// 0 where they do not begin alike, or are too short to say anything.
  private static func likeness(_ left: ArraySlice<String>, _ right: ArraySlice<String>) -> Int {
    let (left, right) = (Array(left.prefix(comparedCount)), Array(right.prefix(comparedCount)))
    guard left.count > 1, right.count > 1, left[0] == right[0], left[1] == right[1] else { return 0 }
    return commonCount(left, right) * 1000 / max(left.count, right.count)
  }

  private static func commonCount(_ left: [String], _ right: [String]) -> Int {
    var row = [Int](repeating: 0, count: right.count + 1)
    for name in left {
      var diagonal = 0
      for column in right.indices {
        let above = row[column + 1]
        row[column + 1] = name == right[column] ? diagonal + 1 : max(above, row[column])
        diagonal = above
      }
    }
    return row[right.count]
  }

  // MARK: Renames

  private static func suggestRenames(_ groups: inout [CrashGroup]) {
    var callers: [Meeting: [Int]] = [:]
    for (index, group) in groups.enumerated() where isMergeable(group) && group.sample.reason != .hang {
      for path in group.callPaths.paths where path.count > 2 {
        let meeting = Meeting(scope: group.scope, reason: group.sample.reason, first: path[1], second: path[2])
        if callers[meeting]?.last != index { callers[meeting, default: []].append(index) }
      }
    }
    var pairs: Set<[Int]> = []
    for alike in callers.values where 2...renameLimit ~= alike.count {
      for (position, left) in alike.enumerated() {
        for right in alike[(position + 1)...] where isRename(groups[left], groups[right]) {
          pairs.insert([left, right])
        }
      }
    }
    for pair in pairs {
      let (left, right) = (pair[0], pair[1])
      groups[left].suggest(.rename, groups[right])
      groups[right].suggest(.rename, groups[left])
    }
  }

  private static func isRename(_ left: CrashGroup, _ right: CrashGroup) -> Bool {
    guard left.hash.digits != right.hash.digits, left.builds.isKnownDisjoint(with: right.builds) else { return false }
    return left.callPaths.paths.contains { one in
      right.callPaths.paths.contains { two in
        one.first != two.first && likeness(one.dropFirst(), two.dropFirst()) > 0
          && commonCount(one, two) * 1000 >= 750 * max(one.count, two.count)
      }
    }
  }
}

extension CrashGroup {
  fileprivate mutating func suggest(_ rule: GroupMerge.Rule, _ other: CrashGroup) {
    suggestions = GroupMerge.union(suggestions, [GroupMerge(rule: rule, stackHash: other.hash.digits)])
  }
}

/// Groups that become one, by and by.
private struct Clusters {
  private var parent: [Int]
  // Of each cluster, at its root. The groups' own sets are bounded, and what is added up here need not be.
  private var builds: [Set<BuildKey>]
  private var edges: [[(rule: GroupMerge.Rule, inner: Int, outer: Int)]]

  init(_ groups: [CrashGroup]) {
    parent = Array(groups.indices)
    builds = groups.map { Set($0.builds.keys) }
    edges = Array(repeating: [], count: groups.count)
  }

  private mutating func root(of index: Int) -> Int {
    var index = index
    while parent[index] != index {
      parent[index] = parent[parent[index]]
      index = parent[index]
    }
    return index
  }

  /// Does nothing where the clusters that the two have become meanwhile were seen in one build.
  mutating func merge(_ candidate: GroupMerges.Candidate) {
    let (left, right) = (root(of: candidate.inner), root(of: candidate.outer))
    guard left != right else { return }
    if candidate.rule == .containment, !builds[left].isDisjoint(with: builds[right]) { return }
    let (into, from) = (min(left, right), max(left, right))
    parent[from] = into
    builds[into].formUnion(builds[from])
    builds[from] = []
    edges[into] += edges[from] + [(candidate.rule, candidate.inner, candidate.outer)]
    edges[from] = []
  }

  mutating func merged(_ groups: [CrashGroup]) -> [CrashGroup] {
    var result: [CrashGroup] = []
    var places: [Int: Int] = [:]
    for index in groups.indices {
      let root = root(of: index)
      if let place = places[root] {
        result[place].formUnion(groups[index])
      } else {
        places[root] = result.count
        result.append(groups[index])
      }
    }
    for (root, place) in places {
      let found = edges[root].flatMap { edge in
        [edge.inner, edge.outer].map { GroupMerge(rule: edge.rule, stackHash: groups[$0].hash.digits) }
      }
      // What it is called now needs no mention.
      let others = found.filter { $0.stackHash != result[place].hash.digits }
      result[place].mergedBy = GroupMerge.union(result[place].mergedBy, Set(others).sorted())
    }
    return result
  }
}
