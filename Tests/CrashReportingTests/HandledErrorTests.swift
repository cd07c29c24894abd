import Foundation
import TestSupport
import Testing

/// `CrashReporter.capture(_:tags:)`, in a process of its own.
@Suite struct HandledErrorTests {
  @Test func oneErrorIsOneReport() throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([runner(), "errors", spool.path, "1"]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text)\(outcome.errorText)")
    #expect(outcome.errorText.contains("a handled error was not reported: nothing was started"))
    let reports = try spool.reports()
    #expect(reports.count == 1)
    let report = try #require(reports.first)
    #expect(report["kind"] as? String == "exception")
    #expect(report["fatal"] as? Bool == false)
    #expect(report["type"] as? String == "SpoolRunner.SyncFailure")
    #expect(report["reason"] as? String == "error:SpoolRunner.SyncFailure")
    #expect((report["message"] as? String)?.contains("[redacted]") == true)
    #expect((report["message"] as? String)?.contains("example.com") == false)
    #expect(report["signal"] == nil)
    #expect(report["tags"] as? [String: String] == ["job": "sync", "region": "eu-west"])
    #expect(report["stack_hash"] is String)
    let threads = try #require(report["threads"] as? [[String: Any]])
    let frames = try #require(threads.first?["frames"] as? [[String: Any]])
    // The caller of `capture` comes first; the reporter itself is not in the stack.
    #expect((frames.first?["function"] as? String)?.contains("synchronize()") == true, "\(frames.prefix(3))")
    #expect(frames.last?["function"] as? String == "_start")
    // A later start finds nothing to do: the run's own record held no crash.
    try spool.process()
    #expect(try spool.reports().count == 1)
  }

  /// 3,200 errors from 32 threads at once: ten are reported or counted, and no more; each with the 50 tags that there may be.
  @Test func theRateHoldsUnderManyThreads() throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([builtProduct("EndingRunner"), "errors", spool.path]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text.suffix(2000))")
    let reported = outcome.text.components(separatedBy: "an error was reported").count - 1
    let counted = outcome.text.components(separatedBy: "an error was counted").count - 1
    #expect(reported + counted == 10 && reported == 3)
    for report in try spool.reports() {
      #expect((report["tags"] as? [String: String])?.count == 50)
    }
  }

  /// A loop that fails makes no more reports than the limits allow, and what is left out is counted.
  @Test func manyErrorsAreLimited() throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([runner(), "errors", spool.path, "1000"]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text.suffix(2000))")
    #expect(try spool.reports().count == 3)
    #expect(outcome.text.components(separatedBy: "an error was counted, not stored").count - 1 == 7)
  }

  /// The last thing that a program does is the one of interest: its exit waits for the report.
  @Test func anErrorBeforeTheExitIsReported() throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([builtProduct("EndingRunner"), "error", "exit", spool.path]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text)")
    let report = try #require(try spool.reports().first)
    #expect(report["kind"] as? String == "exception" && report["type"] as? String == "EndingRunner.LoadFailure")
  }

  /// Nobody can wait then: the report of the death says which error there was.
  @Test func anErrorBeforeTheKillIsInTheLastReport() throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([builtProduct("EndingRunner"), "error", "kill", spool.path]).run()
    #expect(outcome.status == .signaled(SIGKILL))
    try spool.process()
    let report = try #require(try spool.reports().first { $0["kind"] as? String == "termination" })
    let breadcrumbs = try #require(report["breadcrumbs"] as? [[String: Any]])
    #expect(breadcrumbs.last?["category"] as? String == "error")
    #expect(breadcrumbs.last?["message"] as? String == "EndingRunner.LoadFailure")
  }
}
