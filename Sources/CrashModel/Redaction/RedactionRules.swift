/// Own rules: patterns with names, as a file gives them.
///
/// One rule a line, a name and a regular expression with space between them; empty lines and such that begin with `#` are
/// passed over. What expressions may hold: `docs/redaction.md`.
///
/// ```swift
/// let rules = try RedactionRules(parsing: #"ticket   \bTCK-\d{4,8}\b"#)
/// Redactor(rules: rules).redact("see TCK-12345")  // "see [redacted]"
/// ```
public struct RedactionRules: Sendable {
  struct Entry: Sendable {
    var name: String
    var pattern: RedactionPattern
  }

  /// What is wrong with a text of rules.
  public struct Problem: Error, CustomStringConvertible, Sendable {
    /// From 1; nil where it is not about one.
    public let line: Int?
    public let message: String
    public var description: String { (line.map { "line \($0): " } ?? "") + message }

    package init(line: Int?, message: String) { (self.line, self.message) = (line, message) }
  }

  let entries: [Entry]

  /// Of rules; more are refused, as each is a reading of every text.
  public static let limit = 256

  /// No rules.
  public init() { entries = [] }

  private init(_ entries: [Entry]) { self.entries = entries }

  /// These rules, then the others.
  ///
  /// - Throws: `Problem` where they are more than `limit` together.
  public func adding(_ others: RedactionRules) throws(Problem) -> RedactionRules {
    let all = entries + others.entries
    guard all.count <= Self.limit else { throw Problem(line: nil, message: "more than \(Self.limit) rules in all") }
    return RedactionRules(all)
  }

  /// - Throws: `Problem` for the first line that is no rule.
  public init(parsing text: String) throws(Problem) {
    var entries: [Entry] = []
    var number = 0
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == "\r\n" }) {
      number += 1
      let words = line.split(maxSplits: 1) { $0 == " " || $0 == "\t" }
      guard let name = words.first, name.first != "#" else { continue }
      guard Self.isName(name) else {
        throw Problem(
          line: number,
          message: "'\(name.prefix(40))' is no name of a rule: small letters and '-', at most 32, then the pattern")
      }
      guard words.count == 2, let pattern = Self.trimmed(words[1]) else {
        throw Problem(line: number, message: "the rule '\(name)' has no pattern")
      }
      guard entries.count < Self.limit else { throw Problem(line: number, message: "more than \(Self.limit) rules") }
      do throws(RedactionPattern.Problem) {
        entries.append(Entry(name: String(name), pattern: try RedactionPattern(pattern)))
      } catch {
        throw Problem(
          line: number,
          message: "the pattern of '\(name)', behind '\(Self.beginning(pattern, error.offset))': \(error.message)")
      }
    }
    self.entries = entries
  }

  private static func isName(_ name: Substring) -> Bool {
    name.utf8.count <= 32 && name.utf8.first != UInt8(ascii: "-")
      && name.utf8.allSatisfy { $0 == UInt8(ascii: "-") || Byte.isLetter($0) && !Byte.isUpper($0) }
  }

  private static func trimmed(_ text: Substring) -> String? {
    let bytes = text.utf8.drop { Byte.isSpace($0) }
    var end = bytes.endIndex
    while end > bytes.startIndex, Byte.isSpace(bytes[bytes.index(before: end)]) { end = bytes.index(before: end) }
    let result = String(decoding: bytes[..<end], as: UTF8.self)
    return result.isEmpty ? nil : result
  }

  private static func beginning(_ pattern: String, _ count: Int) -> String {
    String(decoding: pattern.utf8.prefix(count).suffix(60), as: UTF8.self)
  }
}
