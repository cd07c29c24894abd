/// What a team knows about its own code and the algorithm cannot: which functions are mere helpers, which modules are its
/// own, which crashes belong together.
///
/// Asked once for each report, after frames have classes and before somebody is blamed. What it does is part of the hash:
/// two places that group the same reports need the same rules.
public protocol StackRules: Sendable {
  /// - Parameters:
  ///   - stack: its frames' classes may be changed.
  /// - Returns: what else the rules say.
  func revise(_ stack: inout StackAnalysis, report: CrashReport) -> StackRevision

  /// Asked when somebody is blamed.
  func judge(_ stack: StackAnalysis, report: CrashReport) -> StackVerdict
}

/// What rules say about a stack when somebody is blamed.
public struct StackVerdict: Sendable {
  /// What takes the name's and the reason's place in the key; nil to leave them. In the text `{default}` stands for the
  /// hash without rules, `{function}` for the blamed function, `{reason}` for the reason.
  public var group: String?
  /// Different lines within the blamed function are one bug.
  public var ignoresSite: Bool

  public init(group: String? = nil, ignoresSite: Bool = false) {
    self.group = group
    self.ignoresSite = ignoresSite
  }
}

extension StackAnalysis.ClassifiedFrame {
  /// The module that defines the function; nil for other functions than Swift's.
  public var module: String? {
    guard let raw = frame.rawFunction ?? frame.function, SwiftName.isSwift(raw) else { return nil }
    return SwiftName.module(of: raw)
  }

  /// A rule of the user's decides. A function that has no name of its own (generated code, a folded one) gets none by it,
  /// except that code which is now somebody's must be called something.
  public mutating func overrule(as kind: FrameClass.Kind) {
    let isOwned = kind == .app || kind == .lib
    let name = frameClass.name ?? (isOwned ? frame.function ?? frame.rawFunction : nil)
    frameClass = FrameClass(kind: kind, name: name, rule: .ruleOfUser)
  }
}

/// What rules say about a stack besides the classes of its frames.
public struct StackRevision: Sendable {
  /// Frames that are passed over where the reason is a contract: each only checks, and its caller broke the promise.
  public var helpers: Set<Int>
  /// Nobody from here on outward is to blame.
  public var boundary: Int?

  public init(helpers: Set<Int> = [], boundary: Int? = nil) {
    self.helpers = helpers
    self.boundary = boundary
  }
}
