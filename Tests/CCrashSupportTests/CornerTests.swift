import CrashModel
import Foundation
import TestSupport
import Testing

/// Rare situations; `docs/fault-matrix.md` says which row each one is.
@Suite struct CornerTests {
  struct Corner: CustomTestStringConvertible, Sendable {
    var name: String
    var signal: Int32
    var functions: [String]
    /// A part of a note that must be there.
    var note: String?
    var testDescription: String { name }
    init(_ name: String, _ signal: Int32, _ functions: [String], note: String? = nil) {
      self.name = name
      self.signal = signal
      self.functions = functions
      self.note = note
    }
  }

  static let corners: [Corner] = [
    Corner(
      "stage_crashes", SIGABRT, ["cx_abort", "corner_run", "main"],
      note: "The crash handler itself met SIGSEGV"),
    // The process dies as without the reporter, and does not go on with its other threads stopped.
    Corner("fault_vanishes", SIGSEGV, ["cx_store", "corner_run", "main"]),
    Corner("second_crash", SIGABRT, ["cx_abort", "corner_run", "main"], note: "crashed too"),
    // As by a thread that was stopped while it completed the section.
    Corner("section_open", SIGSEGV, ["cx_leaf", "cx_top", "corner_run", "main"]),
    Corner("coroutine_overflow", SIGSEGV, ["cx_recurse", "cx_on_coroutine"]),
    Corner("deep_handler", SIGSEGV, ["cx_leaf", "cx_top", "corner_run", "main"]),
    Corner("ignored_segv", SIGSEGV, ["cx_leaf", "cx_top", "corner_run", "main"]),
    Corner("heap_overrun", SIGSEGV, ["cx_leaf", "cx_top", "corner_run", "main"]),
    Corner("constructor", SIGSEGV, ["fxctor_leaf", "fxctor_start", "corner_run", "main"]),
    Corner("library_comes_and_goes", SIGSEGV, ["cx_leaf", "cx_top", "corner_run", "main"]),
    Corner("descriptors_reused", SIGSEGV, ["cx_leaf", "cx_top", "corner_run", "main"]),
    // Its loads fault as they do without that handler, whose mask has every signal in it.
    Corner(
      "handler_in_front", SIGSEGV, ["corner_run", "main"], note: "Somebody replaced the handler for SIGSEGV"),
    Corner("open_kills", SIGSEGV, ["cx_leaf", "cx_top", "corner_run", "main"]),
    Corner(
      "other_handler_later", SIGABRT, ["cx_abort", "corner_run", "main"],
      note: "Somebody replaced the handler for SIGSEGV"),
  ]

  private func child(_ name: String, in run: TemporaryDirectory) throws -> ChildProcess {
    let host = try FaultHost.shared.get()
    var child = ChildProcess([host.c, "corner_\(name)"], directory: run.path)
    child.environment = [
      "FX_LIB": host.library, "FX_CONSTRUCTOR": host.constructorLibrary, "FX_FILE": "\(run.path)/file",
    ]
    return child
  }

  @Test(arguments: corners) func corner(_ corner: Corner) throws {
    let run = try TemporaryDirectory("corner")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = try child(corner.name, in: run)
    // A stage that fails is one only where there is a handler.
    let bare = try child.run()
    #expect(bare.status == .signaled(corner.signal), "without the reporter")
    child.environment["FX_DB"] = "\(run.path)/spool"
    #expect(try child.run().status == .signaled(corner.signal))

    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.record.crashState == .complete)
    // A stage that failed leaves its section open, and nothing else.
    #expect(captured.record.isIntact == (corner.name != "stage_crashes"))
    #expect(captured.report.signal?.number == corner.signal)
    try captured.expectFunctions(corner.functions)
    if let note = corner.note { #expect(captured.report.notes.contains { $0.contains(note) }) }
    if let bytes = contents(of: "\(run.path)/file") {
      // Every descriptor wrote at the file's start; nobody else wrote anything.
      #expect(bytes == Array("mine\n".utf8))
    }
  }

