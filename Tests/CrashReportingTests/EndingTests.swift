import CrashModel
import CrashReporting
import Foundation
import Glibc
import TestSupport
import Testing

/// How a run ended, made by real processes, and what the next start says: the table of `docs/endings.md`.
@Suite struct EndingTests {
  struct Way: CustomTestStringConvertible, Sendable {
    var how: String
    /// Sent by the test once the process waits for it.
    var sent: Int32?
    var status: ChildProcess.Status
    var verdict: Ending.Kind
    var signal: String?
    var testDescription: String { sent.map { "\(how) \($0)" } ?? how }
  }

  static let ways: [Way] = [
    Way(how: "return", status: .exited(0), verdict: .clean),
    Way(how: "exit", status: .exited(0), verdict: .clean),
    Way(how: "exit_3", status: .exited(3), verdict: .clean),
    Way(how: "quick_exit", status: .exited(0), verdict: .clean),
    Way(how: "_exit", status: .exited(0), verdict: .killed),
    Way(how: "wait", sent: SIGTERM, status: .signaled(SIGTERM), verdict: .terminated, signal: "SIGTERM"),
    Way(how: "wait", sent: SIGINT, status: .signaled(SIGINT), verdict: .terminated, signal: "SIGINT"),
    Way(how: "wait", sent: SIGHUP, status: .signaled(SIGHUP), verdict: .terminated, signal: "SIGHUP"),
    Way(how: "wait", sent: SIGQUIT, status: .signaled(SIGQUIT), verdict: .terminated, signal: "SIGQUIT"),
    Way(how: "wait", sent: SIGUSR1, status: .signaled(SIGUSR1), verdict: .terminated, signal: "SIGUSR1"),
    Way(how: "wait", sent: SIGKILL, status: .signaled(SIGKILL), verdict: .killed),
    Way(how: "wait", sent: SIGSEGV, status: .signaled(SIGSEGV), verdict: .crashed, signal: "SIGSEGV"),
    Way(how: "raise", status: .signaled(SIGTERM), verdict: .terminated, signal: "SIGTERM"),
    Way(how: "handler_exit", sent: SIGTERM, status: .exited(0), verdict: .clean),
    Way(how: "handler_silent", sent: SIGTERM, status: .exited(0), verdict: .killed),
    Way(how: "handler_before", sent: SIGTERM, status: .signaled(SIGTERM), verdict: .terminated, signal: "SIGTERM"),
    Way(how: "sigwait", sent: SIGTERM, status: .exited(0), verdict: .clean),
    Way(how: "signalfd", sent: SIGTERM, status: .exited(0), verdict: .clean),
    Way(how: "dispatch_source", sent: SIGTERM, status: .exited(0), verdict: .clean),
    Way(how: "query", sent: SIGTERM, status: .signaled(SIGTERM), verdict: .terminated, signal: "SIGTERM"),
    Way(how: "ignored", status: .exited(0), verdict: .clean),
    Way(how: "pipe", status: .signaled(SIGPIPE), verdict: .terminated, signal: "SIGPIPE"),
    Way(how: "alarm", status: .signaled(SIGALRM), verdict: .terminated, signal: "SIGALRM"),
    Way(how: "cpu", status: .signaled(SIGXCPU), verdict: .terminated, signal: "SIGXCPU"),
    Way(how: "file_size", status: .signaled(SIGXFSZ), verdict: .terminated, signal: "SIGXFSZ"),
    Way(how: "blocked_segv", status: .signaled(SIGSEGV), verdict: .killed),
    Way(how: "abort", status: .signaled(SIGABRT), verdict: .crashed, signal: "SIGABRT"),
  ]

  /// Starts a run in a spool, lets it come to where it waits, and to its end.
  @discardableResult
  private func run(_ how: String, sent: Int32? = nil, in spool: SpoolFixture) throws -> ChildProcess.Outcome {
    var child = ChildProcess([builtProduct("EndingRunner"), "end", how, spool.path], directory: spool.directory.path)
    // The runtime's own backtracer takes a second for each signal.
    child.environment["SWIFT_BACKTRACE"] = "enable=no"
    child.coreLimit = 0
    let running = try child.start()
    if let sent {
      // It may say other things first.
      var line = running.readLine()
      while !line.isEmpty, !line.hasPrefix("ready") { line = running.readLine() }
      #expect(line.hasPrefix("ready"))
      kill(running.processID, sent)
    }
    return try running.finish()
  }

