/// Identifies the bug behind a crash.
public struct StackHash: Hashable, Sendable {
  /// 32 lower-case hex digits.
  public var digits: String
  /// How good the names were from which it was computed.
  public var quality: Quality

  public init(digits: String, quality: Quality) {
    self.digits = digits
    self.quality = quality
  }

  /// How good the names were, best last.
  public enum Quality: String, Hashable, Sendable, Comparable, CaseIterable {
    /// No names: build id and offset are in the hash, which so holds within one build.
    case offsets
    /// Names from symbol tables, without inlined functions: build id and offset are in the hash too.
    case symtab
    /// Names and inlined functions from debug information: the hash holds across releases.
    case dwarf

    public static func < (left: Quality, right: Quality) -> Bool { left.rank < right.rank }

    private var rank: Int {
      switch self {
      case .offsets: 0
      case .symtab: 1
      case .dwarf: 2
      }
    }
  }
}
