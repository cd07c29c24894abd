import Foundation
import Glibc
import TestSupport
import Testing

/// Snapshots of processes that live on, and what their threads see of it.
@Suite struct SnapshotTests {
  /// `Tests/soak` asks for more.
  private let quits = ProcessInfo.processInfo.environment["SNAPSHOT_QUITS"].flatMap { Int($0) } ?? 20

  private func expectUndisturbed(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("waited ") }
    #expect(lines.count == 19, "\(text.suffix(2_000))", sourceLocation: sourceLocation)
    for line in lines { #expect(line.hasSuffix("disturbed 0"), sourceLocation: sourceLocation) }
  }

  private func isInPoll(_ process: pid_t) -> Bool {
    #if arch(arm64)
      let call = "73 "  // ppoll
    #else
      let call = "7 "
    #endif
    return String(decoding: contents(of: "/proc/\(process)/syscall") ?? [], as: UTF8.self).hasPrefix(call)
  }

  @Test func threadsGoOnAsIfNothingHadHappened() throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([builtProduct("EndingRunner"), "snapshot", spool.path, "40"]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text.suffix(2_000))")
    #expect(!outcome.text.contains("\nno snapshot\n"))
    expectUndisturbed(outcome.text)
    let reports = try spool.reports()
    #expect(reports.count == 10, "the oldest ones go")
    #expect(spool.names("records").count == 1, "the run's own")
    for report in reports {
      #expect(report["kind"] as? String == "snapshot")
      #expect(report["fatal"] as? Bool == false)
      #expect(report["run_id"] is String)
      let threads = try #require(report["threads"] as? [[String: Any]])
      // The main thread, and those that wait.
      #expect(threads.count >= 12)
      let names = threads.flatMap { thread in
        (thread["frames"] as? [[String: Any]] ?? []).compactMap { $0["function"] as? String }
      }
      for function in ["poll", "captureSnapshot", "usleep"] {
        #expect(names.contains { $0.contains(function) }, "\(function)")
      }
    }
  }

  @Test func quitAsksForASnapshot() throws {
    let spool = try SpoolFixture()
    let running = try ChildProcess([builtProduct("EndingRunner"), "quit", spool.path]).start()
    #expect(running.readLine().hasPrefix("ready"))
    let count = quits
    for _ in 0..<count {
      let before = spool.names("new")
      #expect(kill(running.processID, SIGQUIT) == 0)
      // One after the other: a SIGQUIT in the middle of a snapshot may be handed to another thread than was woken for it.
      for _ in 0..<3_000 where spool.names("new") == before { usleep(10_000) }
    }
    try running.give("\n")
    let outcome = try running.finish()
    #expect(outcome.status == .exited(0), "\(outcome.text.suffix(2_000))")
    expectUndisturbed(outcome.text)
    #expect(try spool.reports().allSatisfy { $0["kind"] as? String == "snapshot" })
    #expect(spool.names("new").count == min(count, 10))
  }

  /// SIGQUITs that come while a snapshot is being taken: the kernel may wake one thread for such a signal and hand it to
  /// another.
  @Test func quitsThatFallIntoASnapshotDisturbNobody() throws {
    let spool = try SpoolFixture()
    let running = try ChildProcess([builtProduct("EndingRunner"), "quit", spool.path]).start()
    #expect(running.readLine().hasPrefix("ready"))
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<quits {
      #expect(kill(running.processID, SIGQUIT) == 0)
      usleep(UInt32.random(in: 0..<20_000, using: &generator))
    }
    try running.give("\n")
    let outcome = try running.finish()
    #expect(outcome.status == .exited(0), "\(outcome.text.suffix(2_000))")
    expectUndisturbed(outcome.text)
    #expect(spool.names("new").count > 1)
  }

  /// A signal that the host waits for is not lost where it comes while the threads stand still: the call that waits ends.
  @Test func signalsOfTheHostInterruptItsCalls() throws {
    let spool = try SpoolFixture()
    let running = try ChildProcess([builtProduct("EndingRunner"), "signals", spool.path, "\(quits)"]).start()
    var generator = SeededGenerator(seed: 7)
    var threads = 0
    for number in 1...quits {
      try #require(running.readLine() == "waiting \(number)")
      // Once it waits it does not come to look at its flag again, whatever it stands still for meanwhile.
      for _ in 0..<20_000 where !isInPoll(running.processID) { usleep(100) }
      usleep(UInt32.random(in: 0..<3_000, using: &generator))
      let tasks = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(running.processID)/task")
      threads = max(threads, tasks?.count ?? 0)
      #expect(kill(running.processID, SIGUSR1) == 0)
    }
    #expect(running.readLine() == "done")
    // However fast snapshots are asked for, one thread makes the reports.
    #expect(threads < 12)
    let outcome = try running.finish()
    #expect(outcome.status == .exited(0), "\(outcome.text.suffix(2_000))")
  }
}
