import CCrashFormat
import CrashModel
import Foundation
import TestSupport
import Testing

@Suite struct RedactorTests {
  struct Case: Decodable, Sendable, CustomTestStringConvertible {
    var id: Int
    var category: String
    var input: String
    var expected: String
    var secrets: [String]

    var testDescription: String { "\(id) \(category)" }
    var mustStay: Bool { category.hasSuffix("-neg") }
  }

  static let corpus: [Case] = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "Resources/redaction/corpus.jsonl")
    guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
    let decoder = JSONDecoder()
    return text.split(separator: "\n").compactMap { try? decoder.decode(Case.self, from: Data($0.utf8)) }
  }()

  /// What a record holds: the text after the base rules.
  static func base(_ text: String) -> String {
    var output = [CChar](repeating: 0, count: 4 * text.utf8.count + 64)
    let length = crash_redact_base(text, text.utf8.count, &output, output.count, nil)
    return String(decoding: output[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  @Test func theCorpusIsThere() { #expect(Self.corpus.count == 147) }

  @Test(arguments: corpus) func noSecretIsLeft(_ line: Case) {
    let redacted = Redactor().redact(line.input)
    for secret in line.secrets { #expect(!redacted.contains(secret), "\(redacted)") }
    if line.mustStay { #expect(redacted == line.expected) }
    #expect(Redactor().redact(redacted) == redacted, "not idempotent")
  }

  @Test(arguments: corpus) func noSecretIsLeftBehindTheBaseRules(_ line: Case) {
    let redacted = Redactor().redact(Self.base(line.input))
    for secret in line.secrets { #expect(!redacted.contains(secret), "\(redacted)") }
    if line.mustStay { #expect(redacted == line.expected) }
  }

  @Test func theResultIsTheExpectedOne() {
    let wrong = Self.corpus.filter { Redactor().redact($0.input) != $0.expected }
    #expect(
      wrong.count * 20 <= Self.corpus.count,
      "\(wrong.map { "\($0.id): \(Redactor().redact($0.input)) instead of \($0.expected)" })")
  }

  @Test func additionalRules() {
    let ticket: Redactor.Rule = { text in
      (0..<max(0, text.count - 3)).filter { Array(text[$0..<$0 + 4]) == Array("TCK-".utf8) }.map { $0..<$0 + 4 }
    }
    #expect(Redactor(additionalRules: [ticket]).redact("see TCK-1") == "see [redacted]1")
    // Ranges that make no sense are dropped, and nothing traps.
    #expect(Redactor(additionalRules: [{ _ in [5..<900, 0..<1, 0..<1] }]).redact("abc") == "[redacted]bc")
  }

  /// Cut at every byte and put together at random, no text traps and none comes out differently the second time.
  @Test func anyTextIsStable() {
    var generator = SplitMix(seed: 7)
    let pieces = Self.corpus.flatMap { [$0.input, String($0.input.prefix(9)), String($0.input.suffix(9))] }
    for _ in 0..<3000 {
      let text = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
        pieces.randomElement(using: &generator) ?? ""
      }.joined()
      let once = Redactor().redact(text)
      #expect(Redactor().redact(once) == once, "\(text)")
      let base = Self.base(text)
      #expect(Self.base(base) == base, "\(text)")
    }
  }

  /// The base rules keep their promise about the room that they are given.
  @Test func outputIsCutAtCharacters() {
    let text = "açık 1234567 alice" + "@example.com ğ"
    for capacity in 0...text.utf8.count + 16 {
      var output = [CChar](repeating: 0x7f, count: capacity + 8)
      var truncated: Int32 = -1
      let length = crash_redact_base(text, text.utf8.count, &output, capacity, &truncated)
      #expect(length <= capacity)
      #expect(output[capacity...].allSatisfy { $0 == 0x7f }, "wrote behind its room")
      let result = output[..<length].map { UInt8(bitPattern: $0) }
      #expect(String(validating: result, as: UTF8.self) != nil)
      #expect(!String(decoding: result, as: UTF8.self).contains("123"))
      #expect(truncated == (length < Self.base(text).utf8.count ? 1 : 0))
    }
  }
}

/// A generator with a seed, so that a failure can be repeated.
struct SplitMix: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
    return word ^ word >> 31
  }
}
