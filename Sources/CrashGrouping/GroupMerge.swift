/// Another group that is the same bug, or may be, and the rule that says so.
public struct GroupMerge: Hashable, Sendable, Comparable {
  /// How two groups were found to be one.
  public enum Rule: String, Hashable, Sendable, CaseIterable, Comparable {
    /// The blamed function of one is, with its callers, the caller of the other's: the compiler of one build inlined it, or
    /// left it out with a tail call.
    case containment
    /// The same of two hangs, which a sample may catch at any depth.
    case hang
    /// The callers are the same and the blamed function has another name. Suggested, never done.
    case rename
    /// A rule of the user's.
    case userRule = "rule"

    public static func < (left: Rule, right: Rule) -> Bool { left.rawValue < right.rawValue }
  }

  public var rule: Rule
  /// The other group's.
  public var stackHash: String

  public init(rule: Rule, stackHash: String) {
    self.rule = rule
    self.stackHash = stackHash
  }

  public static func < (left: GroupMerge, right: GroupMerge) -> Bool {
    (left.rule, left.stackHash) < (right.rule, right.stackHash)
  }

  static func union(_ left: [GroupMerge], _ right: [GroupMerge]) -> [GroupMerge] {
    if right.isEmpty || left == right { return left }
    return Set(left + right).sorted()
  }
}
