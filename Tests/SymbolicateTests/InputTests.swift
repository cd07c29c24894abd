import CrashModel
import Foundation
import Glibc
import RecordForge
import TestSupport
import Testing

struct InputTests {
  private func expectNothing(_ outcome: ChildProcess.Outcome, _ message: String) {
    #expect(outcome.status == .exited(2), "\(outcome.errorText)")
    #expect(outcome.output.isEmpty)
    #expect(outcome.errorText.hasPrefix("symbolicate: "))
    #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
  }

  @Test func emptyFile() throws {
    let folder = try TemporaryDirectory()
    expectNothing(try SymbolicateTool.run(try folder.file("a.json", [])), "a.json: the file is empty")
  }

  @Test func missingFile() throws { expectNothing(try SymbolicateTool.run("/nonexistent/x"), "no such file") }

  @Test func fifoIsNotWaitedFor() throws {
    let folder = try TemporaryDirectory()
    #expect(mkfifo(folder.path + "/f", 0o600) == 0)
    expectNothing(try SymbolicateTool.run(folder.path + "/f"), "a FIFO")
    expectNothing(try SymbolicateTool.run("/dev/zero"), "a device")
  }

  /// Under a memory limit, so that reading it all would fail and not only be slow.
  @Test func fourGigabytesOfZeros() throws {
    let folder = try TemporaryDirectory()
    let path = try folder.file("zeros.crashrecord", [])
    #expect(truncate(path, 4 << 30) == 0)
    let outcome = try ChildProcess(
      ["/bin/sh", "-c", "ulimit -v 1000000; exec \"$0\" \"$1\"", SymbolicateTool.path, path]
    ).run()
    expectNothing(outcome, "found zero bytes")
  }

  @Test func directoryWithoutPermission() throws {
    let folder = try TemporaryDirectory()
    _ = try folder.file("closed/a.json", plainReport().json())
    #expect(chmod(folder.path, 0o755) == 0)
    #expect(chmod(folder.path + "/closed", 0) == 0)
    defer { chmod(folder.path + "/closed", 0o700) }
    var command = [SymbolicateTool.path, folder.path + "/closed"]
    if geteuid() == 0 {
      // Root reads everything; without its capabilities it is anybody.
      command =
        ["/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups"] + command
      // Where the tool's own folder is closed to anybody, there is nothing to run.
      guard try ChildProcess(command.dropLast() + ["--version"]).run().status == .exited(0) else {
        try Test.cancel("the built tool cannot be run by another user than root here")
      }
    }
    expectNothing(try ChildProcess(command).run(), "closed: the directory cannot be read: permission denied")
  }

  @Test func records() throws {
    let folder = try TemporaryDirectory()
    var forge = RecordForge()
    forge.frames = [0x1000, 0x2000]
    let bytes = forge.bytes()
    let whole = try SymbolicateTool.run(try folder.file("a.crashrecord", bytes))
    #expect(whole.status == .exited(0), "\(whole.errorText)")
    #expect(whole.text.hasPrefix("*** Program crashed: Bad pointer dereference (SIGSEGV"))
    #expect(whole.text.contains("orderd 1.4.0"))

    let cut = try SymbolicateTool.run(try folder.file("cut", Array(bytes.prefix(1_000))))
    expectNothing(cut, "cut inside its header: 1000 of 4096 bytes")
    expectNothing(try SymbolicateTool.run(try folder.file("five", Array(bytes.prefix(5)))), "cut after 5 bytes")
    var other = bytes
    other[8] = 9
    expectNothing(try SymbolicateTool.run(try folder.file("other", other)), "version 9")

    forge.crashState = 0
    let alive = try SymbolicateTool.run("-v", try folder.file("alive.crashrecord", forge.bytes()))
    #expect(alive.status == .exited(0))
    #expect(alive.errorText.contains("skipped: the record of a run in which nothing has crashed"))
    // Without `-v`, in a format that has no empty document, standard error is the only answer.
    let spool = try TemporaryDirectory()
    let file = try spool.file("alive.crashrecord", forge.bytes())
    for format in ["text", "markdown", "sentry"] {
      let answer = try SymbolicateTool.run("--format", format, file)
      #expect(answer.status == .exited(0))
      #expect(answer.errorText.contains("\(file): no crash in it; it is the record of a run"))
    }
    let list = try SymbolicateTool.run(spool.path)
    #expect(list.text == "No crashes.\n" && list.errorText.isEmpty)
  }

