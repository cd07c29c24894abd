public import CrashModel

/// A team's own rules about which crashes are one bug, read from a file: `docs/grouping-rules.md`.
///
/// ```swift
/// let rules = try GroupingRules("helper function:orderd.Check.*\nlib module:Generated*")
/// let hasher = StackHasher(rules: rules)
/// ```
public struct GroupingRules: Sendable {
  /// Rules about frames, in their order: the first that fits a frame decides.
  var frameRules: [(action: FrameAction, matchers: RuleMatchers)] = []
  /// Rules about whole stacks, of which somebody is blamed.
  var stackRules: [(action: StackAction, matchers: RuleMatchers)] = []
  /// Sets of stack hashes that are one bug.
  public internal(set) var merges: [Set<String>] = []
  /// Stack hashes whose groups are not merged with others by themselves.
  public internal(set) var splits: Set<String> = []

  /// The lines of `frameRules` and `stackRules`, word by word.
  private var hashLines: [(isOfFrames: Bool, text: String)] = []

  /// What becomes of a frame.
  enum FrameAction: String, CaseIterable {
    case app, lib, runtime, helper, boundary
  }

  /// What becomes of a stack.
  enum StackAction {
    case group(String)
    case ignoreSite
  }

  /// No rules.
  public init() {}

  /// - Parameter text: the whole file.
  public init(_ text: String) throws(RuleError) {
    var number = 0
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      number += 1
      do throws(RuleProblem) {
        try add(RuleLine(line.last == "\r" ? line.dropLast() : line))
      } catch {
        throw RuleError(line: number, problem: error.text)
      }
    }
  }

  /// Stands for what decides hashes: the same for two files that differ in comments, in spaces, or in how they merge and
  /// split groups. nil where nothing does.
  var hashDigest: String? {
    guard !hashLines.isEmpty else { return nil }
    // Rules for frames are asked in their order, and so are those for stacks, whichever stand first.
    let lines = hashLines.filter(\.isOfFrames) + hashLines.filter { !$0.isOfFrames }
    return Hex.string(SHA256.digest(Array(lines.map(\.text).joined(separator: "\n").utf8)).prefix(16))
  }

  /// Whether a file said anything.
  public var isEmpty: Bool { frameRules.isEmpty && stackRules.isEmpty && merges.isEmpty && splits.isEmpty }

  static let actions = FrameAction.allCases.map(\.rawValue) + ["group", "ignore-site", "merge", "split"]

  private mutating func add(_ line: RuleLine) throws(RuleProblem) {
    guard let action = line.words.first else { return }
    let rest = line.words.dropFirst()
    if let frameAction = FrameAction(rawValue: action.text) {
      frameRules.append((frameAction, try RuleMatchers(rest, of: action.text, needsFrame: true)))
      hashLines.append((true, line.text))
      return
    }
    switch action.text {
    case "group":
      guard let text = rest.first, text.isQuoted, !text.text.isEmpty else {
        throw RuleProblem("'group' needs a text in quotes first, as in: group \"checkout {default}\" module:Checkout")
      }
      stackRules.append((.group(text.text), try RuleMatchers(rest.dropFirst(), of: "group", needsFrame: false)))
      hashLines.append((false, line.text))
    case "ignore-site":
      stackRules.append((.ignoreSite, try RuleMatchers(rest, of: "ignore-site", needsFrame: false)))
      hashLines.append((false, line.text))
    case "merge":
      let hashes = Set(try Self.hashes(rest, of: "merge"))
      guard hashes.count > 1 else { throw RuleProblem("'merge' needs two or more different stack hashes") }
      merges.append(hashes)
    case "split":
      let hashes = try Self.hashes(rest, of: "split")
      guard !hashes.isEmpty else { throw RuleProblem("'split' needs a stack hash") }
      splits.formUnion(hashes)
    default:
      throw RuleProblem("unknown action '\(action.text)'; one of \(Self.actions.joined(separator: ", "))")
    }
  }

  private static func hashes(_ words: ArraySlice<RuleLine.Word>, of action: String) throws(RuleProblem) -> [String] {
    var hashes: [String] = []
    for word in words {
      let digits = word.text.lowercased()
      guard digits.utf8.count == 32, Hex.bytes(digits) != nil else {
        throw RuleProblem("'\(action)' takes stack hashes, 32 hex digits each, and '\(word.text)' is none")
      }
      hashes.append(digits)
    }
    return hashes
  }
}

/// A rules file cannot be used.
public struct RuleError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Counted from 1.
  public var line: Int
  public var problem: String

  public var description: String { "line \(line): \(problem)" }
}

/// What is wrong with a line.
struct RuleProblem: Error {
  var text: String

  init(_ text: String) { self.text = text }
}

extension GroupingRules: StackRules {
  public func revise(_ stack: inout StackAnalysis, report: CrashReport) -> StackRevision {
    var revision = StackRevision()
    guard !frameRules.isEmpty else { return revision }
    let facts = StackFacts(stack, report: report)
    // Rules ask for what the frames are without them, so that the order of frames does not matter.
    let frames = stack.frames
    for index in frames.indices {
      guard let action = frameRules.first(where: { $0.matchers.fit(frame: index, of: frames, facts) })?.action else {
        continue
      }
      switch action {
      case .app: stack.frames[index].overrule(as: .app)
      case .lib: stack.frames[index].overrule(as: .lib)
      case .runtime: stack.frames[index].overrule(as: .runtime)
      case .helper:
        stack.frames[index].overrule(as: frames[index].frameClass.kind)
        revision.helpers.insert(index)
      case .boundary:
        stack.frames[index].overrule(as: frames[index].frameClass.kind)
        if revision.boundary == nil { revision.boundary = index }
      }
    }
    return revision
  }

  public func judge(_ stack: StackAnalysis, report: CrashReport) -> StackVerdict {
    var verdict = StackVerdict()
    guard !stackRules.isEmpty else { return verdict }
    let facts = StackFacts(stack, report: report)
    let blamed = stack.frames.firstIndex(where: \.isBlamed)
    for rule in stackRules where rule.matchers.fit(frame: blamed, of: stack.frames, facts) {
      switch rule.action {
      case .group(let text): verdict.group = verdict.group ?? text
      case .ignoreSite: verdict.ignoresSite = true
      }
    }
    return verdict
  }
}
