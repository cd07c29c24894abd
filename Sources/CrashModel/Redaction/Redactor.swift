private import CCrashFormat

/// Takes out of a text what belongs to a person or opens a door, and leaves what helps to find the bug.
///
/// Rules and their order: `docs/redaction.md`. Linear in the text; a text without anything suspicious is returned as it
/// is. Applying it to its own output changes nothing, and a text that went through the base rules in C before (as all
/// texts of a record did) comes out as safe.
///
/// ```swift
/// Redactor().redact("login of alice@example.com from 203.0.113.9")  // "login of [redacted] from [redacted]"
/// Redactor(marks: .kinds).redact("from 203.0.113.9")  // "from [ip]"
/// ```
public struct Redactor: Sendable {
  /// What stands where something was.
  public static let token = "[redacted]"

  /// What stands where something was taken out.
  public enum Marks: Sendable {
    /// `[redacted]`, whatever it was.
    case uniform
    /// What it was: `[email]`, `[ip]`, `[secret]`, …; the name of an own rule for what that one found.
    case kinds
  }

  /// A rule of the caller's: the ranges of the text's UTF-8 bytes that are to be replaced, ascending, without overlap.
  public typealias Rule = @Sendable (_ text: [UInt8]) -> [Range<Int>]

  /// All that can stand where something was, but for the names of own rules.
  static let tokens: [StaticString] =
    ["[redacted]", "[email]"]
    + [.privateKeys, .urlCredentials, .knownPrefixes, .webTokens, .namedValues].map(\BuiltInRule.token)
    + BuiltInRule.numbers.map(\.token)

  private let marks: Marks
  private let rules: [RedactionRules.Entry]
  private let additionalRules: [Rule]

  /// - Parameters:
  ///   - rules: own patterns, usually read from a file.
  ///   - additionalRules: own code. Both are applied in their order behind the built-in rules for secrets, before the
  ///     general ones for numbers, and `rules` come first.
  public init(rules: RedactionRules = RedactionRules(), additionalRules: [Rule] = [], marks: Marks = .uniform) {
    self.rules = rules.entries
    self.additionalRules = additionalRules
    self.marks = marks
  }

  /// May be called from any thread.
  public func redact(_ text: String) -> String { redacted(text) ?? text }

  /// - Returns: nil where there is nothing to redact, which is so of nearly every text.
  func redacted(_ text: String) -> String? {
    if text.utf8.withContiguousStorageIfAvailable({ isClean($0.span) }) ?? false { return nil }
    var bytes = Array(text.utf8)
    return change(&bytes) ? String(decoding: bytes, as: UTF8.self) : nil
  }

  /// The same for a text that need not be UTF-8.
  ///
  /// - Returns: nil where there is nothing to redact.
  package func redacted(_ text: Span<UInt8>) -> [UInt8]? {
    if isClean(text) { return nil }
    var bytes = [UInt8](unsafeUninitializedCapacity: text.count) { buffer, count in
      for index in 0..<text.count { buffer.initializeElement(at: index, to: text[index]) }
      count = text.count
    }
    return change(&bytes) ? bytes : nil
  }

  private func change(_ bytes: inout [UInt8]) -> Bool {
    var changed = false
    // Where something was taken out, what follows may begin a word that it did not begin before. A second round finds
    // that; it costs nothing where the first one changed nothing, and there is nothing left to find after a third.
    for round in 0..<4 {
      guard redactOnce(&bytes, withOwnRules: round == 0) else { break }
      changed = true
    }
    return changed
  }

  /// No rule finds anything. The same as `redactOnce`, without a copy of the text to change.
  private func isClean(_ text: Span<UInt8>) -> Bool {
    guard additionalRules.isEmpty else { return false }
    for rule in rules where !rule.pattern.find(in: text).isEmpty { return false }
    if Self.isShortWord(text) { return true }
    let traits = TextTraits(text)
    if traits.isClean { return true }
    for rule in BuiltInRule.specific where traits.suspect(rule) {
      if !rule.find(in: text).isEmpty { return false }
    }
    for rule in BuiltInRule.numbers where traits.suspect(rule) {
      if !rule.find(in: text).isEmpty { return false }
    }
    guard traits.wantsBaseRules else { return true }
    return text.withUnsafeBytes { crash_redact_suspects($0.baseAddress, $0.count) == 0 }
  }

