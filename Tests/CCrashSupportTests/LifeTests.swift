import CrashModel
import Foundation
import TestSupport
import Testing

/// What a program may do with its reporter, its children and its limits: it lives and dies as it would have, and every
/// record tells of its own process and of no other.
@Suite struct LifeTests {
  enum Verdict: Sendable {
    /// No record at all.
    case nothing
    /// One record, of a crash with these functions in order.
    case crash([String])
  }
  struct Life: CustomTestStringConvertible, Sendable {
    var name: String
    var verdict: Verdict
    var testDescription: String { name }
    init(_ name: String, _ verdict: Verdict = .crash(["lx_leaf", "lx_top", "life_run", "main"])) {
      self.name = name
      self.verdict = verdict
    }
  }

  static let lives: [Life] = [
    Life("start_twice"), Life("start_race"), Life("stop_then_crash", .nothing), Life("stop_start_crash"),
    Life("stop_race"), Life("stop_twice_start_fails", .nothing), Life("closed_stdio"),
    Life("no_descriptors_at_start", .nothing), Life("no_descriptors"), Life("no_memory"), Life("no_processes"),
    Life("lists"),
    Life("at_exit_before_start", .crash(["lx_leaf", "lx_top", "main"])),
    Life("quick_exit", .crash(["lx_leaf", "lx_top", "life_run", "main"])),
  ]

  private func child(_ host: FaultHost, _ name: String, in run: TemporaryDirectory, reporter: Bool) -> ChildProcess {
    for folder in ["spool", "spool2", "root"] { _ = mkdir("\(run.path)/\(folder)", 0o700) }
    var child = ChildProcess([host.c, "life_\(name)"], directory: run.path)
    child.environment = ["FX_ROOT": "\(run.path)/root"]
    if reporter {
      child.environment["FX_DB"] = "\(run.path)/spool"
      child.environment["FX_DB2"] = "\(run.path)/spool2"
    }
    return child
  }

  @Test(arguments: lives) func life(_ life: Life) throws { try check(life) }

  @Test(.enabled(if: geteuid() == 0, "chroot needs root")) func lifeInAnotherRoot() throws { try check(Life("chroot")) }

  /// Whether this machine allows as many threads, which only trying tells.
  static let has5000Threads: Bool = {
    guard let host = try? FaultHost.shared.get() else { return true }
    return (try? ChildProcess([host.c, "life_threads5000"]).run())?.status != .exited(93)
  }()

  @Test(.enabled(if: has5000Threads, "this machine does not allow 5,000 threads in one process"))
  func lifeWith5000Threads() throws { try check(Life("threads5000")) }

  private func check(_ life: Life) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("life")
    let bare = try child(host, life.name, in: run, reporter: false).run()
    #expect(bare.status == .signaled(SIGSEGV), "without the reporter")
    let outcome = try child(host, life.name, in: run, reporter: true).run()
    #expect(outcome.status == bare.status, "\(outcome.errorText)")
    #expect(outcome.output == bare.output, "the same descriptors, threads, children and blocked signals")

