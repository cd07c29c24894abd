private import CCrashFormat

/// Takes out of a text what belongs to a person or opens a door, and leaves what helps to find the bug.
///
/// Rules and their order: `docs/redaction.md`. Linear in the text; a text without anything suspicious is returned as it
/// is. Applying it to its own output changes nothing, and a text that went through the base rules in C before (as all
/// texts of a record did) comes out as safe.
///
/// ```swift
/// Redactor().redact("login of alice@example.com from 203.0.113.9")  // "login of [redacted] from [redacted]"
/// ```
public struct Redactor: Sendable {
  /// What stands where something was.
  public static let token = "[redacted]"

  /// A rule of the caller's: the ranges of the text's UTF-8 bytes that are to be replaced, ascending, without overlap.
  public typealias Rule = @Sendable (_ text: [UInt8]) -> [Range<Int>]

  private let additionalRules: [Rule]

  /// - Parameter additionalRules: applied in their order behind the built-in ones for secrets, before the general ones
  ///   for numbers.
  public init(additionalRules: [Rule] = []) { self.additionalRules = additionalRules }

  /// May be called from any thread.
  public func redact(_ text: String) -> String { redacted(text) ?? text }

  /// - Returns: nil where there is nothing to redact, which is so of nearly every text.
  func redacted(_ text: String) -> String? {
    if additionalRules.isEmpty, text.utf8.withContiguousStorageIfAvailable({ Self.isClean($0.span) }) ?? false {
      return nil
    }
    var bytes = Array(text.utf8)
    var changed = false
    // Where something was taken out, what follows may begin a word that it did not begin before. A second round finds
    // that; it costs nothing where the first one changed nothing, and there is nothing left to find after a third.
    for round in 0..<4 {
      guard redactOnce(&bytes, additionalRules: round == 0 ? additionalRules : []) else { break }
      changed = true
    }
    return changed ? String(decoding: bytes, as: UTF8.self) : nil
  }

  /// No built-in rule finds anything. The same as `redactOnce`, without a copy of the text to change.
  private static func isClean(_ text: Span<UInt8>) -> Bool {
    let traits = TextTraits(text)
    if traits.isClean { return true }
    for rule in BuiltInRule.specific where rule.isWanted(traits) {
      if !rule.find(in: text).isEmpty { return false }
    }
    for rule in BuiltInRule.numbers where rule.isWanted(traits) {
      if !rule.find(in: text).isEmpty { return false }
    }
    guard traits.wantsBaseRules else { return true }
    return text.withUnsafeBytes { crash_redact_suspects($0.baseAddress, $0.count) == 0 }
  }

  private func redactOnce(_ bytes: inout [UInt8], additionalRules: [Rule]) -> Bool {
    var changed = false
    // No rule makes text that another one needs, so that the traits hold for all of them.
    let traits = TextTraits(bytes.span)
    for rule in BuiltInRule.specific where rule.isWanted(traits) {
      changed = Self.apply(rule.find(in: bytes.span), to: &bytes) || changed
    }
    for rule in additionalRules {
      changed = Self.apply(Self.validated(rule(bytes), bytes.count), to: &bytes) || changed
    }
    for rule in BuiltInRule.numbers where rule.isWanted(traits) {
      changed = Self.apply(rule.find(in: bytes.span), to: &bytes) || changed
    }
    guard traits.wantsBaseRules || changed || !additionalRules.isEmpty else { return false }
    let base = Self.base(bytes)
    changed = changed || base != bytes
    bytes = base
    return changed
  }

  private static func base(_ bytes: [UInt8]) -> [UInt8] {
    // The token is as long as the shortest thing that it stands for is short: seven digits, an address of six bytes.
    let capacity = bytes.count * 2 + 16
    return [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
      count = bytes.withUnsafeBytes { input in
        output.withMemoryRebound(to: CChar.self) { output in
          crash_redact_base(
            input.baseAddress?.assumingMemoryBound(to: CChar.self), input.count, output.baseAddress, capacity, nil)
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

  private static func apply(_ ranges: [Range<Int>], to bytes: inout [UInt8]) -> Bool {
    guard !ranges.isEmpty else { return false }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count + ranges.count * token.utf8.count)
    var position = 0
    var changed = false
    for range in ranges {
      if !bytes[range].elementsEqual(token.utf8) { changed = true }
      result.append(contentsOf: bytes[position..<range.lowerBound])
      result.append(contentsOf: token.utf8)
      position = range.upperBound
    }
    result.append(contentsOf: bytes[position...])
    bytes = result
    return changed
  }
}
