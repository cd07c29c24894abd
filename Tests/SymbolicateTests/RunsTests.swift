import CrashModel
import Foundation
import TestSupport
import Testing

/// `symbolicate runs`: how the runs of a service ended.
@Suite struct RunsTests {
  private func spool(_ change: (inout RunHistory) -> Void) throws -> TemporaryDirectory {
    let folder = try TemporaryDirectory("runs")
    var history = RunHistory()
    change(&history)
    try write(history.text, to: "\(folder.path)/history")
    return folder
  }

  private func run(_ number: Int, _ release: String?, _ ending: Ending.Kind) -> RunHistory.Run {
    RunHistory.Run(
      id: "0192a3b4-c5d6-7e8f-9a0b-\(String(1 << 44 + number, radix: 16))", release: release, ending: ending,
      signal: ending == .terminated ? "SIGTERM" : nil,
      stackHash: ending == .crashed ? String(repeating: "a", count: 32) : nil)
  }

  @Test func countsByRelease() throws {
    let folder = try spool { history in
      for number in 0..<1_999 { history.add(run(number, "1.0.0", .clean)) }
      history.add(run(2_000, "1.0.0", .crashed))
      history.add(run(2_001, "1.1.0", .terminated))
      history.add(run(2_002, "1.1.0", .crashed))
      history.add(run(2_003, "1.1.0", .crashed))
    }
    let text = try SymbolicateTool.run("runs", folder.path)
    #expect(text.status == .exited(0) && text.errors.isEmpty, "\(text.errorText)")
    let rows = text.text.split(separator: "\n").map { $0.split(whereSeparator: { $0 == " " }).map(String.init) }
    // Rounded down: a release that crashed is never free of crashes.
    #expect(rows[1] == ["1.0.0", "2000", "1", "0", "0", "0", "0", "1999", "99.9", "%"])
    #expect(rows[2] == ["1.1.0", "3", "2", "0", "0", "1", "0", "0", "33.3", "%"])
    #expect(text.text.contains("the same crash 2 times in a row"))

    let lines = try SymbolicateTool.run("runs", "--format", "ndjson", folder.path).text.split(separator: "\n")
    let objects = try lines.map { try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:] }
    #expect(objects.count == 3)
    #expect(objects[0]["schema"] as? String == "release-runs/1")
    #expect(objects[1]["endings"] as? [String: Int] == ["crashed": 2, "terminated": 1])
    #expect(objects[2]["schema"] as? String == "symbolicate-summary/1" && objects[2]["runs"] as? Int == 2_003)
  }

  @Test func hangsAreListedWithWhatTheyLasted() throws {
    let run = "0192a3b4-c5d6-7e8f-9a0b-000000000001"
    let folder = try spool { history in
      history.add(self.run(1, "1.0.0", .killed))
      for number in 0..<70 {
        let id = "0192a3b4-c5d6-7e8f-9a0b-0000000001\(String(0x10 + number, radix: 16))"
        history.add(RunHistory.Hang(reportID: id, runID: run, release: "1.0.0", watch: "main queue"))
        // What is known later takes the place of what was known before.
        if number % 2 == 1 {
          history.add(
            RunHistory.Hang(
              reportID: id, runID: run, release: "1.0.0", watch: "main queue", milliseconds: Int64(7_000 + number)))
        }
      }
    }
    let text = try SymbolicateTool.run("runs", folder.path).text
    #expect(text.components(separatedBy: "main queue").count - 1 == 10 && text.contains("LASTED"), "\(text)")
    #expect(text.contains(" 7.0 s ") && text.contains(" no end "), "\(text)")
    let lines = try SymbolicateTool.run("runs", "--format", "ndjson", folder.path).text.split(separator: "\n")
    let objects = try lines.map { try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:] }
    let hangs = objects.filter { $0["schema"] as? String == "run-hang/1" }
    #expect(hangs.count == RunHistory.maximumHangs)
    #expect(hangs.last?["duration_ms"] as? Int == 7_069 && hangs.last?["watch"] as? String == "main queue")
    #expect(hangs.first?["duration_ms"] == nil && hangs.first?["run_id"] as? String == run)
  }

  @Test func whatIsNoSpoolIsSaid() throws {
    let empty = try TemporaryDirectory("runs")
    let none = try SymbolicateTool.run("runs", empty.path)
    #expect(none.status == .exited(2))
    #expect(none.errorText.contains("no run has been counted here"))
    try write(Array("something else\n".utf8), to: "\(empty.path)/history")
    #expect(try SymbolicateTool.run("runs", empty.path).errorText.contains("no history of runs"))
    #expect(try SymbolicateTool.run("runs").status == .exited(64))
    let folder = try spool { $0.add(run(1, nil, .killed)) }
    let both = try SymbolicateTool.run("runs", empty.path, folder.path)
    #expect(both.status == .exited(1) && both.text.contains("CRASH-FREE"))
  }
}
