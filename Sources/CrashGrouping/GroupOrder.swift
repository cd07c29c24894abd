internal import CrashModel

/// What groups are sorted by. Each order ends with the hash and the service, so that none depends on how the groups were
/// made.
public enum GroupOrder: String, Sendable, CaseIterable {
  /// Most crashes first, then latest.
  case count
  /// Latest crash first, then most crashes.
  case lastSeen = "last-seen"
  /// What appeared last first, then most crashes.
  case firstSeen = "first-seen"

  /// The groups in this order; those without a time behind those with one.
  public func sorted(_ groups: [CrashGroup]) -> [CrashGroup] {
    // Their places, as groups are large to be moved about.
    let order = groups.indices.sorted { place, otherPlace in
      let (left, right) = (groups[place], groups[otherPlace])
      switch self {
      case .count:
        if left.count != right.count { return left.count > right.count }
        if left.lastSeen != right.lastSeen { return Self.isLater(left.lastSeen, right.lastSeen) }
      case .lastSeen:
        if left.lastSeen != right.lastSeen { return Self.isLater(left.lastSeen, right.lastSeen) }
        if left.count != right.count { return left.count > right.count }
      case .firstSeen:
        if left.firstSeen != right.firstSeen { return Self.isLater(left.firstSeen, right.firstSeen) }
        if left.count != right.count { return left.count > right.count }
      }
      if left.hash != right.hash {
        return (right.hash.quality, left.hash.digits) < (left.hash.quality, right.hash.digits)
      }
      if left.site != right.site { return (left.site ?? 0) < (right.site ?? 0) }
      return left.scope < right.scope
    }
    return order.map { groups[$0] }
  }

  private static func isLater(_ left: Timestamp?, _ right: Timestamp?) -> Bool {
    guard let left else { return false }
    return right.map { left > $0 } ?? true
  }
}
