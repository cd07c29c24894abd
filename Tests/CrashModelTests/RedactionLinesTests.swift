import Foundation
import Testing

@testable import CrashModel

/// The lines of `Resources/redaction/lines.txt`, which were written before a rule was tried on them.
@Suite struct RedactionLinesTests {
  struct Line: Sendable, CustomTestStringConvertible {
    var category: String
    var input = ""
    var expected = ""
    var secrets: [String] = []

    var testDescription: String { "\(category): \(expected)" }
    var mustStay: Bool { category.hasSuffix("-neg") }

    /// The file's first lines say what its marks mean.
    init?(_ line: Substring) {
      let columns = line.split(separator: "\t", maxSplits: 1)
      guard columns.count == 2 else { return nil }
      category = String(columns[0])
      let text = columns[1].replacingOccurrences(of: "¦", with: "").replacingOccurrences(of: "⏎", with: "\n")
      for (index, part) in text.components(separatedBy: "«").enumerated() {
        if index == 0 {
          input += part
          expected += part
          continue
        }
        let halves = part.components(separatedBy: "»")
        let secret = halves[0].components(separatedBy: "→")
        input += secret[0] + halves[1]
        expected += (secret.count > 1 ? secret[1] : Redactor.token) + halves[1]
        secrets.append(secret[0])
      }
    }
  }

  static let lines: [Line] = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "Resources/redaction/lines.txt")
    guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
    return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { Line($0) }
  }()

  @Test func theLinesAreThere() {
    #expect(Self.lines.count == 371)
    #expect(Self.lines.reduce(0) { $0 + $1.secrets.count } == 242)
    #expect(Set(Self.lines.map(\.category)).count == 35)
  }

  @Test(arguments: lines) func comesOutAsItShould(_ line: Line) {
    let redacted = Redactor().redact(line.input)
    #expect(redacted == line.expected)
    for secret in line.secrets { #expect(!redacted.contains(secret), "\(redacted)") }
    #expect(Redactor().redact(redacted) == redacted, "not idempotent")
  }

  /// A record's texts went through the base rules before. Those may take more, and must not make the others leave more.
  @Test(arguments: lines) func leavesNoSecretBehindTheBaseRules(_ line: Line) {
    let redacted = Redactor().redact(RedactorTests.base(line.input))
    for secret in line.secrets { #expect(!redacted.contains(secret), "\(redacted)") }
    if line.mustStay { #expect(redacted == line.input) }
  }

  @Test(arguments: lines) func theKindsStandForTheSame(_ line: Line) {
    let redactor = Redactor(marks: .kinds)
    let redacted = redactor.redact(line.input)
    #expect(redactor.redact(redacted) == redacted, "not idempotent")
    #expect(Redactor().redact(redacted) == redacted, "taken for something that is not redacted")
    var uniform = redacted
    for token in Redactor.tokens {
      uniform = uniform.replacingOccurrences(
        of: token.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }, with: Redactor.token)
    }
    #expect(uniform == line.expected)
    if line.mustStay { #expect(redacted == line.input) }
  }

  @Test func kinds() {
    let redactor = Redactor(marks: .kinds)
    #expect(
      redactor.redact("alice@" + "example.com 203.0.113.9 order 12345678 password=x card " + "4111" + "111111111111")
        == "[email] [ip] order [number] password=[secret] card [card]")
    // What is there from before stays.
    #expect(redactor.redact("password=[redacted], mail [redacted]") == "password=[redacted], mail [redacted]")
    #expect(Redactor().redact("https://[credentials]@example.com/x") == "https://[credentials]@example.com/x")
  }

  // MARK: Line by line

  private static func byLine(_ text: String, _ redactor: Redactor = Redactor()) -> String {
    var lines = LineRedactor(redactor)
    var output: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let end = rest.firstIndex(of: 10).map { $0 + 1 } ?? rest.endIndex
      let line = Array(rest[..<end])
      output += lines.redact(line.span) ?? line
      rest = rest[end...]
    }
    return String(decoding: output, as: UTF8.self)
  }

  @Test func aPrivateKeyGoesOverLines() {
    let key =
      "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n-----END PRIVATE KEY----- behind\nnext\n"
    #expect(
      Self.byLine("one\nkey " + key + "two\n")
        == "one\nkey [redacted]\n[redacted]\n[redacted]\n[redacted] behind\nnext\ntwo\n")
    #expect(Self.byLine("a\n" + key, Redactor(marks: .kinds)).hasPrefix("a\n[private-key]\n[private-key]\n"))
    // Another one begins behind it.
    let next =
      "-----BEGIN " + "EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY----- -----BEGIN " + "PRIVATE KEY-----\nMIIE\n"
    #expect(
      Self.byLine(next + "-----END PRIVATE KEY-----\nend\n")
        == "[redacted]\n[redacted]\n[redacted] [redacted]\n[redacted]\n[redacted]\nend\n")
    // Cut, and a log goes on behind it.
    let cut = "-----BEGIN " + "PRIVATE KEY-----\n" + String(repeating: "line\n", count: 300)
    let lines = Self.byLine(cut).split(separator: "\n")
    #expect(lines.count == 301)
    #expect(lines.filter { $0 == "[redacted]" }.count == 129)
    #expect(lines.last == "line")
    #expect(Self.byLine("-----BEGIN " + "CERTIFICATE-----\nMIIC\nx") == "-----BEGIN CERTIFICATE-----\nMIIC\nx")
  }

  @Test func linesKeepTheirEnds() {
    let text = "mail alice@" + "example.com\r\n\n\npassword=x\nend"
    #expect(Self.byLine(text) == "mail [redacted]\r\n\n\npassword=[redacted]\nend")
    #expect(Self.byLine("") == "")
  }
}