    switch life.verdict {
    case .nothing: #expect(run.names(in: "spool").isEmpty)
    case .crash(let functions):
      let captured = try #require(try CapturedRecord(in: run))
      // Its threads add breadcrumbs until the end: one may be half written, which is noted.
      let isComplete =
        life.name == "stop_race" ? captured.record.crashState == .complete : captured.record.isComplete
      #expect(isComplete, "\(captured.report.notes)")
      #expect(run.names(in: "spool").count == 1)
      try captured.expectFunctions(functions)
    }
  }

  // ---- Children -------------------------------------------------------------------------------------------------

  struct Parent: CustomTestStringConvertible, Sendable {
    var name: String
    /// How its child ends, as waitpid tells it.
    var childStatus: Int32
    var childHasRecord = false
    var crashes = false
    var testDescription: String { name }
  }

  static let parents: [Parent] = [
    Parent(name: "fork_starts_and_crashes", childStatus: SIGSEGV, childHasRecord: true),
    Parent(name: "fork_crashes", childStatus: SIGSEGV),
    Parent(name: "fork_crashes_then_crash", childStatus: SIGSEGV, crashes: true),
    Parent(name: "fork_exits", childStatus: 7 << 8), Parent(name: "fork_stops", childStatus: 7 << 8),
    Parent(name: "vfork_crashes", childStatus: SIGSEGV),
    Parent(name: "vfork_crashes_then_crash", childStatus: SIGSEGV, crashes: true),
  ]

  /// The child is gone, the parent waits: its record is locked, alive and without a crash. Then it goes on.
  @Test(arguments: parents) func parentOf(_ parent: Parent) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("life")
    let running = try child(host, parent.name, in: run, reporter: true).start()
    let words = running.readLine().split(separator: " ")
    try #require(words.count == 4 && words[0] == "child")
    let childID = try #require(Int32(words[1]))
    #expect(Int32(words[3]) == parent.childStatus)

    let during = try #require(try CapturedRecord(in: run))
    #expect(during.record.process?.id == running.processID)
    #expect(during.record.runState == .alive)
    #expect(!during.record.hasCrash)
    #expect(!during.record.breadcrumbs.contains { $0.category == "child" })
    let name = try #require(run.names(in: "spool").first)
    let file = open("\(run.path)/spool/\(name)", O_RDWR | O_CLOEXEC)
    defer { close(file) }
    #expect(flock(file, LOCK_EX | LOCK_NB) == -1, "the lock says that the parent lives")

    let ofChild = try CapturedRecord(in: run, folder: "spool2")
    #expect((ofChild != nil) == parent.childHasRecord)
    if let ofChild {
      #expect(ofChild.record.isComplete)
      #expect(ofChild.record.process?.id == childID)
      try ofChild.expectFunctions(["lx_leaf", "lx_top", "life_run", "main"])
    }

    let outcome = try running.finish()
    #expect(outcome.status == (parent.crashes ? .signaled(SIGSEGV) : .exited(0)))
    let after = try #require(try CapturedRecord(in: run))
    #expect(flock(file, LOCK_EX | LOCK_NB) == 0, "the lock is gone with the process")
    if parent.crashes {
      #expect(after.record.isComplete)
      #expect(after.record.crashThread == UInt32(running.processID))
    } else {
      #expect(after.record.runState == .exited)
      #expect(!after.record.hasCrash)
    }
  }

  // ---- Damage ---------------------------------------------------------------------------------------------------

  /// Innermost functions, and whether the walk can come to the end of the stack.
  static let damages: [(String, [String])] = [
    ("rsp_null", ["dx_store_on"]), ("rsp_unmapped", ["dx_push_on"]), ("rsp_no_access", ["dx_push_on"]),
    ("rsp_read_only", ["dx_push_on"]), ("rsp_non_canonical", ["dx_push_on"]), ("rsp_top", ["dx_store_on"]),
    ("rsp_odd", ["dx_store_on"]),
    ("key", ["dx_leaf", "dx_destructor_crash"]), ("key_overflow", ["dx_recurse", "dx_destructor_overflow"]),
    ("thread_local", ["dx_leaf", "dx_destructor_crash"]),
    ("thread_local_overflow", ["dx_recurse", "dx_destructor_overflow"]),
    ("at_exit", ["dx_leaf", "dx_at_exit", "main"]),
    ("at_exit_overflow", ["dx_recurse", "dx_at_exit_overflow", "main"]),
    ("on_exit", ["dx_leaf", "dx_on_exit", "main"]),
  ]

  @Test(arguments: damages) func damage(fault: String, functions: [String]) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("damage")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess([host.c, "damage_\(fault)"], directory: run.path)
    let bare = try child.run()
    child.environment["FX_DB"] = "\(run.path)/spool"
    let outcome = try child.run()
    #expect(outcome.status == bare.status)
    #expect(outcome.status == .signaled(fault == "rsp_non_canonical" ? SIGBUS : SIGSEGV))
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.record.crashState == .complete)
    try captured.expectFunctions(functions)
    let thread = try #require(captured.report.crashedThread)
    if fault.hasPrefix("rsp_") {
      // Nothing can be found on a stack that is not there; that is said. Where it can be read, what lies in the place of the
      // return address is shown, and no more.
      #expect(thread.status == .partial)
      #expect(captured.report.notes.contains { $0.contains("stack ended early") })
      #expect(thread.frames.count <= (fault == "rsp_read_only" || fault == "rsp_odd" ? 2 : 1))
    } else {
      #expect(thread.status == .captured)
    }
  }
}
