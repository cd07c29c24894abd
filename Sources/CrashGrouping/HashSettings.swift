/// What hashes depend on besides the reports: two tables made with different settings have different hashes for one crash,
/// and must not be joined.
public struct HashSettings: Hashable, Sendable {
  /// Of the rules that decide hashes: 32 hex digits; nil for none. `merge` and `split` do not, and may be others each time
  /// that groups are shown.
  public var rulesDigest: String?
  /// `StackHasher.leavesBuildOut`.
  public var acrossBuilds: Bool

  public init(rulesDigest: String? = nil, acrossBuilds: Bool = false) {
    self.rulesDigest = rulesDigest
    self.acrossBuilds = acrossBuilds
  }

  public init(rules: GroupingRules, acrossBuilds: Bool) {
    self.init(rulesDigest: rules.hashDigest, acrossBuilds: acrossBuilds)
  }
}
