import CrashModel
import Foundation
import TestSupport
import Testing

struct RedactCommandTests {
  private static let mail = "alice@" + "example.com"

  @Test func linesGoThrough() throws {
    let input = "login of \(Self.mail)\nplain\r\npassword=hunter2 \u{e9}\nlast order 12345678"
    let outcome = try SymbolicateTool.run("redact", input: Array(input.utf8))
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors.isEmpty)
    #expect(outcome.text == "login of [redacted]\nplain\r\npassword=[redacted] \u{e9}\nlast order [redacted]")
    let again = try SymbolicateTool.run("redact", input: outcome.output)
    #expect(again.output == outcome.output)
    #expect(try SymbolicateTool.run("redact").output.isEmpty)
  }

  /// Lines across the blocks that are read, and bytes that are no text.
  @Test func largeAndStrange() throws {
    var generator = SeededGenerator(seed: 3)
    var noise: [UInt8] = []
    for _ in 0..<300_000 {
      // Nothing that a rule could find.
      noise.append([0, 9, 10, 13, 32, 0x7f, 0xff, UInt8(ascii: "a")].randomElement(using: &generator) ?? 0)
    }
    #expect(try SymbolicateTool.run("redact", input: noise).output == noise)
    let line = "x " + String(repeating: "word ", count: 20_000) + Self.mail + "\n"
    let outcome = try SymbolicateTool.run("redact", input: Array(String(repeating: line, count: 12).utf8))
    #expect(outcome.text == String(repeating: line.replacingOccurrences(of: Self.mail, with: "[redacted]"), count: 12))
    // One line of three megabytes.
    let endless = String(repeating: "word \(Self.mail) ", count: 150_000)
    let pieces = try SymbolicateTool.run("redact", input: Array(endless.utf8))
    #expect(pieces.text == String(repeating: "word [redacted] ", count: 150_000))
  }

  @Test func rulesAndKinds() throws {
    let folder = try TemporaryDirectory()
    let rules = try folder.file("rules.txt", Array("# ours\nticket TCK-\\d+\n".utf8))
    let input = Array("TCK-7 of \(Self.mail)\n".utf8)
    #expect(
      try SymbolicateTool.run("redact", "--redact-rules", rules, input: input).text == "[redacted] of [redacted]\n")
    let kinds = try SymbolicateTool.run("redact", "--redact-kinds", "--redact-rules=\(rules)", input: input)
    #expect(kinds.text == "[ticket] of [email]\n")

    var report = plainReport()
    report.message = "TCK-7 of \(Self.mail)"
    let file = try folder.file("a.json", report.json())
    let json = try SymbolicateTool.run("-f", "json", "--redact-rules", rules, "--redact-kinds", file)
    #expect(json.text.contains("\"message\":\"[ticket] of [email]\""), "\(json.text)")
  }

  @Test func problems() throws {
    let folder = try TemporaryDirectory()
    let bad = try folder.file("bad.txt", Array("# ours\nticket (TCK\n".utf8))
    let binary = try folder.file("binary.txt", [0x61, 0x20, 0xff])
    for (arguments, message) in [
      (["redact", "--redact-rules", bad], "\(bad): line 2: the pattern of 'ticket', behind '(TCK': '(' has no ')'"),
      (["redact", "--redact-rules", folder.path + "/none"], "none: cannot be read: no such file"),
      (["redact", "--redact-rules", binary], "is no UTF-8 text"), (["redact", "a.log"], "'redact' takes no files"),
      (["redact", "-f", "json"], "no option of 'redact'"),
      (["--no-redact", "--redact-rules", bad, "-"], "--redact-rules has no effect with --no-redact"),
      (["--redact-kinds", "--no-redact", "-"], "--redact-kinds has no effect with --no-redact"),
      (["--filter", "--redact-rules", bad], "'symbolicate redact'"),
    ] {
      let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
      #expect(outcome.status == .exited(64), "\(arguments)")
      #expect(outcome.output.isEmpty)
      #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
    }
  }
}