  /// A setuid program must not write where the user who started it says.
  @Test(.enabled(if: geteuid() == 0, "only root can make the file and be somebody else"))
  func programWithRightsOfAnotherUserIsRefused() throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("setuid")
    let program = "\(run.path)/host"
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    let copied = try ChildProcess(["/bin/cp", host.c, program]).run()
    #expect(copied.status == .exited(0) && chmod(program, 0o4755) == 0 && chmod(run.path, 0o755) == 0)
    let outcome = try ChildProcess(
      ["/usr/bin/env", "setpriv", "--reuid=65534", "--clear-groups", program, "null_main"],
      environment: ["FX_DB": "\(run.path)/spool"], directory: run.path
    ).run()
    #expect(outcome.status == .exited(90), "\(outcome.errorText)")
    #expect(outcome.errorText.contains("rights that its user does not have"))
    #expect(run.names(in: "spool").isEmpty)
  }

  /// Whatever `docs/fault-matrix.md` names as a test is one.
  @Test func theMatrixNamesTestsThatExist() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let root = tests.deletingLastPathComponent()
    let matrix = try String(contentsOf: root.appendingPathComponent("docs/fault-matrix.md"), encoding: .utf8)
    var sources = ""
    for case let file as URL in FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil) ?? .init()
    where ["swift", "c", "json"].contains(file.pathExtension) {
      sources += (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    }
    let rows = matrix.split(separator: "\n").filter { $0.hasPrefix("| ") && $0.dropFirst(2).first?.isNumber == true }
    #expect(rows.count == 68)
    for row in rows {
      let cells = row.split(separator: "|")
      let names = cells[2].split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
      for name in names where !name.contains(" ") {
        // The table shows programs with the prefix of their kind.
        var words = [name.prefix { $0 != "*" }]
        for kind in ["host_", "corner_", "life_", "damage_"] where name.hasPrefix(kind) {
          words = [name.dropFirst(kind.count).prefix { $0 != "*" }]
        }
        for word in words where !word.isEmpty {
          let exists = sources.contains(word)
          #expect(exists, "\(word) of \(row)")
        }
      }
    }
  }

  /// A child made by vfork crashes, and a sandbox kills it for the call that would tell it from its parent, with which it
  /// shares the record. The parent goes on, and what it does with the reporter next shows that it does; or it crashes itself,
  /// and is killed for the same call, with its own stack in the record.
  @Test(arguments: [false, true]) func childOfVforkIsKilledInTheHandler(parentCrashes: Bool) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("corner")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    let name = parentCrashes ? "vfork_child_killed_then_crash" : "vfork_child_killed"
    let outcome = try ChildProcess(
      [host.c, "sandbox:KILL:getpid:corner_\(name)"], environment: ["FX_DB": "\(run.path)/spool"]
    ).run()
    #expect(outcome.status == (parentCrashes ? .signaled(SIGSYS) : .exited(0)))
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.record.hasCrash == parentCrashes)
    if parentCrashes {
      try captured.expectFunctions(["cx_leaf", "cx_top", "corner_run", "main"])
    } else {
      #expect(captured.record.runState == .exited)
    }
  }

  /// A handler that hangs is ended by its deadline, and what it had finished is there.
  @Test func stageThatHangs() throws {
    let run = try TemporaryDirectory("hang")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = try child("stage_hangs", in: run)
    child.environment["FX_DB"] = "\(run.path)/spool"
    #expect(try child.run().status == .signaled(SIGKILL))
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.record.crashState == .capturing)
    #expect(captured.report.signal?.number == SIGABRT)
    #expect(captured.report.crashedThread?.registers.isEmpty == false)
    #expect(try captured.names().contains("cx_abort"))
    #expect(captured.report.notes.contains { $0.contains("did not come to its end") })
  }
}
