import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

struct OutputTests {
  @Test func oneReport() throws {
    let folder = try TemporaryDirectory()
    let path = try folder.file("a.json", plainReport().json())
    let outcome = try SymbolicateTool.run("-f", "json", path)
    #expect(outcome.status == .exited(0))
    let object = try #require(JSONSerialization.jsonObject(with: Data(outcome.output)) as? [String: Any])
    #expect(object["reason"] as? String == "segv")
    #expect(object["message"] as? String == "mail of [redacted]")
    #expect((object["stack_hash"] as? String)?.count == 32)
    // Its own output is input, and changes nothing any more.
    let again = try SymbolicateTool.run("-f", "json", "-", input: outcome.output)
    #expect(again.output == outcome.output)
    let array = try SymbolicateTool.run("-f", "json", "--pretty", folder.path)
    #expect((try JSONSerialization.jsonObject(with: Data(array.output)) as? [Any])?.count == 1)
  }

  /// Every field into which somebody may have written a person's address; the list is held by `RedactedReportTests`.
  @Test(arguments: [["-f", "json"], ["-f", "ndjson"], ["-f", "text", "--threads", "all"], ["group", "-f", "json"]])
  func whatIsReadIsRedacted(_ arguments: [String]) throws {
    let address = "alice@" + "example.com"
    var report = plainReport()
    report.userID = address
    report.operation = address
    report.tags = [Tag(key: address, value: address)]
    report.notes = [address]
    report.process = ProcessInfo(executable: "/home/alice/\(address)/orderd", host: address)
    report.breadcrumbs = [
      Breadcrumb(timestamp: Timestamp(rawValue: 0), category: address, message: address)
    ]
    report.threads[0].name = address
    var tool = ChildProcess([SymbolicateTool.path] + arguments + ["-"])
    tool.input = report.json()
    let outcome = try tool.run()
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(!outcome.text.contains("alice") && !outcome.errorText.contains("alice"), "\(outcome.text)")
  }

  @Test func earlierHashIsKept() throws {
    var report = plainReport()
    let earlier = StackHash(digits: String(repeating: "a", count: 32), quality: .offsets)
    report.stackHash = earlier
    let outcome = try SymbolicateTool.run("-f", "json", "-", input: report.json())
    #expect(outcome.text.contains(#""previous_stack_hashes":[{"stack_hash":"\#(earlier.digits)""#))
  }

  @Test func directoryIsAList() throws {
    let folder = try TemporaryDirectory()
    for (number, release) in ["1.0", "1.1", "1.1"].enumerated() {
      let id = "0192a3b4-c5d\(number)-7e8f-9a0b-1c2d3e4f5a6b"
      _ = try folder.file("new/\(id).json", plainReport(id, release: release).json())
    }
    _ = try folder.file("quarantine/bad.json", [1])
    let outcome = try SymbolicateTool.run("-v", folder.path)
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.errorText.contains("quarantine: skipped"))
    let lines = outcome.text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines[0].contains("c5d2") && lines[1].contains("c5d1") && lines[2].contains("c5d0"))
    #expect(lines[4].hasPrefix("COUNT  FIRST SEEN"))
    #expect(lines[5].hasPrefix("    3  2026-11-30 05:12  2026-11-30 05:12  1.1 (2), 1.0 (1)  segv"))
    let limited = try SymbolicateTool.run("--limit", "1", "-f", "ndjson", folder.path).text.split(separator: "\n")
    #expect(limited.count == 2)

    let group = try SymbolicateTool.run("group", "-f", "ndjson", folder.path).text.split(separator: "\n")
    #expect(group.count == 2)
    #expect(group[0].contains(#""count":3,"#))
    // The same file under two names is one crash.
    let twice = try SymbolicateTool.run("group", "-f", "json", folder.path, folder.path + "/new").text
    #expect(twice.contains(#""count":3,"#))
  }

  @Test func explanation() throws {
    let text = try SymbolicateTool.run("--explain", "-", input: plainReport().json()).text
    #expect(text.contains("Stack hash ") && text.contains("CLASS") && text.contains("RULE"))
  }

  @Test func outputFileAppearsComplete() throws {
    let folder = try TemporaryDirectory()
    let path = folder.path + "/out.txt"
    let outcome = try SymbolicateTool.run("-o", path, "-", input: plainReport().json())
    #expect(outcome.status == .exited(0) && outcome.output.isEmpty)
    #expect(String(decoding: try #require(contents(of: path)), as: UTF8.self).hasPrefix("*** Program crashed"))
    #expect(try SymbolicateTool.run("-o", path, "/nonexistent/x").status == .exited(2))
    #expect(folder.names() == ["out.txt"])
    #expect(try SymbolicateTool.run("-o", "/nonexistent/x", "-", input: plainReport().json()).status == .exited(2))
  }

  @Test func closedPipeIsNoError() throws {
    let folder = try TemporaryDirectory()
    let line = plainReport().json() + [10]
    let path = try folder.file("many.json", Array(repeatElement(line, count: 2_000).joined()))
    let script = "\"$0\" -f ndjson \"$1\" | head -n 1 > /dev/null; echo ${PIPESTATUS[0]}"
    let outcome = try ChildProcess(["/bin/bash", "-c", script, SymbolicateTool.path, path]).run()
    #expect(outcome.text == "0\n")
    #expect(outcome.errors.isEmpty, "\(outcome.errorText)")
  }

  @Test func colorFollowsTheRules() throws {
    let input = plainReport().json()
    #expect(!(try SymbolicateTool.run("-", input: input).text.contains("\u{1b}")))
    #expect(try SymbolicateTool.run("--color", "always", "-", input: input).text.contains("\u{1b}[1m"))
    #expect(
      try SymbolicateTool.run("-", input: input, environment: ["CLICOLOR_FORCE": "1", "NO_COLOR": ""]).text.contains(
        "\u{1b}[1m"))
    let both = ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"]
    #expect(!(try SymbolicateTool.run("-", input: input, environment: both).text.contains("\u{1b}")))
  }
}