  private func history(_ spool: SpoolFixture) -> RunHistory {
    RunHistory(text: contents(of: spool.path + "/history"))
  }

  @Test(arguments: ways) func verdict(_ way: Way) throws {
    let spool = try SpoolFixture()
    let outcome = try run(way.how, sent: way.sent, in: spool)
    #expect(outcome.status == way.status, "\(outcome.text)")
    try spool.process()
    let last = try #require(history(spool).runs.last)
    #expect(last.ending == way.verdict)
    #expect(last.signal == way.signal)
    #expect(last.release == "1.0.0")
    #expect(spool.names("records") == [])
    let reports = try spool.reports()
    guard way.verdict != .clean else {
      #expect(reports.isEmpty, "a run that ended in good order leaves nothing")
      return
    }
    let report = try #require(reports.first)
    #expect(report["run_id"] as? String == last.id)
    guard way.verdict != .crashed else { return #expect(report["kind"] as? String == "crash") }
    #expect(report["kind"] as? String == "termination")
    #expect(report["timestamp"] is String)
    #expect((report["breadcrumbs"] as? [[String: Any]])?.last?["message"] as? String == "about to end")
    let ending = try #require(report["ending"] as? [String: Any])
    #expect(ending["kind"] as? String == way.verdict.rawValue)
    #expect((ending["evidence"] as? [String])?.isEmpty == false)
    if way.verdict == .terminated {
      let signal = try #require(report["signal"] as? [String: Any])
      #expect(signal["name"] as? String == way.signal)
      // By whom: the test, or the process itself.
      if way.sent != nil, way.how != "handler_before" {
        #expect(signal["sender_pid"] as? Int == Int(getpid()))
        #expect(signal["sender_uid"] as? Int == Int(getuid()))
      } else if way.how == "raise" || way.how == "pipe" {
        #expect(signal["sender_pid"] as? Int == Int(outcome.processID))
      }
      #expect(ending["could_also_be"] == nil)
    } else {
      // What cannot be told apart is said.
      let others = try #require(ending["could_also_be"] as? [String])
      #expect(others.contains { $0.contains("_exit") })
      #expect(others.contains { $0.contains("blocked") })
    }
  }

  @Test func aReporterThatWasStoppedLeavesNothing() throws {
    let spool = try SpoolFixture()
    #expect(try run("stop", in: spool).status == .exited(0))
    try spool.process()
    #expect(spool.names("records") == [] && spool.names("new") == [])
  }

  @Test func childrenEndWithoutTouchingTheRecord() throws {
    let spool = try SpoolFixture()
    let outcome = try run("fork", in: spool)
    #expect(outcome.status == .exited(0))
    #expect(outcome.text.contains("child 0\nchild 768\nchild 15\n"), "\(outcome.text)")
    try spool.process()
    #expect(history(spool).runs.map(\.ending) == [.clean])
    #expect(spool.names("new") == [])
  }

  /// A program that the service starts finds every signal as the service itself found it.
  @Test func childrenFindTheirSignalsAsTheyWere() throws {
    let spool = try SpoolFixture()
    let outcome = try run("child", in: spool)
    #expect(outcome.status == .exited(0), "\(outcome.text)")
    // Neither caught nor blocked, nor ignored; and ended by SIGTERM.
    for mask in ["SigBlk", "SigCgt", "SigIgn"] { #expect(signals(mask, outcome.text) == 0, "\(outcome.text)") }
    #expect(outcome.text.hasSuffix("child 0\nchild \(SIGTERM)\n"), "\(outcome.text)")
  }

  /// A mask of signals from `/proc/self/status`, without libc's own two: its `posix_spawn` lets every child ignore them.
  private func signals(_ mask: String, _ status: String) -> UInt64? {
    let line = status.split(separator: "\n").first { $0.hasPrefix(mask + ":\t") }
    return line.flatMap { UInt64($0.dropFirst(mask.count + 2), radix: 16) }.map { $0 & ~(3 << 31) }
  }

  /// What a service ignores from its start, as under `nohup`, it goes on to ignore, and so do its children.
  @Test func whatIsIgnoredStaysIgnored() throws {
    let spool = try SpoolFixture()
    func child(_ how: String) -> ChildProcess {
      ChildProcess([
        "/bin/sh", "-c", "trap '' HUP USR1; exec \"$0\" end \"$1\" \"$2\"", builtProduct("EndingRunner"), how,
        spool.path,
      ])
    }
    let asked = try child("query").start()
    for expected in ["1 ignored", "2 handler", "15 handler", "10 ignored", "17 default", "28 default"] {
      #expect(asked.readLine() == "action \(expected)")
    }
    #expect(asked.readLine().hasPrefix("ready"))
    kill(asked.processID, SIGHUP)
    kill(asked.processID, SIGUSR1)
    kill(asked.processID, SIGTERM)
    #expect(try asked.finish().status == .signaled(SIGTERM))
    let outcome = try child("child").run()
    #expect(outcome.status == .exited(0))
    #expect(signals("SigIgn", outcome.text) == 1 << UInt64(SIGHUP - 1) | 1 << UInt64(SIGUSR1 - 1), "\(outcome.text)")
    try spool.process()
    #expect(history(spool).runs.map(\.ending) == [.terminated, .clean])
    #expect(history(spool).runs.first?.signal == "SIGTERM")
  }

  @Test func aRunThatIsAliveIsLeftAlone() throws {
    let spool = try SpoolFixture()
    let running = try ChildProcess([builtProduct("EndingRunner"), "end", "wait", spool.path]).start()
    #expect(running.readLine().hasPrefix("ready"))
    try spool.process()
    #expect(spool.names("records").count == 1 && spool.names("new") == [])
    #expect(history(spool).runs.isEmpty)
    kill(running.processID, SIGKILL)
    _ = try running.finish()
    try spool.process()
    #expect(history(spool).runs.map(\.ending) == [.killed])
  }

  @Test func aProgramThatReplacesItselfIsNoDeath() throws {
    let spool = try SpoolFixture()
    let running = try ChildProcess([builtProduct("EndingRunner"), "end", "exec", spool.path]).start()
    #expect(running.readLine().hasPrefix("ready"))
    // Until the other program has taken its place, the record is held.
    for _ in 0..<2_000 where spool.names("records").count == 1 {
      try spool.process()
      usleep(5_000)
    }
    #expect(history(spool).runs.map(\.ending) == [.replaced])
    #expect(spool.names("new") == [])
    _ = try running.finish()
  }

  // MARK: The machine

  /// A run that was killed, and what the machine says: another one than this.
  private func killed(
    _ machine: (CrashRecord) -> MachineState
  ) throws -> (report: [String: Any], runs: [RunHistory.Run]) {
    let spool = try SpoolFixture()
    try run("wait", sent: SIGKILL, in: spool)
    let name = try #require(spool.names("records").first)
    let record = try CrashRecord.read(bytes: try #require(contents(of: spool.path + "/records/" + name)))
    try spool.process(machine: machine(record))
    return (try spool.reports().first ?? [:], history(spool).runs)
  }

  private func ending(_ report: [String: Any]) -> [String: Any] { report["ending"] as? [String: Any] ?? [:] }

  @Test func anotherBootIsAMachineThatStopped() throws {
    let (report, runs) = try killed { _ in MachineState(bootID: [UInt8](1...16)) }
    #expect(runs.map(\.ending) == [.machineStopped])
    #expect(ending(report)["kind"] as? String == "machine_stopped")
  }

  @Test func anotherProcessWithTheNumberIsNoneOfOurs() throws {
    let (_, runs) = try killed { record in
      MachineState(bootID: record.bootID, startTicks: { _ in (record.startTicks ?? 0) + 1 })
    }
    #expect(runs.map(\.ending) == [.killed])
  }

  @Test func theSameProcessAliveWithoutItsRecordWasReplaced() throws {
    let (report, runs) = try killed { record in
      MachineState(bootID: record.bootID, startTicks: { $0 == record.process?.id ? record.startTicks : nil })
    }
    #expect(runs.map(\.ending) == [.replaced])
    #expect(report.isEmpty)
  }

  @Test func withoutEvidenceTheMachineMayHaveStopped() throws {
    let (report, runs) = try killed { _ in MachineState() }
    #expect(runs.map(\.ending) == [.killed])
    #expect((ending(report)["could_also_be"] as? [String])?.contains("a stop of the machine") == true)
    #expect((ending(report)["could_also_be"] as? [String])?.contains("out of memory") == true)
  }

  @Test func aCounterThatRoseIsWantOfMemory() throws {
    let (report, runs) = try killed { record in
      MachineState(bootID: record.bootID, memoryGroup: { ($0.inode, $0.kills + 1) })
    }
    try #require(!runs.isEmpty)
    // A machine without memory cgroups has no counter that could rise.
    let hasGroups = (ending(report)["could_also_be"] as? [String])?.contains("out of memory") != true
    #expect(runs.map(\.ending) == [hasGroups ? .outOfMemory : .killed])
  }

  @Test func aGroupThatWasMadeAnewIsNoEvidence() throws {
    let (report, runs) = try killed { record in
      MachineState(bootID: record.bootID, memoryGroup: { ($0.inode + 1, $0.kills + 1) })
    }
    #expect(runs.map(\.ending) == [.killed])
    #expect((ending(report)["could_also_be"] as? [String])?.contains("out of memory") == true)
  }

  /// A loss of power may leave any part of the record.
  @Test func aCutRecordStillHasAVerdict() throws {
    let spool = try SpoolFixture()
    try run("wait", sent: SIGKILL, in: spool)
    let name = try #require(spool.names("records").first)
    #expect(truncate("\(spool.path)/records/\(name)", 12_288) == 0)
    try spool.process(machine: MachineState(bootID: [UInt8](1...16)))
    #expect(history(spool).runs.map(\.ending) == [.machineStopped])
    let report = try #require(try spool.reports().first)
    let evidence = try #require(ending(report)["evidence"] as? [String])
    #expect(evidence.contains { $0.contains("cut") })
  }

  @Test func aRecordOfZerosIsCounted() throws {
    let spool = try SpoolFixture()
    let name = "0192a3b4c5d67e8f9a0b1c2d3e4f5a6b.crashrecord"
    try spool.put([UInt8](repeating: 0, count: 140_000), name: name)
    try spool.process()
    #expect(history(spool).runs.map(\.ending) == [.unknown])
    #expect(history(spool).runs.map(\.id) == ["0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b"])
  }

  // MARK: Out of memory, for real

  @Test(.enabled(if: MemoryGroup.canBeMade, "no memory cgroup can be made here"))
  func theKernelsKillIsTold() throws {
    let group = try MemoryGroup(bytes: 96 << 20)
    defer { group.remove() }
    let spool = try SpoolFixture()
    var child = ChildProcess([
      "/bin/sh", "-c", "echo $$ > \(group.path)/cgroup.procs && exec \"$0\" end memory \"$1\"",
      builtProduct("EndingRunner"), spool.path,
    ])
    child.input = Array("go\n".utf8)
    let outcome = try child.run()
    #expect(outcome.status == .signaled(SIGKILL), "\(outcome.text)\(outcome.errorText)")
    try spool.process()
    #expect(history(spool).runs.map(\.ending) == [.outOfMemory])
    let report = try #require(try spool.reports().first)
    #expect(report["type"] as? String == "OutOfMemory")
    let evidence = try #require(ending(report)["evidence"] as? [String])
    #expect(evidence.contains { $0.contains("The kernel killed 1 process of the memory cgroup") })
  }
}

/// A memory cgroup of the test's own, below the one that it is in.
private struct MemoryGroup {
  let path: String

  static var canBeMade: Bool {
    guard let group = try? MemoryGroup(bytes: 64 << 20) else { return false }
    group.remove()
    return true
  }

  struct Refused: Error {}

  init(bytes: Int) throws {
    let lines = String(decoding: contents(of: "/proc/self/cgroup") ?? [], as: UTF8.self).split(separator: "\n")
    let own = lines.map { $0.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false) }
    let first = own.first { $0.count == 3 && $0[1].split(separator: ",").contains("memory") }
    let unified = own.first { $0.count == 3 && $0[0] == "0" }
    guard let entry = first ?? unified else { throw Refused() }
    let root = first != nil ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup"
    path = "\(root)\(entry[2] == "/" ? "" : String(entry[2]))/ending-test-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    guard mkdir(path, 0o755) == 0 else { throw Refused() }
    let limit = first != nil ? "memory.limit_in_bytes" : "memory.max"
    guard let file = fopen("\(path)/\(limit)", "w") else {
      remove()
      throw Refused()
    }
    let written = fputs("\(bytes)", file)
    guard fclose(file) == 0, written >= 0 else {
      remove()
      throw Refused()
    }
  }

  func remove() {
    for _ in 0..<200 where rmdir(path) != 0 && errno == EBUSY { usleep(10_000) }
  }
}
