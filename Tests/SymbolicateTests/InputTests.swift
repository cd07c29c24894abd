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
    expectNothing(try ChildProcess(command).run(), "closed: the directory cannot be read: Permission denied")
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
}
