import CrashModel
import Foundation
import TestSupport
import Testing

struct ManualTests {
  private func page() throws -> String {
    let outcome = try SymbolicateTool.run("--generate-man")
    #expect(outcome.status == .exited(0) && outcome.errors.isEmpty)
    return outcome.text
  }

  /// Both formatters, which `.ci/install-packages` installs.
  @Test func formattersHaveNoComplaint() throws {
    let folder = try TemporaryDirectory("manual")
    let path = try folder.file("symbolicate.1", Array(try page().utf8))
    let environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"]
    let lint = try ChildProcess(["/usr/bin/env", "mandoc", "-Tlint", path], environment: environment).run()
    #expect(lint.status == .exited(0) && lint.output.isEmpty, "\(lint.text)\(lint.errorText)")
    let man = try ChildProcess(["/usr/bin/env", "man", "--warnings", "-l", path], environment: environment).run()
    #expect(man.status == .exited(0) && man.errors.isEmpty, "\(man.errorText)")
    #expect(man.text.contains("SYMBOLICATE(1)") && man.text.contains("--source-root DIR"))
  }

  /// Help, manual and completions know the same flags.
  @Test func everyFlagIsEverywhere() throws {
    let help = try ["", "group", "runs", "addr", "check", "store add", "store list", "store gc"].map { command in
      try ChildProcess([SymbolicateTool.path] + command.split(separator: " ").map(String.init) + ["--help"]).run().text
    }
    let flags = Set(
      help.joined().split(separator: "\n").compactMap { line -> String? in
        guard line.hasPrefix("  -") || line.hasPrefix("      --") else { return nil }
        return line.split(whereSeparator: { " ,".contains($0) }).first { $0.hasPrefix("--") }.map(String.init)
      })
    #expect(flags.count > 40)
    let page = try page().replacingOccurrences(of: "\\-", with: "-")
    let scripts = try ["bash", "zsh", "fish"].map { try SymbolicateTool.run("--generate-completion-script", $0).text }
    for flag in flags {
      #expect(page.contains(flag), "\(flag)")
      #expect(scripts[0].contains(flag) && scripts[1].contains(flag), "\(flag)")
      #expect(scripts[2].contains("-l \(flag.dropFirst(2))"), "\(flag)")
    }
  }

  /// Every command line that the page shows does what it says.
  @Test func examplesRun() throws {
    let program = try BuiltProgram("orderd")
    let folder = program.folder
    let report = try program.report(place: folder.path + "/orderd")
    _ = try folder.file("crash.json", report.json())
    _ = try folder.file("reports/a.json", report.json())
    _ = try folder.file("reports/b.json", plainReport("0192a3b4-c5d6-7e8f-9a0b-000000000002").json())
    try FileManager.default.createDirectory(atPath: folder.path + "/issues", withIntermediateDirectories: true)
    let lines = try page().split(separator: "\n").filter { $0.hasPrefix("$ ") }.map {
      $0.dropFirst(2).replacingOccurrences(of: "\\-", with: "-").replacingOccurrences(of: "\\(ti", with: "~")
    }
    #expect(lines.count >= 10)
    let tools = URL(fileURLWithPath: SymbolicateTool.path).deletingLastPathComponent().path
    for line in lines {
      let outcome = try ChildProcess(
        ["/bin/sh", "-c", line],
        environment: ["PATH": "\(tools):/usr/bin:/bin", "HOME": folder.path, "SYMBOLICATE_CACHE_DIR": ""],
        directory: folder.path
      ).run()
      // 1: the made-up library has no file.
      #expect([.exited(0), .exited(1)].contains(outcome.status), "\(line): \(outcome.status) \(outcome.errorText)")
      let redirected = line.split(separator: ">").dropFirst().first.map(String.init)
      let result = redirected.map { contents(of: folder.path + "/" + $0) ?? [] } ?? outcome.output
      if !line.contains("-o issues") { #expect(!result.isEmpty, "\(line)") }
    }
    #expect(folder.names(in: "issues").count == 2)
  }
}
