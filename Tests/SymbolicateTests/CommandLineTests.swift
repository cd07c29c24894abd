import CrashModel
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
      (["-C", "101", "x"], "a number from 0 to 100"), (["-f", "html", "x"], "one of text, json"),
      (["--generate-completion-script", "tcsh"], "one of bash, zsh, fish"), (["--pretty=1", "x"], "takes no value"),
      (["group", "--explain", "x"], "no option of 'group'"),
      (["help", "me"], "no command 'me'"), (["-o", "", "x"], "a name that is not empty"),
      (["--caf\u{e9}", "x"], "unknown option --caf\u{e9}"), (["-\u{e9}", "x"], "unknown option -\\xc3"),
    ] as [([String], String)])
  func usage(arguments: [String], message: String) throws {
    let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
    #expect(outcome.status == .exited(64))
    #expect(outcome.output.isEmpty)
    #expect(outcome.errorText.hasPrefix("symbolicate: "))
    #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
  }

  /// A flag does what it says, or the tool says that it cannot.
  @Test(arguments: [
    (["--explain"], "a report as text"), (["--threads", "all"], "a report as text"),
    (["--threads=crashed"], "a report as text"), (["--no-inlines"], "a report as text"),
    (["--no-demangle"], "a report as text"), (["--color", "always"], "a report as text"),
    (["--frames", "app"], "a report as text"), (["--context=2"], "a report as text"),
    (["--source-root", "/"], "a report as text"),
    (["--pretty"], "--format json"),
  ])
  func flagsWithoutEffect(flag: [String], use: String) throws {
    let folder = try TemporaryDirectory()
    let file = try folder.file("a.json", plainReport().json())
    let modes = [
      ([file], "a report as text"), ([folder.path], "the list of a directory"),
      ([file, folder.path], "the list of a directory"), (["-f", "json", file], "--format json"),
      (["-f", "json", folder.path], "--format json"), (["-f", "ndjson", file], "--format ndjson"),
      (["-f", "ndjson", folder.path], "--format ndjson"), (["group", file], "the table of groups"),
      (["group", "-f", "json", file], "--format json"), (["group", "-f", "ndjson", file], "--format ndjson"),
    ]
    for (mode, name) in modes {
      let outcome = try ChildProcess([SymbolicateTool.path] + mode + flag).run()
      let showsSource = name.hasPrefix("--format") && ["--context=2", "--source-root"].contains(flag[0])
      if name == use || showsSource, mode[0] != "group" || flag == ["--pretty"] {
        #expect(outcome.status == .exited(0), "\(mode) \(flag): \(outcome.errorText)")
        continue
      }
      #expect(outcome.status == .exited(64), "\(mode) \(flag)")
      #expect(outcome.output.isEmpty)
      let isOfNoGroup = mode[0] == "group" && !["--color", "--pretty"].contains(flag[0])
      let message = isOfNoGroup ? "is no option of 'group'" : "has no effect on \(name); it is for \(use)"
      #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
    }
    let auto = try SymbolicateTool.run("--color", "never", "-f", "json", folder.path)
    #expect(auto.status == .exited(0))
  }
}
