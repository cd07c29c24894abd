import Foundation
import TestSupport
import Testing

/// What the sample service reports without crashing.
@Suite struct LivingServiceTests {
  private func reports(_ request: String, _ arguments: [String] = []) throws -> [[String: Any]] {
    let run = try TemporaryDirectory("living")
    let outcome = try ChildProcess(
      [Sample.service("debug-dynamic"), "--spool", run.path + "/spool", "--release", "1.0.0"] + arguments + [request]
    ).run()
    #expect(outcome.status == .exited(0), "\(outcome.text)\(outcome.errorText)")
    return try run.names(in: "spool/new").map { name in
      let bytes = contents(of: "\(run.path)/spool/new/\(name)") ?? []
      return try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] ?? [:]
    }
  }

  @Test func aHandledErrorIsReported() throws {
    let report = try #require(try reports("POST /sync").first)
    #expect(report["kind"] as? String == "exception")
    #expect(report["type"] as? String == "orderd.SyncError")
    #expect(report["operation"] as? String == "POST /sync")
    // The call of an actor's: whoever awaits it is part of the stack.
    let threads = report["threads"] as? [[String: Any]] ?? []
    let frames = threads.first?["frames"] as? [[String: Any]] ?? []
    #expect((frames.first?["function"] as? String)?.contains("Ledgers.synchronize()") == true)
    #expect(frames.contains { $0["kind"] as? String == "async_resume" }, "\(frames.map { $0["function"] ?? "?" })")
  }

  @Test func aSnapshotIsTaken() throws {
    let report = try #require(try reports("GET /threads").first)
    #expect(report["kind"] as? String == "snapshot" && report["fatal"] as? Bool == false)
  }

  @Test func aPoolThatIsUsedUpIsAHang() throws {
    let reports = try reports("GET /reports", ["--hang-limit", "500"])
    #expect(reports.count == 1)
    let report = try #require(reports.first)
    #expect(report["kind"] as? String == "hang")
    #expect((report["stack"] as? String)?.contains("waitForPrinter") == true, "\(report["stack"] ?? "")")
  }
}
