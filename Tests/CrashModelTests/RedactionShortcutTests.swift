import TestSupport
import Testing

@testable import CrashModel

/// What is decided without reading a text with care is what reading it gives.
@Suite struct RedactionShortcutTests {
  /// Parts of what the rules look for, and what stands around it.
  private static let parts = [
    "a", "Bearer ", "basic ", "Authorization: ", "AUTHORIZATION=", "password", "passwd is ", "passw", "pwd:",
    "--token ",
    "mysql -p", "GB82", "de89", "WEST", " 1234", "5678", "37", "3", "4111 1111", "-1111-", "@", "example.com", "://",
    "/home/", "/Users/x",
    "/root", "?a=b", "#", "%40", ":", "::1", ".", "192.168.0.1", "-", "--", "-----BEGIN ", "KEY-----", "eyJ",
    "AK" + "IA", "xo" + "xb-",
    "sk_", "0123456789abcdef", "\\", "=", "\"", "'", " ", "\n", "é", "\u{200b}", "[redacted]", "+49 30", "z", "zebra",
    "request GET ",
  ]

  private static func text(_ generator: inout SeededGenerator) -> String {
    (0..<Int.random(in: 1...9, using: &generator)).map { _ in parts.randomElement(using: &generator) ?? "" }.joined()
  }

  /// A rule of the caller's that finds nothing makes every text take the long way.
  private static let thorough = Redactor(additionalRules: [{ _ in [] }])

  @Test(arguments: RedactorTests.corpus) func theCorpus(_ line: RedactorTests.Case) {
    for text in [line.input, line.expected, "x " + line.input + "\n" + line.input] {
      #expect(Redactor().redact(text) == Self.thorough.redact(text))
    }
  }

  /// Words that are too short for any rule are not looked at.
  @Test func shortWords() {
    var generator = SeededGenerator(seed: 7)
    let characters = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for _ in 0..<20_000 {
      let text = String(
        (0..<Int.random(in: 0...8, using: &generator)).map { _ in
          // Digits as often as letters: rows of them are what is taken out.
          characters[
            Bool.random(using: &generator)
              ? Int.random(in: 0..<10, using: &generator)
              : Int.random(in: 10..<62, using: &generator)]
        })
      let expected = Self.thorough.redact(text)
      let found = Redactor().redact(text)
      if found != expected { Issue.record("\(text.debugDescription): \(found) instead of \(expected)") }
    }
  }

  @Test func randomTexts() {
    var generator = SeededGenerator(seed: 20_261_130)
    for _ in 0..<8_000 {
      let text = Self.text(&generator)
      let expected = Self.thorough.redact(text)
      let found = Redactor().redact(text)
      if found != expected { Issue.record("\(text.debugDescription): \(found) instead of \(expected)") }
    }
  }

  /// A key whose dots leave no long word in it, and one whose prefix ends with a sign that no word has.
  @Test(arguments: [
    "SG" + ".internal.BEGSG.inieBEGSG.iniedd", "SG" + ".abcdefghij.klmnopqrst.uvwxyzabcd.efgh",
    "dp" + ".st.dev.abcdefghij.klmnopqrst.uvwxyzabcd",
    "sha" + "256~abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
  ])
  func keysOfShortParts(_ key: String) {
    let text = "login failed: \(key) refused"
    #expect(Redactor().redact(text) == "login failed: [redacted] refused")
    #expect(Self.thorough.redact(text) == "login failed: [redacted] refused")
  }

  /// A rule that is not asked for a text would find nothing in it.
  @Test func rulesThatAreLeftOutFindNothing() {
    var generator = SeededGenerator(seed: 7)
    var leftOut: [String: Int] = [:]
    for text in (0..<8_000).map({ _ in Self.text(&generator) }) + RedactorTests.corpus.map(\.input) {
      let bytes = Array(text.utf8)
      let traits = TextTraits(bytes.span)
      for rule in BuiltInRule.specific + BuiltInRule.numbers where !traits.suspect(rule) {
        leftOut["\(rule)", default: 0] += 1
        let found = rule.find(in: bytes.span)
        // What the token of an earlier redaction stands for stays as it is.
        if !found.allSatisfy({ bytes[$0].elementsEqual(Redactor.token.utf8) }) {
          Issue.record("\(rule) finds \(found) in \(text.debugDescription)")
        }
      }
    }
    #expect(leftOut.count == BuiltInRule.specific.count + BuiltInRule.numbers.count)
  }
}
