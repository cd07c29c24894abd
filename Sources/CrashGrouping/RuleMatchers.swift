internal import CrashModel

/// What a rule looks for; all of it must fit.
struct RuleMatchers: Sendable {
  private var frameMatchers: [FrameMatcher] = []
  private var reasons: [GlobPattern] = []
  private var messages: [MessagePattern] = []

  private enum FrameMatcher: Sendable {
    case function(GlobPattern)
    case module(GlobPattern)
    case image(GlobPattern, isPath: Bool)
    case path(GlobPattern)
    case caller(GlobPattern)
    case callee(GlobPattern)
  }

  private static let keys = ["function", "module", "image", "path", "caller", "callee", "reason", "message"]

  /// - Parameter needsFrame: the action is one on frames, of which something must be said.
  init(_ words: ArraySlice<RuleLine.Word>, of action: String, needsFrame: Bool) throws(RuleProblem) {
    for word in words {
      guard let key = word.key, !word.value.isEmpty else {
        throw RuleProblem(
          "expected KEY:PATTERN, found '\(word.text)'; keys are \(Self.keys.joined(separator: ", "))")
      }
      let pattern = GlobPattern(word.value)
      switch key {
      case "function": frameMatchers.append(.function(pattern))
      case "module": frameMatchers.append(.module(pattern))
      case "image": frameMatchers.append(.image(pattern, isPath: word.value.contains("/")))
      case "path": frameMatchers.append(.path(pattern))
      case "caller": frameMatchers.append(.caller(pattern))
      case "callee": frameMatchers.append(.callee(pattern))
      case "reason": reasons.append(pattern)
      case "message":
        do {
          messages.append(try MessagePattern(word.value))
        } catch {
          throw RuleProblem("'\(word.value)' is no regular expression: \(error.reason)")
        }
      default: throw RuleProblem("unknown key '\(key)'; one of \(Self.keys.joined(separator: ", "))")
      }
    }
    if needsFrame ? frameMatchers.isEmpty : frameMatchers.isEmpty && reasons.isEmpty && messages.isEmpty {
      let wanted = needsFrame ? "function, module, image, path, caller or callee" : "something to look for"
      throw RuleProblem("'\(action)' needs \(wanted), or it would be for every crash")
    }
  }

  /// - Parameter index: nil for a stack in which no frame is blamed.
  func fit(frame index: Int?, of frames: [StackAnalysis.ClassifiedFrame], _ facts: StackFacts) -> Bool {
    guard reasons.allSatisfy({ $0.matches(facts.reason) }) else { return false }
    if !frameMatchers.isEmpty {
      guard let index, frameMatchers.allSatisfy({ Self.fits($0, frames, at: index, facts) }) else { return false }
    }
    return messages.allSatisfy { pattern in facts.message.map(pattern.isFound) ?? false }
  }

  private static func fits(
    _ matcher: FrameMatcher, _ frames: [StackAnalysis.ClassifiedFrame], at index: Int, _ facts: StackFacts
  ) -> Bool {
    switch matcher {
    case .function(let pattern): hasName(frames[index], pattern)
    case .module(let pattern): frames[index].module.map(pattern.matches) ?? false
    case .image(let pattern, let isPath):
      frames[index].frame.captured.imageIndex.flatMap { facts.images.indices.contains($0) ? facts.images[$0] : nil }
        .map { pattern.matches(isPath ? $0.path : $0.name) } ?? false
    case .path(let pattern): frames[index].frame.file.map(pattern.matches) ?? false
    case .caller(let pattern):
      frames[(index + 1)...].first { $0.frameClass.name != nil }.map { hasName($0, pattern) } ?? false
    case .callee(let pattern):
      frames[..<index].last { $0.frameClass.name != nil }.map { hasName($0, pattern) } ?? false
    }
  }

  // By the name in the hash, by the one that reports show, and by the linker's.
  private static func hasName(_ entry: StackAnalysis.ClassifiedFrame, _ pattern: GlobPattern) -> Bool {
    [entry.frameClass.name, entry.frame.function, entry.frame.rawFunction].contains { name in
      name.map(pattern.matches) ?? false
    }
  }
}

/// What rules ask of a report besides its frames.
struct StackFacts {
  var reason: String
  var message: String?
  var images: [Image]

  init(_ stack: StackAnalysis, report: CrashReport) {
    reason = stack.reason.rawValue
    message = report.message
    images = report.images
  }
}
