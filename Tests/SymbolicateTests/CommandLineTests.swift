import TestSupport
import Testing

struct CommandLineTests {
  @Test func help() throws {
    let outcome = try SymbolicateTool.run("--help")
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors.isEmpty)
    #expect(outcome.text.hasPrefix("Usage: symbolicate [OPTION]... FILE|DIR|-...\n       symbolicate group "))
    for flag in [
      "-e, --exe FILE", "-f, --format text|json|ndjson", "--threads crashed|all", "-q, --quiet", "64 the command",
    ] {
      #expect(outcome.text.contains(flag), "\(flag)")
    }
    #expect(outcome.text.split(separator: "\n").allSatisfy { $0.utf8.count <= 140 })
    #expect(try SymbolicateTool.run("help").text == outcome.text)
    let group = try SymbolicateTool.run("help", "group").text
    #expect(group == (try SymbolicateTool.run("group", "--help").text))
    #expect(!group.contains("--threads"))
  }

  @Test func version() throws {
    let outcome = try SymbolicateTool.run("--version")
    #expect(outcome.status == .exited(0))
    #expect(outcome.text.hasPrefix("symbolicate "))
  }

  @Test(
    arguments: [
      ([], "no input"), (["--fromat", "json", "x"], "did you mean --format?"),
      (["-f", "yaml", "x"], "one of text, json, ndjson"),
      (["-f"], "-f needs a value"), (["--limit", "0", "x"], "a number above 0"), (["-Z", "x"], "unknown option -Z"),
      (["--pretty=1", "x"], "takes no value"), (["group", "--explain", "x"], "no option of 'group'"),
      (["help", "me"], "no command 'me'"),
    ] as [([String], String)])
  func usage(arguments: [String], message: String) throws {
    let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
    #expect(outcome.status == .exited(64))
    #expect(outcome.output.isEmpty)
    #expect(outcome.errorText.hasPrefix("symbolicate: "))
    #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
  }
}
