import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// A program whose own functions lost their names.
@Suite(.enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed")) struct StrippedTests {
  /// The program in four states, and a report of a crash in its function `inner`, called by `outer`.
  private struct Program {
    let folder: TemporaryDirectory
    let report: CrashReport

    /// `full`, `symbols` (without debug information), or `bare` (without `.symtab`).
    init(installed: String) throws {
      folder = try TemporaryDirectory("stripped")
      // `exported` is in the dynamic symbol table, so that there is one to be found.
      let source = try folder.file(
        "program.c",
        Array(
          """
          static __attribute__((noinline)) int inner(volatile int *p) { return *p + 1; }
          static __attribute__((noinline)) int outer(volatile int *p) { return inner(p) + 1; }
          __attribute__((visibility("default"))) int exported(volatile int *p) { return outer(p) + 1; }
          int main(int argc, char **argv) { (void)argv; return exported(&argc); }

          """.utf8))
      let full = folder.path + "/full"
      try Self.run(["/usr/bin/gcc", "-g", "-O1", "-rdynamic", "-Wl,--build-id", "-o", full, source])
      try Self.run(["/usr/bin/env", "strip", "--strip-debug", "-o", folder.path + "/symbols", full])
      try Self.run(["/usr/bin/env", "strip", "-o", folder.path + "/bare", full])
      let symbols = try Self.run(["/usr/bin/env", "nm", full]).split(separator: "\n").map { $0.split(separator: " ") }
      func address(of name: String) throws -> UInt64 {
        try #require(symbols.first { $0.last.map(String.init) == name }.flatMap { Hex.value($0[0]) })
      }
      let notes = try Self.run(["/usr/bin/env", "readelf", "-n", full])
      let id = try #require(notes.split(separator: "\n").first { $0.contains("Build ID:") }?.split(separator: " ").last)
      // Where the program ran there lies the file that was installed, and nothing else.
      let place = folder.path + "/installed"
      try FileManager.default.copyItem(atPath: folder.path + "/" + installed, toPath: place)

      var report = CrashReport(id: "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b")
      report.service = "program"
      report.type = "SIGSEGV"
      report.signal = SignalInfo(number: 11, name: "SIGSEGV")
      report.process = ProcessInfo(executable: place)
      let base: UInt64 = 0x5555_0000_0000
      report.images = [
        Image(path: place, buildID: BuildID(id), address: Address(rawValue: base), size: 1 << 20)
      ]
      report.threads = [
        ThreadInfo(
          id: 1, crashed: true,
          frames: try [(FrameKind.programCounter, "inner", 0), (.returnAddress, "outer", 5)].map { kind, name, offset in
            let distance = try address(of: name) + UInt64(offset)
            return .captured(
              CapturedFrame(
                kind: kind, address: Address(rawValue: base + distance), imageIndex: 0,
                imageOffset: ImageOffset(rawValue: distance)))
          })
      ]
      report.crashedThreadIndex = 0
      self.report = report
    }

    @discardableResult
    static func run(_ command: [String]) throws -> String {
      let outcome = try ChildProcess(command).run()
      guard outcome.status == .exited(0) else {
        throw ChildProcess.LaunchFailure(description: "\(command): \(outcome.errorText)")
      }
      return outcome.text
    }
  }

  @Test func withoutASymbolTableItIsIncompleteAndSaysWhatToDo() throws {
    let program = try Program(installed: "bare")
    let outcome = try SymbolicateTool.run("-", input: program.report.json())
    #expect(outcome.status == .exited(1))
    let tail = try #require(outcome.text.components(separatedBy: "1 image without full names:").last)
    #expect(tail.contains("installed (build id ") && tail.contains("no debug information and is stripped"))
    #expect(tail.contains("2 frames in it have no name") && tail.contains("--exe FILE or --debug-dir DIR"), "\(tail)")
    #expect(outcome.text.contains("(exported symbols only)"))

    // The other outputs say the same beside the results.
    let json = try SymbolicateTool.run("-f", "json", "-", input: program.report.json())
    #expect(json.status == .exited(1) && json.errorText.contains("is stripped"))
    #expect(json.text.contains(#""stack_hash_quality":"offsets""#))
    let groups = try SymbolicateTool.run("group", "-", input: program.report.json())
    #expect(groups.status == .exited(1) && groups.text.contains("installed+0x"))
  }

  @Test(arguments: ["full", "symbols"]) func withTheFileOfBeforeItIsComplete(_ file: String) throws {
    let program = try Program(installed: "bare")
    let path = program.folder.path + "/" + file
    let outcome = try SymbolicateTool.run("--exe", path, "-", input: program.report.json())
    #expect(outcome.status == .exited(0), "\(outcome.text)")
    #expect(outcome.text.contains(" inner in installed") && !outcome.text.contains("without full names"))
  }

  /// A symbol table names every function; what it does not know are lines.
  @Test func aSymbolTableIsNotStripped() throws {
    let program = try Program(installed: "symbols")
    let outcome = try SymbolicateTool.run("-", input: program.report.json())
    #expect(outcome.status == .exited(0), "\(outcome.text)")
    #expect(outcome.text.contains("(symbols only)") && outcome.text.contains(" inner in installed"))
  }

  /// Of a report that was named before, nothing is missing.
  @Test func namesOfBeforeCount() throws {
    let program = try Program(installed: "bare")
    let named = try SymbolicateTool.run(
      "-f", "json", "--exe", program.folder.path + "/full", "-", input: program.report.json())
    let again = try SymbolicateTool.run("-", input: named.output)
    #expect(again.status == .exited(0) && again.text.contains(" inner in installed"), "\(again.text)")
  }
}
