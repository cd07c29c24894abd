import CrashModel
import Foundation
import TestSupport
import Testing

/// Every way to crash that the fault programs know, in real processes: the frames that must be there, the same frames as
/// gdb finds in the core of the same run, and the same death as without the reporter.
@Suite struct FaultTests {
  /// Faults that leave no crash in the record, and why.
  static let notCaptured = [
    "blocked_segv": "the kernel resets the action of a blocked fault",
    "fork_child": "the child has no record of its own",
    "kill_quit": "SIGQUIT is no crash",
  ]
  /// Faults where gdb's own walk ends early or goes astray on the core, one that leaves an empty core, and one whose core is
  /// in another root.
  static let gdbIsNoJudge: Set = ["chroot", "jit", "smashed", "pc_wild", "pc_noncanon", "co_null", "fsize"]

  static let expected: [String: [String]] = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "Faults/expected_frames.json")
    guard let data = try? Data(contentsOf: file),
      let table = try? JSONDecoder().decode([String: [String]].self, from: data)
    else { return [:] }
    return table
  }()

  static let cFaults = expected.keys.filter { !$0.hasPrefix("sw_") && $0 != "enospc" && $0 != "pid1" }.sorted()
  static let swiftFaults = expected.keys.filter { $0.hasPrefix("sw_") }.sorted()

  @Test func theTableIsThere() { #expect(Self.expected.count > 40) }

  @Test(
    .enabled(if: coresBecomeFiles, "cores do not become files here, so that gdb's frames are not compared with ours"))
  func theDebuggerIsAJudge() throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("judge")
    var child = ChildProcess([host.c, "null_main"], directory: run.path)
    child.coreLimit = .max
    #expect(try child.run().dumpedCore)
    let core = try #require(run.names().first { $0.hasPrefix("core") })
    let stacks = try gdbProgramCounters(executable: host.c, core: "\(run.path)/\(core)")
    #expect(stacks.count == 1 && stacks.values.allSatisfy { $0.count > 4 })
  }

  @Test(arguments: cFaults) func cProgram(fault: String) throws {
    let host = try FaultHost.shared.get()
    try check(fault, program: host.c, host: host)
  }

  @Test(arguments: swiftFaults, [false, true]) func swiftProgram(fault: String, optimized: Bool) throws {
    let host = try FaultHost.shared.get()
    try check(fault, program: host.swift(optimized: optimized), host: host)
  }

  private func check(_ fault: String, program: String, host: FaultHost) throws {
    let run = try TemporaryDirectory("fault")
    var child = ChildProcess([program, fault], directory: run.path)
    child.coreLimit = .max
    // The runtime's own backtracer prints addresses, which differ from run to run; a test of its own has it on.
    child.environment = ["FX_LIB": host.library, "SWIFT_BACKTRACE": "enable=no"]
    #expect(mkdir("\(run.path)/bare", 0o700) == 0)
    child.directory = "\(run.path)/bare"
    let bare = try child.run()

    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    child.directory = run.path
    child.environment["FX_DB"] = "\(run.path)/spool"
    let outcome = try child.run()

    #expect(outcome.status == bare.status, "the same death as without the reporter")
    #expect(outcome.dumpedCore == bare.dumpedCore, "the same core as without the reporter")
    // Behind its first line the Swift runtime prints addresses.
    #expect(outcome.errorText.prefix { $0 != "\n" } == bare.errorText.prefix { $0 != "\n" }, "it prints nothing")

    let folder = fault == "nodir" ? "spool.gone" : "spool"
    let captured = try #require(try CapturedRecord(in: run, folder: folder))
    if Self.notCaptured[fault] != nil {
      #expect(!captured.record.hasCrash)
      return
    }
    #expect(captured.record.isComplete)
    try captured.expectFunctions(try #require(Self.expected[fault])) { $0.contains($1) }

    // `theDebuggerIsAJudge` reports where there are no cores to look at.
    guard outcome.dumpedCore, coresBecomeFiles, !Self.gdbIsNoJudge.contains(fault) else { return }
    let name = try #require(run.names().first { $0.hasPrefix("core") })
    let core = "\(run.path)/\(name)"
    let stacks = try gdbProgramCounters(executable: program, core: core)
    let crashed = try #require(captured.report.crashedThread?.id)
    try CoreReading(core).expect(
      stacks, like: captured.report, said: outcome.errorText, isRaisedAgain: fault == "chain_ok")
    let judge = try #require(stacks[crashed])
    let ours = captured.addresses
    #expect(!judge.isEmpty)
    if ours.count > 400 {
      // Both walks are cut in the middle of the recursion: they agree as far as gdb's goes.
      #expect(judge.count > 300 && ours.prefix(300) == judge.prefix(300))
    } else {
      #expect(ours == judge, "the frames of gdb on the core of the same run")
    }
  }

  /// The runtime's own backtracer, which is on by default, still runs and prints, and no longer lets a process live that
  /// was told to die.
  @Test(arguments: [("sw_nil", SIGILL), ("kill_segv", SIGSEGV), ("abort_main", SIGABRT)])
  func runtimeBacktracerStaysOn(fault: String, signal: Int32) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("chain")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess([host.swift(optimized: true), fault], directory: run.path)
    child.environment = ["FX_DB": "\(run.path)/spool", "SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no"]
    let outcome = try child.run()
    #expect(outcome.status == .signaled(signal))
    #expect(outcome.errorText.contains("Backtracing from"))
    #expect(try #require(try CapturedRecord(in: run)).record.isComplete)
  }

  /// Whether this user, in this sandbox, may do it.
  private static func isAllowed(_ command: String...) -> Bool {
    (try? ChildProcess(["/usr/bin/env"] + command).run())?.status == .exited(0)
  }
  static let canMount = isAllowed("unshare", "-m", "/bin/sh", "-c", "mount -t tmpfs none /mnt")
  static let hasNamespaces = isAllowed("unshare", "-p", "-f", "/bin/true")

  @Test(.enabled(if: canMount, "no mounts here: they need root, and a sandbox that allows them"))
  func fullDiskAtTheCrash() throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("enospc")
    let script = """
      mkdir -m 700 disk kept && mount -t tmpfs -o size=2m,mode=700 none disk || exit 77
      FX_DB=$PWD/disk "$0" enospc
      cp disk/*.crashrecord kept/
      """
    let outcome = try ChildProcess(
      ["/usr/bin/env", "unshare", "-m", "/bin/sh", "-c", script, host.c], directory: run.path
    ).run()
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    let captured = try #require(try CapturedRecord(in: run, folder: "kept"))
    #expect(captured.record.isComplete)
    #expect(try captured.names().contains("fx_leaf_null"))
  }

  /// The first process of a pid namespace does not die of a signal that was sent: it must end all the same. Of a signal
  /// that the kernel raised it dies as every other process does, and leaves a core.
  @Test(
    .enabled(if: hasNamespaces, "no pid namespaces here: they need root, and a sandbox that allows them"),
    arguments: [
      ("abort_main", 134, false), ("null_main", 139, true), ("host_int3", 133, true), ("host_seccomp_trap", 159, true),
    ]) func firstProcessOfANamespace(fault: String, code: Int32, dumpsCore: Bool) throws
  {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("pid1")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    // The inner shell turns a death by signal into 128 + signal, as container runtimes do.
    var child = ChildProcess(
      ["/bin/sh", "-c", "unshare -p -f \"$0\" \(fault); exit $?", host.c], environment: ["FX_DB": "\(run.path)/spool"],
      directory: run.path)
    child.coreLimit = .max
    #expect(try child.run().status == .exited(code))
    // Where cores go to a program instead of a file there is nothing to look for.
    if coresBecomeFiles {
      // unshare ends itself by the signal that ended its child, with a core of its own.
      let cores = run.names().filter { $0.hasPrefix("core") }
      #expect(cores.isEmpty == !dumpsCore, "\(cores)")
    }
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.record.isComplete)
  }

  /// Five hundred frames are kept at the inner end and some at the outer one, with the true number between.
  @Test func bothEndsOfADeepStack() throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("deep")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    let outcome = try ChildProcess([host.c, "so_main"], environment: ["FX_DB": "\(run.path)/spool"]).run()
    #expect(outcome.status == .signaled(SIGSEGV))
    let captured = try #require(try CapturedRecord(in: run))
    let thread = try #require(captured.report.crashedThread)
    let depth = try #require(thread.depth)
    #expect(depth > 10_000)
    let omitted: [UInt64] = thread.frames.compactMap { if case .omitted(let count) = $0 { count } else { nil } }
    #expect(omitted.count == 1)
    #expect(UInt64(captured.addresses.count) + omitted.reduce(0, +) == depth)
    #expect(try captured.names().last == "_start")
  }

  /// Eight threads crash at once: one report, one death. That the other crash is mentioned is `corner_second_crash`: here it
  /// may come too late.
  @Test func threadsThatCrashAtOnce() throws {
    let host = try FaultHost.shared.get()
    for _ in 0..<10 {
      let run = try TemporaryDirectory("race")
      #expect(mkdir("\(run.path)/spool", 0o700) == 0)
      let outcome = try ChildProcess([host.c, "eight_crash"], environment: ["FX_DB": "\(run.path)/spool"]).run()
      #expect(outcome.status == .signaled(SIGSEGV))
      let captured = try #require(try CapturedRecord(in: run))
      #expect(captured.record.isComplete)
    }
  }
}