  @Test func wrongTypesAndForeignFiles() throws {
    let folder = try TemporaryDirectory()
    expectNothing(
      try SymbolicateTool.run(try folder.file("a", Array(#"{"schema":"crash-report/1","id":7}"#.utf8))),
      "id: expected a string, found a number")
    expectNothing(
      try SymbolicateTool.run(try folder.file("b", Array(#"{"schema":"crash-report/9","id":"x"}"#.utf8))),
      "crash-report/9")
    expectNothing(try SymbolicateTool.run(try folder.file("c", Array(#"{"a":1}"#.utf8))), "without a schema")
    expectNothing(try SymbolicateTool.run(SymbolicateTool.path), "an ELF file")
    expectNothing(try SymbolicateTool.run("-", input: Array("hello".utf8)), "text that begins with \"hello\"")
  }

  /// Lines of other kinds and a cut line cost themselves and nothing else.
  @Test func streams() throws {
    let good = plainReport().json()
    let input =
      Array("\n{\"schema\":\"other/1\"}\n".utf8) + good + [10] + good.prefix(300) + [10] + good + [10]
      + plainReport().json(pretty: true) + [10]
    let outcome = try SymbolicateTool.run("-f", "ndjson", "-", input: input)
    #expect(outcome.status == .exited(1))
    let lines = outcome.text.split(separator: "\n")
    #expect(lines.count == 5)
    #expect(lines.filter { $0.hasPrefix("{\"schema\":\"crash-report/1\"") }.count == 3)
    #expect(lines.contains { $0.hasPrefix(#"{"schema":"symbolicate-error/1","file":"standard input","line":4,"#) })
    #expect(
      lines.last
        == #"{"schema":"symbolicate-summary/1","reports":3,"incomplete_reports":0,"frames":3,"unresolved_frames":3,"errors":1,"skipped":1}"#
    )
    #expect(try SymbolicateTool.run("--strict", "-", input: input).status == .exited(2))
  }

  /// Names are bytes to the system; only what is printed is text.
  @Test func namesThatAreNotUTF8() throws {
    let folder = try TemporaryDirectory()
    let report = plainReport().json()
    // `sh` makes the names: Swift's strings cannot hold them.
    func run(_ script: String, input: [UInt8] = []) throws -> ChildProcess.Outcome {
      var process = ChildProcess(
        [
          "/bin/sh", "-c", "bad=$(printf 'x\\377\\033y'); cd \"$1\" || exit 99; " + script, SymbolicateTool.path,
          folder.path,
        ])
      process.input = input
      return try process.run()
    }
    #expect(try run("mkdir \"d$bad\" && cat > \"d$bad/$bad.json\"", input: report).status == .exited(0))
    let file = try run("\"$0\" -f ndjson \"d$bad/$bad.json\"")
    #expect(file.status == .exited(0), "\(file.errorText)")
    #expect(file.text.hasPrefix(#"{"schema":"crash-report/1""#))
    let directory = try run("\"$0\" .")
    #expect(directory.status == .exited(0), "\(directory.errorText)")
    #expect(directory.text.contains(#"./dx\xff\u{1b}y/x\xff\u{1b}y.json"#), "\(directory.text)")
    let missing = try run("\"$0\" -f ndjson \"$bad\"")
    #expect(missing.errorText.hasPrefix(#"symbolicate: x\xff\u{1b}y: no such file"#))
    #expect(missing.text.contains(#""file":"x\\xff\u001by""#))
    let output = try run("\"$0\" -o \"out$bad\" \"d$bad/$bad.json\" && cat \"out$bad\"")
    #expect(output.text.hasPrefix("*** Program crashed"), "\(output.errorText)")
    let given = try run("cp /bin/sh \"$bad\"; \"$0\" -e \"$bad\" -d \"d$bad\" \"d$bad/$bad.json\"")
    #expect(given.errorText.hasPrefix(#"symbolicate: x\xff\u{1b}y: has build id "#), "\(given.errorText)")
  }

  /// In a directory, content says what a file is.
  @Test func directoryGoesByContent() throws {
    let folder = try TemporaryDirectory()
    func report(_ number: Int) -> [UInt8] { plainReport("r\(number)").json() }
    var forge = RecordForge()
    forge.frames = [0x1000]
    _ = try folder.file("in/a.log", report(1) + [10] + report(2))
    _ = try folder.file("in/b", plainReport("r3").json(pretty: true))
    _ = try folder.file("in/c.ndjson", Array("{\"level\":\"info\"}\n".utf8) + report(4))
    _ = try folder.file("in/d.jsonl", report(5))
    _ = try folder.file("in/e.bak", forge.bytes())
    // None of them is a crash, and none an error.
    _ = try folder.file("in/notes.txt", Array("hello".utf8))
    _ = try folder.file("in/empty.lock", [])
    _ = try folder.file("in/settings.conf", Array("{ broken".utf8))
    _ = try folder.file("in/list.json", Array("[1]".utf8))
    _ = try folder.file("in/.r9.json.tmp", Array(report(9).prefix(100)))
    #expect(mkfifo(folder.path + "/in/fifo", 0o600) == 0)
    // Links: to a file outside, twice to one inside, to a directory, to nothing.
    _ = try folder.file("out/f.txt", report(6))
    _ = try folder.file("out/g.json", report(7))
    for (target, name) in [
      ("../out/f.txt", "link"), ("a.log", "again"), ("../out", "dir"), (".", "self"), ("gone", "gone"),
    ] {
      #expect(symlink(target, folder.path + "/in/" + name) == 0)
    }
    #expect(link(folder.path + "/in/b", folder.path + "/in/hard") == 0)
    let outcome = try SymbolicateTool.run("-f", "ndjson", folder.path + "/in")
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.errors.isEmpty, "\(outcome.errorText)")
    let lines = outcome.text.split(separator: "\n")
    #expect(lines.count == 8, "\(outcome.text)")
    for number in 1...6 { #expect(lines.filter { $0.contains("\"id\":\"r\(number)\"") }.count == 1, "\(number)") }
    #expect(lines.filter { $0.contains("\"service\":\"orderd\"") }.count == 7)
    let verbose = try SymbolicateTool.run("-v", folder.path + "/in").errorText
    for name in ["notes.txt", "empty.lock", "settings.conf", "list.json", ".r9.json.tmp", "fifo", "dir", "gone"] {
      #expect(verbose.contains("/in/\(name): skipped: "), "\(name)")
    }
    // What bears the name of a crash and has lost its content was one.
    _ = try folder.file("in/h.crashrecord", [0, 0, 0, 0])
    _ = try folder.file("in/i.json", [])
    let damaged = try SymbolicateTool.run("-f", "ndjson", folder.path + "/in")
    #expect(damaged.status == .exited(1))
    #expect(
      damaged.errorText.contains("h.crashrecord: not a crash file")
        && damaged.errorText.contains("i.json: the file is empty"))
  }

  /// What was given to take names from and gives none is told by name.
  @Test func givenFilesThatAreNotUsed() throws {
    let folder = try TemporaryDirectory()
    var report = plainReport()
    let wanted = "00112233445566778899aabbccddeeff00112233"
    func use(_ id: String) {
      report.images = [
        Image(
          path: "/srv/orderd", buildID: BuildID(id), address: Address(rawValue: 0x1000), size: 0x1000),
        Image(path: "/srv/unused.so", buildID: BuildID("ffff"), address: Address(rawValue: 0x9000), size: 0x1000),
      ]
    }
    use(wanted)
    func run(_ arguments: String...) throws -> ChildProcess.Outcome {
      var process = ChildProcess([SymbolicateTool.path] + arguments + ["-"])
      process.input = report.json()
      return try process.run()
    }
    for command in ["symbolicate", "group"] {
      let other =
        command == "group" ? try run("group", "-f", "json", "-e", "/bin/sh") : try run("-f", "json", "-e", "/bin/sh")
      #expect(other.status == .exited(1))
      #expect(other.errorText.contains("symbolicate: /bin/sh: has build id "), "\(other.errorText)")
      #expect(other.errorText.contains("wanted: \(wanted) (orderd)\n"), "\(other.errorText)")
    }
    let lines = try run("-f", "ndjson", "-e", "/bin/sh").text
    #expect(lines.contains(#"{"schema":"symbolicate-error/1","file":"/bin/sh","message":"has build id "#))
    #expect(lines.contains(#""errors":1,"#))
    // The right one is none to speak of.
    let words = try run("-e", "/bin/sh").errorText.split(separator: " ")
    let position = try #require(words.firstIndex(of: "id"))
    use(String(words[position + 1].dropLast()))
    #expect(!(try run("-e", "/bin/sh").errorText.contains("of no image")))
    use(wanted)
    // No file, no ELF file, no directory: each is an error even where nothing lacks a name.
    report.images = []
    #expect(try run("-d", folder.path).status == .exited(0))
    for (flag, path, message) in [
      ("-e", "/nonexistent/x", "no such file or directory"), ("-e", folder.path, "is not a regular file"),
      ("-e", try folder.file("text", Array("hello".utf8)), "is not an ELF file"),
      ("-d", "/nonexistent/x", "no such file or directory"), ("-d", try folder.file("file", [1]), "not a directory"),
    ] {
      let outcome = try run(flag, path)
      #expect(outcome.status == .exited(1), "\(flag) \(path)")
      #expect(outcome.errorText.contains("symbolicate: \(path): \(message); it is not used"), "\(outcome.errorText)")
    }
  }

  /// A directory that holds the output does not stand for it: reports would be counted twice, or for ever.
  @Test func outputIsNoInput() throws {
    let folder = try TemporaryDirectory()
    // More than is written at once, so that the tool would find its own output.
    let lines: [UInt8] = (0..<300).flatMap { (number: Int) -> [UInt8] in plainReport("r\(number)").json() + [10] }
    let input = try folder.file("a.json", lines)
    let output = folder.path + "/out.json"
    for _ in 0..<2 {
      #expect(try SymbolicateTool.run("-f", "ndjson", "-o", output, folder.path).status == .exited(0))
      #expect(String(decoding: try #require(contents(of: output)), as: UTF8.self).contains(#""reports":300,"#))
    }
    let script = "exec \"$0\" -f ndjson \"$1\" > \"$2\""
    for place in [folder.path, input] {
      let redirected = try ChildProcess(["/bin/sh", "-c", script, SymbolicateTool.path, place, output]).run()
      #expect(redirected.status == .exited(0), "\(redirected.errorText)")
      #expect(String(decoding: try #require(contents(of: output)), as: UTF8.self).contains(#""reports":300,"#))
    }
    let itself = try ChildProcess(["/bin/sh", "-c", script, SymbolicateTool.path, output, output]).run()
    #expect(itself.status == .exited(2))
    #expect(itself.errorText.contains("out.json: is where standard output goes"))
    // A file may be replaced by what is made of it: it is read before.
    #expect(try SymbolicateTool.run("-f", "ndjson", "-o", input, input).status == .exited(0))
    #expect(String(decoding: try #require(contents(of: input)), as: UTF8.self).contains(#""reports":300,"#))
  }
}
