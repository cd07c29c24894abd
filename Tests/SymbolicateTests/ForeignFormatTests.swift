import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// Formats of others, as the tool writes them.
struct ForeignFormatTests {
  private static let formats = ["swift-json", "sentry", "markdown", "otlp", "folded", "markup"]

  private func spool() throws -> TemporaryDirectory {
    let folder = try TemporaryDirectory("formats")
    for number in 0..<3 {
      let id = "0192a3b4-c5d\(number)-7e8f-9a0b-1c2d3e4f5a6b"
      _ = try folder.file("in/\(id).json", plainReport(id).json())
    }
    try FileManager.default.createDirectory(atPath: folder.path + "/out", withIntermediateDirectories: true)
    return folder
  }

  @Test(arguments: formats)
  func oneReport(format: String) throws {
    let outcome = try SymbolicateTool.run("-f", format, "-", input: plainReport().json())
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.output.last == 10 && outcome.errors.isEmpty)
    #expect(!outcome.text.contains("alice"))
  }

  @Test(arguments: ["text", "json"] + formats)
  func eachReportAFile(format: String) throws {
    let folder = try spool()
    let outcome = try SymbolicateTool.run("-f", format, "-o", folder.path + "/out", folder.path + "/in")
    #expect(outcome.status == .exited(0) && outcome.output.isEmpty && outcome.errors.isEmpty, "\(outcome.errorText)")
    let names = folder.names(in: "out")
    #expect(names.count == 3 && names.allSatisfy { $0.hasPrefix("0192a3b4-c5d") && $0.contains(".") }, "\(names)")
    // What one file holds is what one report gives.
    let alone = try SymbolicateTool.run("-f", format, folder.path + "/in/0192a3b4-c5d0-7e8f-9a0b-1c2d3e4f5a6b.json")
    #expect(contents(of: folder.path + "/out/" + names[0]) == alone.output)
    // A second run replaces what the first one wrote.
    _ = try SymbolicateTool.run("-f", format, "-o", folder.path + "/out", folder.path + "/in")
    #expect(folder.names(in: "out") == names)
    var status = stat()
    #expect(stat(folder.path + "/out/" + names[0], &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  /// The id comes from outside, and is no way out of the directory.
  @Test func namesOfFilesAreSafe() throws {
    let folder = try spool()
    let ids = ["../../x", "/etc/x", "", "a\u{0}b", ".", "same", "same", "same-2"]
    let lines: [UInt8] = ids.reduce(into: []) { $0 += plainReport($1).json() + [10] }
    let outcome = try SymbolicateTool.run("-f", "markup", "-o", folder.path + "/out", "-", input: lines)
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(
      Set(folder.names(in: "out")) == [
        "______x.markup", "_.markup", "_etc_x.markup", "a_b.markup", "report.markup", "same-2-2.markup",
        "same-2.markup",
        "same.markup",
      ])
  }

  @Test func severalReportsOnOneStream() throws {
    let folder = try spool()
    let input = folder.path + "/in"
    for format in ["swift-json", "otlp"] {
      let lines = try SymbolicateTool.run("-f", format, input).text.split(separator: "\n")
      #expect(lines.count == 3)
      for line in lines { #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any]) }
    }
    #expect(try SymbolicateTool.run("-f", "folded", input).text == "orderd;0x0000000000001234 3\n")
    let markdown = try SymbolicateTool.run("-f", "markdown", input).text
    #expect(markdown.components(separatedBy: "\n\n---\n\n## ").count == 3)
    let markup = try SymbolicateTool.run("-f", "markup", input).text
    #expect(markup.components(separatedBy: "{{{reset}}}\n").count == 4)
  }

  /// An envelope holds one event: several are refused before the work where that can be known, and where it cannot, none
  /// is lost without a word.
  @Test func envelopesDoNotMix() throws {
    let folder = try spool()
    let refused = try SymbolicateTool.run("-f", "sentry", folder.path + "/in")
    #expect(refused.status == .exited(64) && refused.errorText.contains("-o DIR"))
    #expect(try SymbolicateTool.run("-f", "sentry", "--limit", "1", folder.path + "/in").status == .exited(0))
    let lines = plainReport("a").json() + [10] + plainReport("b").json() + [10]
    let outcome = try SymbolicateTool.run("-f", "sentry", "-", input: lines)
    #expect(outcome.status == .exited(1))
    #expect(outcome.text.split(separator: "\n").count == 3)
    #expect(outcome.errorText.contains("standard input:2: not written"), "\(outcome.errorText)")
  }

  @Test func directoriesForResults() throws {
    let folder = try spool()
    let input = folder.path + "/in"
    for (arguments, message) in [
      (["-f", "ndjson", "-o", folder.path + "/out", input], "one file of all reports"),
      (["-f", "json", "-o", input, folder.path], "which is read"),
      (["-f", "json", "-o", input, input + "/"], "which is read"),
      (["-f", "markdown", "-o", folder.path + "/none/", input], "make it first"),
    ] {
      let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
      #expect(
        outcome.status == .exited(64) && outcome.errorText.contains(message), "\(arguments): \(outcome.errorText)")
      #expect(outcome.output.isEmpty)
    }
    // A group is no report.
    let group = try SymbolicateTool.run("group", "-o", folder.path + "/out", input)
    #expect(group.status == .exited(2))
    #expect(chmod(folder.path + "/out", 0o500) == 0)
    if getuid() != 0 {
      let closed = try SymbolicateTool.run("-f", "otlp", "-o", folder.path + "/out", input)
      #expect(closed.status == .exited(2) && closed.errorText.contains("cannot be written"))
    }
  }

  @Test func sourceLines() throws {
    let program = try BuiltProgram()
    let report = try program.report(place: program.path).json()
    let sources = program.folder.path + "/sources"
    for (arguments, line) in [
      (["--context", "0"], "* 1| static __attribute__((noinline)) int inner"),
      (["--source-root", sources], "  2| static __attribute__((noinline)) int outer"),
      (["--source-root", sources, "-f", "markdown"], "* 1| static __attribute__((noinline)) int inner"),
      (["--source-root", sources, "-f", "sentry"], #""context_line":"static __attribute__((noinline)) int inner"#),
    ] {
      var tool = ChildProcess([SymbolicateTool.path, "--no-cache"] + arguments + ["-"])
      tool.input = report
      let outcome = try tool.run()
      #expect(outcome.text.contains(line), "\(arguments): \(outcome.text)")
    }
    // In JSON they belong to the frame, and are shown again where the files are not.
    var tool = ChildProcess([SymbolicateTool.path, "--no-cache", "--context", "1", "-f", "json", "-"])
    tool.input = report
    let json = try tool.run()
    let first = "static __attribute__((noinline)) int inner(volatile int *p) { return *p + 1; }"
    #expect(json.text.contains(#","source":{"first_line":1,"lines":["\#(first)","static "#), "\(json.text)")
    try FileManager.default.removeItem(atPath: sources)
    let again = try SymbolicateTool.run("--no-cache", "-f", "json", "-", input: json.output)
    #expect(again.text == json.text)
    let text = try SymbolicateTool.run("--no-cache", "-", input: json.output)
    #expect(text.text.contains("* 1| " + first) && text.text.contains("  2| static "), "\(text.text)")
    #expect(
      try SymbolicateTool.run("--no-cache", "-f", "sentry", "-", input: json.output).text
        .contains(#""context_line":"\#(first)""#))
    let missing = try SymbolicateTool.run("--no-cache", "--source-root", "/nonexistent", "-", input: report)
    #expect(missing.errorText.contains("program.c: not found below /nonexistent"), "\(missing.errorText)")
    #expect(missing.errorText.components(separatedBy: "not found below").count == 2)
  }

  @Test func redactionCanBeLeftOut() throws {
    let input = plainReport().json()
    for format in ["text", "json", "markdown", "otlp"] {
      #expect(!(try SymbolicateTool.run("-f", format, "-", input: input).text.contains("alice@")))
      #expect(try SymbolicateTool.run("--no-redact", "-f", format, "-", input: input).text.contains("alice@"))
      #expect(
        !(try SymbolicateTool.run("--no-redact", "--redact", "-f", format, "-", input: input).text.contains("alice@")))
    }
  }

  /// LLVM's filter reads what we write, and names the same functions at the same places.
  @Test func markupIsResolvedByLLVM() throws {
    let program = try BuiltProgram()
    let markup = try SymbolicateTool.run(
      "--no-cache", "-f", "markup", "-", input: try program.report(place: program.path).json())
    // A tree by build id, as the filter searches it.
    let id = program.buildID
    let place = program.folder.path + "/tree/.build-id/\(id.prefix(2))"
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: program.path, toPath: place + "/\(id.dropFirst(2)).debug")
    let symbolizer = try toolchainProgram("llvm-symbolizer")
    var filter = ChildProcess([symbolizer, "--filter-markup", "--debug-file-directory=\(program.folder.path)/tree"])
    filter.input = markup.output
    let outcome = try filter.run()
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    let lines = outcome.text.split(separator: "\n")
    #expect(
      lines.contains { $0.contains("#0 ") && $0.contains("inner") && $0.contains("program.c:1") }, "\(outcome.text)")
    #expect(
      lines.contains { $0.contains("#1 ") && $0.contains("outer") && $0.contains("program.c:2") }, "\(outcome.text)")
    // The made-up library is nowhere, which is said once.
    let errors = outcome.errorText.split(separator: "\n").filter { $0.contains("error") }
    #expect(errors.allSatisfy { $0.contains("could not find build ID") } && errors.count <= 1, "\(outcome.errorText)")
  }

  /// Of the toolchain that runs the tests: the system's may be too old for the format.
  private func toolchainProgram(_ name: String) throws -> String {
    let outcome = try ChildProcess(
      ["/bin/sh", "-c", "command -v swiftc"],
      environment: ["PATH": Foundation.ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"]
    ).run()
    let compiler = URL(fileURLWithPath: outcome.text.trimmingCharacters(in: .newlines)).resolvingSymlinksInPath()
    return compiler.deletingLastPathComponent().appendingPathComponent(name).path
  }
}
