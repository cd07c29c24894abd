import CrashModel
import Foundation
import TestSupport
import Testing

/// Programs with plans of their own for the signals of a crash: each goes on, or ends, as it does without the reporter, and
/// the record says whether it crashed.
@Suite struct HostTests {
  enum Verdict {
    case noCrash
    /// With this signal, and these functions in order.
    case crash(Int32, [String])
  }
  struct Host: CustomTestStringConvertible, Sendable {
    var name: String
    var status: ChildProcess.Status
    var verdict: Verdict
    var testDescription: String { name }
    init(_ name: String, _ status: ChildProcess.Status, _ verdict: Verdict) {
      self.name = name
      self.status = status
      self.verdict = verdict
    }
  }

  static let hosts: [Host] = [
    // A handler that repairs what faulted and returns: a garbage collector's.
    Host("maps", .exited(0), .noCrash),
    Host("maps_then_crash", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host("maps_threads_then_crash", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host("maps_once", .signaled(SIGSEGV), .crash(SIGSEGV, ["touch_pages", "main"])),
    // A handler that leaves by siglongjmp: an interpreter's.
    Host("jumps", .exited(0), .noCrash),
    Host("jumps_then_crash", .signaled(SIGABRT), .crash(SIGABRT, ["hx_leaf_abort", "hx_top_abort", "main"])),
    Host("jumps_then_same_crash", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host(
      "jumps_in_thread_then_crash", .signaled(SIGABRT), .crash(SIGABRT, ["hx_leaf_abort", "hx_top_abort"])),
    // Handlers that end the process in their own way: the record is about what came first.
    Host("aborts", .signaled(SIGABRT), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host("exits", .exited(3), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host("crashes", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host("mask", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host("mask_open", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    // Signals that are ignored, or handled and survived.
    Host("abort_ignored_raise", .exited(0), .noCrash),
    Host("abort_ignored_raise_then_crash", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    Host("abort_ignored_abort", .signaled(SIGABRT), .crash(SIGABRT, ["hx_leaf_abort", "hx_top_abort"])),
    Host("survives_sent_then_crash", .signaled(SIGSEGV), .crash(SIGSEGV, ["hx_leaf", "hx_top", "main"])),
    // Signals of instructions that are not executed again by themselves.
    Host("int3", .signaled(SIGTRAP), .crash(SIGTRAP, ["hx_leaf_int3", "hx_top_int3", "main"])),
    Host("seccomp_trap", .signaled(SIGSYS), .crash(SIGSYS, ["hx_leaf_syscall", "hx_top_syscall", "main"])),
    Host(
      "in_handler", .signaled(SIGSEGV),
      .crash(SIGSEGV, ["hx_leaf", "hx_top", "hx_crashing_handler", "hx_interrupted", "main"])),
    // Libraries that come and go.
    Host("reload", .signaled(SIGSEGV), .crash(SIGSEGV, ["fxlib2_leaf", "fxlib2_crash", "hx_call", "main"])),
    Host("namespace", .signaled(SIGSEGV), .crash(SIGSEGV, ["fxlib_leaf", "fxlib_crash", "hx_call", "main"])),
    Host("unloaded", .signaled(SIGSEGV), .crash(SIGSEGV, ["fxlib_crash", "hx_call", "main"])),
  ]

  @Test(arguments: hosts) func host(_ host: Host) throws {
    let programs = try FaultHost.shared.get()
    let run = try TemporaryDirectory("host")
    var child = ChildProcess([programs.c, "host_\(host.name)"], directory: run.path)
    child.coreLimit = .max
    child.environment = ["FX_LIB": programs.library, "FX_LIB2": programs.otherLibrary]
    #expect(mkdir("\(run.path)/bare", 0o700) == 0)
    child.directory = "\(run.path)/bare"
    let bare = try child.run()
    #expect(bare.status == host.status, "without the reporter")

    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    child.directory = run.path
    child.environment["FX_DB"] = "\(run.path)/spool"
    let outcome = try child.run()
    #expect(outcome.status == host.status)
    #expect(outcome.dumpedCore == bare.dumpedCore)
    #expect(outcome.errorText == bare.errorText)

    let captured = try #require(try CapturedRecord(in: run))
    switch host.verdict {
    case .noCrash: #expect(captured.record.hasCrash == false)
    case .crash(let signal, let functions):
      #expect(captured.record.isComplete == true)
      #expect(captured.report.signal?.number == signal)
      try captured.expectFunctions(functions)
    }
  }

  @Test func codeOfAnUnloadedLibraryIsNamedAndMarked() throws {
    let programs = try FaultHost.shared.get()
    let run = try TemporaryDirectory("unloaded")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess([programs.c, "host_unloaded"], directory: run.path)
    child.environment = ["FX_LIB": programs.library, "FX_DB": "\(run.path)/spool"]
    #expect(try child.run().status == .signaled(SIGSEGV))
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.report.images.filter(\.isUnloaded).map(\.name) == ["fxlib.so"])
  }

  /// Signals that others send while the handler works are neither crashes nor faults of its own.
  @Test func signalsThatArriveDuringTheCapture() throws {
    let programs = try FaultHost.shared.get()
    for _ in 0..<10 {
      let run = try TemporaryDirectory("storm")
      #expect(mkdir("\(run.path)/spool", 0o700) == 0)
      var child = ChildProcess([programs.c, "host_storm"], directory: run.path)
      child.environment = ["FX_DB": "\(run.path)/spool"]
      #expect(try child.run().status == .signaled(SIGFPE))
      let captured = try #require(try CapturedRecord(in: run))
      #expect(captured.record.isComplete == true)
      #expect(!captured.report.notes.contains { $0.contains("The crash handler itself") })
    }
  }

  @Test func aRelativeFolderIsRefused() throws {
    let programs = try FaultHost.shared.get()
    let run = try TemporaryDirectory("relative")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    let outcome = try ChildProcess(
      [programs.c, "null_main"], environment: ["FX_DB": "spool"], directory: run.path
    ).run()
    #expect(outcome.status == .exited(90))
    #expect(outcome.errorText.contains("must be absolute"))
    #expect(run.names(in: "spool").isEmpty)
  }
}
