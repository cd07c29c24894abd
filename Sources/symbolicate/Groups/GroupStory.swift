internal import CrashGrouping
internal import CrashModel

/// What there is to say of a group beside the others: for pages that people read.
struct GroupStory {
  private let groups: [CrashGroup]
  /// Of each service, the releases in the order in which they came.
  private var timelines: [String: [String]] = [:]
  /// Of all groups: the first and the last day that had a crash.
  let days: ClosedRange<Int32>?

  init(_ groups: [CrashGroup]) {
    self.groups = groups
    var firstSeen: [String: [String: Timestamp?]] = [:]
    for group in groups {
      for release in group.releases.entries {
        let known = firstSeen[group.scope]?[release.name] ?? nil
        let moments = [known, release.firstSeen].compactMap { $0 }
        firstSeen[group.scope, default: [:]][release.name] = .some(moments.min())
      }
    }
    for (scope, releases) in firstSeen {
      let versions = releases.keys.compactMap { name in ReleaseVersion(name).map { (name, $0) } }
      if versions.count == releases.count {
        timelines[scope] = versions.sorted { ($0.1, $0.0) < ($1.1, $1.0) }.map(\.0)
      } else {
        timelines[scope] = releases.sorted { left, right in
          (left.value?.rawValue ?? .min, left.key) < (right.value?.rawValue ?? .min, right.key)
        }.map(\.key)
      }
    }
    let first = groups.compactMap { $0.days.days.first?.number }.min()
    let last = groups.compactMap { $0.days.days.last?.number }.max()
    if let first, let last, first <= last { days = first...last } else { days = nil }
  }

  /// `1,234 crashes in 12 groups, 2026-11-01 to 2026-11-30 (UTC)`
  var headline: String {
    let present = groups.filter { $0.status != .gone }
    let crashes = present.reduce(0) { sum, group in
      let (total, overflow) = sum.addingReportingOverflow(group.count)
      return overflow ? .max : total
    }
    var text = "\(Self.number(crashes)) \(crashes == 1 ? "crash" : "crashes") in \(Self.number(present.count)) "
    text += present.count == 1 ? "group" : "groups"
    if let first = present.compactMap(\.firstSeen).min(), let last = present.compactMap(\.lastSeen).max() {
      let (from, to) = (first.rfc3339.prefix(10), last.rfc3339.prefix(10))
      text += from == to ? ", \(from) (UTC)" : ", \(from) to \(to) (UTC)"
    }
    return text
  }

  /// The releases of a group, the newest first.
  func releases(of group: CrashGroup) -> [ReleaseCounts.Release] {
    let order = timelines[group.scope] ?? []
    let ranks = Dictionary(order.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    return group.releases.entries.sorted { (ranks[$0.name] ?? -1, $0.name) > (ranks[$1.name] ?? -1, $1.name) }
  }

  /// What changed, a sentence each.
  ///
  /// - Parameter name: what a release's name, which comes from outside, becomes in the sentence.
  func changes(of group: CrashGroup, name: (String) -> String = { $0 }) -> [String] {
    var changes: [String] = []
    let releases = releases(of: group)
    switch group.comparison?.status {
    case .new: changes.append("New: not in the baseline.")
    case .gone:
      changes.append("Gone: \(Self.count(group.count)) in the baseline, none now.")
    case .known, .regressed:
      let earlier = group.comparison?.earlierCount ?? 0
      if group.status == .regressed, let release = group.resolution?.release {
        changes.append("Regressed: resolved in \(name(release)), and seen in a newer release.")
      }
      changes.append(
        group.count > earlier
          ? "\(Self.number(group.count - earlier)) more than in the baseline (\(Self.number(earlier)))."
          : group.count < earlier
            ? "\(Self.number(earlier - group.count)) fewer than in the baseline (\(Self.number(earlier)))."
            : "As many as in the baseline.")
      if let new = group.comparison?.newReleases, !new.isEmpty {
        changes.append(
          "Not seen before in \(new.prefix(8).map(name).joined(separator: ", "))\(new.count > 8 ? " and others" : "").")
      }
    case nil: break
    }
    if let release = group.resolution?.release, group.status != .regressed {
      changes.append("Resolved in \(name(release)).")
    }
    if let oldest = releases.last, let newest = releases.first {
      changes.append(
        oldest.name == newest.name
          ? "Seen in \(name(newest.name)) only."
          : "Seen from \(name(oldest.name)) to \(name(newest.name)).")
      if let latest = timelines[group.scope]?.last, latest != newest.name {
        changes.append("Not seen in \(name(latest)), the newest release of the service here.")
      }
    }
    if !group.mergedBy.isEmpty {
      let hashes = group.mergedBy.map { "\($0.stackHash) (\($0.rule.rawValue))" }
      changes.append("Merged with \(hashes.joined(separator: ", ")).")
    }
    if !group.suggestions.isEmpty {
      changes.append("May be \(group.suggestions.map(\.stackHash).joined(separator: ", ")) under another name.")
    }
    if group.hasUnreliableVictim {
      changes.append("Memory was corrupted earlier: the frames that crashed are not the culprits.")
    }
    return changes
  }

  /// Crashes over time, for a chart: at most `columns` numbers of equally many days, those of all groups.
  func columns(of group: CrashGroup, atMost columns: Int) -> [Int] {
    guard let days, columns > 0 else { return [] }
    let length = Int(days.upperBound) - Int(days.lowerBound) + 1
    let width = (length + columns - 1) / columns
    var counts = [Int](repeating: 0, count: (length + width - 1) / width)
    for day in group.days.days {
      let column = (Int(day.number) - Int(days.lowerBound)) / width
      guard counts.indices.contains(column) else { continue }
      let (sum, overflow) = counts[column].addingReportingOverflow(day.count)
      counts[column] = overflow ? .max : sum
    }
    return counts
  }

  static func count(_ crashes: Int) -> String { crashes == 1 ? "1 crash" : "\(number(crashes)) crashes" }

  /// `12,345`
  static func number(_ value: Int) -> String {
    let digits = Array(String(value))
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3), digits[index - 1] != "-" { text += "," }
      text.append(digit)
    }
    return text
  }
}