  /// Less than seven letters and digits and nothing else: the names of registers, categories. The shortest thing that a rule
  /// of ours takes out and that has no other characters is a number of seven digits.
  private static func isShortWord(_ text: Span<UInt8>) -> Bool {
    guard text.count < 7 else { return false }
    for index in text.indices where !Byte.isAlphanumeric(text[index]) { return false }
    return true
  }

  private func redactOnce(_ bytes: inout [UInt8], withOwnRules: Bool) -> Bool {
    var changed = false
    // No rule makes text that another one needs, so that the traits hold for all of them.
    let traits = TextTraits(bytes.span)
    for rule in BuiltInRule.specific where traits.suspect(rule) {
      changed = apply(rule.find(in: bytes.span), of: rule, to: &bytes) || changed
    }
    var hasOwnRules = false
    if withOwnRules {
      hasOwnRules = !additionalRules.isEmpty || !rules.isEmpty
      for rule in rules {
        let token = marks == .kinds ? "[\(rule.name)]" : Self.token
        changed = Self.apply(rule.pattern.find(in: bytes.span), to: &bytes, token: Array(token.utf8)) || changed
      }
      for rule in additionalRules {
        let found = Self.validated(rule(bytes), bytes.count)
        changed = Self.apply(found, to: &bytes, token: Array(Self.token.utf8)) || changed
      }
    }
    for rule in BuiltInRule.numbers where traits.suspect(rule) {
      changed = apply(rule.find(in: bytes.span), of: rule, to: &bytes) || changed
    }
    guard traits.wantsBaseRules || changed || hasOwnRules else { return false }
    let base = base(bytes)
    changed = changed || base != bytes
    bytes = base
    return changed
  }

  /// What stands for a private key.
  var privateKeyMark: String {
    marks == .kinds ? BuiltInRule.privateKeys.token.withUTF8Buffer { String(decoding: $0, as: UTF8.self) } : Self.token
  }

  func base(_ bytes: [UInt8]) -> [UInt8] {
    // The token is as long as the shortest thing that it stands for is short: seven digits, an address of six bytes.
    let capacity = bytes.count * 2 + 16
    return [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
      count = bytes.withUnsafeBytes { input in
        output.withMemoryRebound(to: CChar.self) { output in
          let text = input.baseAddress?.assumingMemoryBound(to: CChar.self)
          return marks == .kinds
            ? crash_redact_base_kinds(text, input.count, output.baseAddress, capacity)
            : crash_redact_base(text, input.count, output.baseAddress, capacity, nil)
        }
      }
    }
  }

  // A caller's ranges are input like any other.
  private static func validated(_ ranges: [Range<Int>], _ count: Int) -> [Range<Int>] {
    var end = 0
    return ranges.filter { range in
      guard range.lowerBound >= end, range.upperBound <= count, !range.isEmpty else { return false }
      end = range.upperBound
      return true
    }
  }

  private func apply(_ ranges: [Range<Int>], of rule: BuiltInRule, to bytes: inout [UInt8]) -> Bool {
    guard !ranges.isEmpty else { return false }
    let token: StaticString = marks == .kinds ? rule.token : "[redacted]"
    return Self.apply(ranges, to: &bytes, token: token.withUTF8Buffer { Array($0) })
  }

  private static func apply(_ ranges: [Range<Int>], to bytes: inout [UInt8], token: [UInt8]) -> Bool {
    guard !ranges.isEmpty else { return false }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count + ranges.count * token.count)
    var position = 0
    var changed = false
    for range in ranges {
      result.append(contentsOf: bytes[position..<range.lowerBound])
      // What an earlier redaction put there says as much, whichever rule that was.
      if bytes.span.redactedEnd(at: range.lowerBound) == range.upperBound {
        result.append(contentsOf: bytes[range])
      } else {
        result.append(contentsOf: token)
        changed = true
      }
      position = range.upperBound
    }
    result.append(contentsOf: bytes[position...])
    bytes = result
    return changed
  }
}
