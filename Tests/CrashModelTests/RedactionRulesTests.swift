import Foundation
import TestSupport
import Testing

@testable import CrashModel

@Suite struct RedactionRulesTests {
  private func matches(_ pattern: String, _ text: String) throws -> [String] {
    let bytes = Array(text.utf8)
    return try RedactionPattern(pattern).find(in: bytes.span).map { String(decoding: bytes[$0], as: UTF8.self) }
  }

  @Test(
    arguments: [
      ("abc", "xabcabcx", ["abc", "abc"]), ("a|bc", "abcb", ["a", "bc"]), (#"\d{3}"#, "1234567", ["123", "456"]),
      (#"\d{2,}"#, "1 22 333", ["22", "333"]), (#"x\d{1,2}y?"#, "x123y x1y", ["x12", "x1y"]),
      (#"(ab)+"#, "ababx ab", ["abab", "ab"]), (#"a(b|c)*d"#, "abcbd ad", ["abcbd", "ad"]),
      (#"[a-c_\d]+"#, "zab_9z", ["ab_9"]), (#"[^a-z ]+"#, "ab CD e", ["CD"]), (#"\bcat\b"#, "cat cats concat", ["cat"]),
      (#"(?i)tck-\d+"#, "TCK-1 tCk-22", ["TCK-1", "tCk-22"]), (#"(?<=id=)\w+"#, "id=abc x=1", ["abc"]),
      (#"(?<=id[:=])\w+"#, "id:a id=b", ["a", "b"]), (#"\w+é"#, "café ok", ["café"]), ("é{2}", "éé é", ["éé"]),
      (#"a.c"#, "abc a\nc", ["abc"]), (#"\(\d\)"#, "(1) 2", ["(1)"]), (#"[]x]+"#, "a]xb", ["]x"]),
      (#"[a\-z]+"#, "b-za", ["-za"]), (#"\S+"#, " ab c ", ["ab", "c"]), ("a|a.*b", "aaab a", ["aaab", "a"]),
      ("(?:no|yes)!", "yes! no!", ["yes!", "no!"]), (#"a\tb"#, "a\tb", ["a\tb"]),
    ] as [(String, String, [String])])
  func patterns(pattern: String, text: String, expected: [String]) throws {
    #expect(try matches(pattern, text) == expected)
  }

  @Test(
    arguments: [
      ("a*", "empty text"), ("(", "'(' has no ')'"), ("a)", "')' without '('"), ("[a", "'[' has no ']'"),
      ("*a", "nothing to repeat"), ("a**", "a repetition of a repetition"), ("a{2", "'{' has no '}'"),
      ("a{3,2}", "upside down"), ("a{300}", "too long"), ("^a", "'^' and '$'"), (#"\q"#, #"'\q' is not known"#),
      (#"a\bc"#, "nowhere"), ("(?=a)", "'(?'"), (#"(?<=a*)b"#, "one length"), (#"(?<=a|bc)d"#, "one length"),
      ("[é]", "ASCII"), ("[z-a]", "upside down"), ("a\\", "at the end"), ("a{0}", "repetition of nothing"),
      ("a{x}", "without a number"),
      (String(repeating: "(", count: 40) + "a" + String(repeating: ")", count: 40), "deep"),
    ])
  func problems(pattern: String, message: String) throws {
    do throws(RedactionPattern.Problem) {
      _ = try RedactionPattern(pattern)
      Issue.record("\(pattern) is taken")
    } catch { #expect(error.message.contains(message), "\(error.message)") }
  }

  @Test func file() throws {
    let rules = try RedactionRules(
      parsing: """
        # Our own numbers.

        ticket     \\bTCK-\\d{4,8}\\b
        \tcustomer\t(?<=customer=)\\S+
        """)
    let redactor = Redactor(rules: rules)
    #expect(redactor.redact("see TCK-12345, customer=jane x") == "see [redacted], customer=[redacted] x")
    #expect(
      Redactor(rules: rules, marks: .kinds).redact("TCK-12345 customer=jane 12345678")
        == "[ticket] customer=[customer] [number]")
    #expect(redactor.redact("nothing here") == "nothing here")
    // Built-in rules for secrets come first, those for numbers after it.
    #expect(redactor.redact("password=TCK-12345") == "password=[redacted]")
  }

  @Test(
    arguments: [
      ("ok a\nTicket b", "line 2: 'Ticket' is no name"), ("# x\n\nticket", "line 3: the rule 'ticket' has no pattern"),
      ("a (b", "line 1: the pattern of 'a', behind '(b': '(' has no ')'"),
      ("a b\r\nc [", "line 2: the pattern of 'c'"), (String(repeating: "a b\n", count: 257), "line 257: more than 256"),
      (String(repeating: "a", count: 33) + " b", "is no name"),
    ])
  func fileProblems(text: String, message: String) {
    do throws(RedactionRules.Problem) {
      _ = try RedactionRules(parsing: text)
      Issue.record("taken")
    } catch { #expect("\(error)".contains(message), "\(error)") }
  }

  /// The same as Foundation's, for patterns that both read alike, on random texts.
  @Test func agreesWithAnotherEngine() throws {
    var generator = SeededGenerator(seed: 41)
    let atoms = ["a", "b", "[ab]", "[^a]", "\\d", ".", "(a|b)", "(ab)", "(a|ba)"]
    let repetitions = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"]
    var compared = 0
    for _ in 0..<600 {
      let pattern = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
        (atoms.randomElement(using: &generator) ?? "") + (repetitions.randomElement(using: &generator) ?? "")
      }.joined()
      guard let ours = try? RedactionPattern(pattern) else { continue }
      let theirs = try NSRegularExpression(pattern: "(?:\(pattern))")
      for _ in 0..<10 {
        let text = String((0..<12).map { _ in "aab1 ".randomElement(using: &generator) ?? "a" })
        let bytes = Array(text.utf8)
        // Alternatives make theirs take the first and ours the longest: what begins first begins at the same place.
        let first = theirs.firstMatch(in: text, range: NSRange(location: 0, length: text.utf16.count))?.range.location
        #expect(ours.find(in: bytes.span).first?.lowerBound == first, "\(pattern) in \(text)")
        compared += 1
      }
    }
    #expect(compared > 3000)
  }

  /// A pattern that could always go on is read on and on, up to a limit: then the rest is taken out, and time stays linear.
  @Test func patienceEnds() throws {
    let text = [UInt8](repeating: UInt8(ascii: "a"), count: 1 << 18)
    let found = try RedactionPattern("a|a.*b").find(in: text.span)
    #expect(found.last?.upperBound == text.count)
    #expect(found.count < 1000)
    #expect(try RedactionPattern("[a-z]+1").find(in: text.span).isEmpty)
  }
}
