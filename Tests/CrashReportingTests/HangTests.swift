import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// Hangs of real processes: found, blamed on the frame that stays, and told once.
@Suite struct HangTests {
  struct Hang: CustomTestStringConvertible, Sendable {
    var how: String
    /// The function that stays.
    var blame: String
    /// False where it lasts until the process ends.
    var ends = true
    var testDescription: String { how }
  }

  static let hangs: [Hang] = [
    Hang(how: "main_queue", blame: "blockedByLock"), Hang(how: "main_thread", blame: "blockedByLock"),
    Hang(how: "queue", blame: "blockedByLock"), Hang(how: "deadlock", blame: "waitsForOther", ends: false),
    Hang(how: "actor", blame: "blockedByLock"), Hang(how: "loop", blame: "runsInCircles"),
    Hang(how: "pool", blame: "blockedByLock"),
  ]

  @Test(arguments: hangs) func isFoundOnce(_ hang: Hang) throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([builtProduct("EndingRunner"), "hang", hang.how, spool.path, "500"]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text)")
    let reports = try spool.reports().filter { $0["kind"] as? String == "hang" }
    #expect(reports.count == 1, "\(outcome.text)")
    let report = try #require(reports.first)
    #expect(report["fatal"] as? Bool == false)
    #expect(report["type"] as? String == "Hang")
    #expect(report["reason"] as? String == "hang")
    #expect((report["message"] as? String)?.contains("has not answered for") == true)
    let details = try #require(report["hang"] as? [String: Any])
    #expect(details["samples"] as? Int == 5)
    #expect(details["silent_ms"] as? Int ?? 0 >= 500)
    let threads = try #require(report["threads"] as? [[String: Any]])
    let thread = threads[try #require(report["thread"] as? Int)]
    let frames = try #require(thread["frames"] as? [[String: Any]])
    // Of the frames that every sample had, the first one of the application's.
    var left = try #require(thread["staying_frames"] as? Int)
    var first = frames.endIndex
    while first > 0, left > 0 {
      first -= 1
      // Callers that await do not count.
      if frames[first]["kind"] as? String != "async_resume" { left -= 1 }
    }
    let blamed = frames[first...].first { $0["in_app"] as? Bool == true }
    #expect((blamed?["function"] as? String)?.contains(hang.blame) == true, "\(frames.map { $0["function"] ?? "?" })")
    let remembered = RunHistory(text: contents(of: spool.path + "/history")).hangs
    #expect(remembered.map(\.reportID) == [report["id"] as? String])
    #expect(remembered.first?.watch == details["watch"] as? String)
    #expect(remembered.first?.milliseconds == (details["duration_ms"] as? Int).map(Int64.init))
    if hang.ends, hang.how != "pool" {
      #expect(outcome.text.contains("[hang_ended]"), "\(outcome.text)")
      // Longer than it was silent when it was found, and written down behind the report.
      #expect(try #require(details["duration_ms"] as? Int) > (details["silent_ms"] as? Int ?? 0))
    } else if !hang.ends {
      #expect(details["duration_ms"] == nil)
    }
  }

  /// People look at a process that is traced, and it stands still for as long as they do.
  @Test(.enabled(if: access(Self.strace, X_OK) == 0, "strace is not installed"))
  func aProcessThatIsTracedDoesNotHang() throws {
    let spool = try SpoolFixture()
    let outcome = try ChildProcess([
      Self.strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=none", builtProduct("EndingRunner"), "hang", "queue",
      spool.path, "500",
    ]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text)\(outcome.errorText)")
    #expect(outcome.text.hasSuffix("done\n") && !outcome.text.contains("[hang_found]"), "\(outcome.text)")
    #expect(spool.names("new") == [])
  }

  private static let strace = "/usr/bin/strace"

  /// Everything answers, and everything else wants the processors.
  @Test func aBusyMachineIsNoHang() throws {
    let spool = try SpoolFixture()
    // `Tests/soak` asks for more.
    let pings = ProcessInfo.processInfo.environment["HEALTHY_PINGS"].flatMap { Int($0) } ?? 300
    let outcome = try ChildProcess([builtProduct("EndingRunner"), "hang", "healthy", spool.path, "2000", "\(pings)"])
      .run()
    #expect(outcome.text.contains(" pings were answered"), "\(outcome.text)")
    #expect(outcome.status == .exited(0), "\(outcome.text)")
    #expect(!outcome.text.contains("[hang_found]"), "\(outcome.text)")
    #expect(spool.names("new") == [])
  }
}
