import CrashModel
import CrashReporting
import Glibc
import RecordForge
import TestSupport
import Testing

@Suite struct RunHistoryTests {
  private func run(
    _ number: Int, _ ending: Ending.Kind, release: String? = "1.0.0", hash: String? = nil
  ) -> RunHistory.Run {
    RunHistory.Run(
      id: "0192a3b4-c5d6-7e8f-9a0b-\(String(1 << 44 + number, radix: 16))", release: release, ending: ending,
      stackHash: hash)
  }

  @Test func whatIsWrittenIsRead() {
    var history = RunHistory()
    for (number, name) in ["1.0.0", "2 beta", "-", "%", "ü\n", nil].enumerated() {
      history.add(run(number, .crashed, release: name, hash: String(repeating: "a", count: 32)))
      history.add(run(number + 100, .clean, release: name))
    }
    #expect(RunHistory(text: history.text) == history)
    #expect(history.releases.count == 6 && history.releases.allSatisfy { $0.crashFree == 0.5 })
  }

  @Test func aRunIsCountedOnce() {
    var history = RunHistory()
    let isNew = history.add(run(1, .clean))
    let isNewAgain = history.add(run(1, .killed))
    #expect(isNew && !isNewAgain)
    #expect(history.releases.map(\.runs) == [1])
  }

  @Test func itNeverGrowsBeyondItsBounds() {
    var history = RunHistory()
    for number in 0..<3_000 { history.add(run(number, .clean, release: "r\(number % 500)")) }
    #expect(history.runs.count == RunHistory.maximumRuns)
    #expect(history.releases.count == RunHistory.maximumReleases)
    #expect(history.releases.map(\.runs).reduce(0, +) == 3_000, "no run is forgotten by the numbers")
    #expect(history.text.count < RunHistory.maximumBytes)
    #expect(RunHistory(text: history.text) == history)
  }

  @Test func crashesInARow() {
    var history = RunHistory()
    #expect(history.sameCrashesInARow == 0)
    history.add(run(1, .crashed, hash: "b"))
    for number in 2...4 { history.add(run(number, .crashed, hash: "a")) }
    #expect(history.sameCrashesInARow == 3)
    history.add(run(5, .clean))
    #expect(history.sameCrashesInARow == 0)
  }

  /// Any bytes are a history, and none is too large.
  @Test func damagedFilesAreReadAsFarAsTheyGo() {
    var history = RunHistory()
    for number in 0..<20 { history.add(run(number, .killed)) }
    let text = history.text
    for length in 0...text.count { _ = RunHistory(text: Array(text[..<length])) }
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<2_000 {
      var damaged = text
      for _ in 0..<4 {
        damaged[Int.random(in: 0..<damaged.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      let read = RunHistory(text: damaged)
      #expect(read.runs.count <= 20)
    }
    let huge = Array("release x clean=99999999999999999999 crashed=-1 killed=7\n".utf8)
    #expect(RunHistory(text: huge).releases.first?.counts == [.killed: 7])
  }

  /// Crashes of one bug again and again: the service is told, and may start in another way.
  @Test func aServiceIsToldOfACrashLoop() throws {
    let spool = try SpoolFixture()
    func end(_ how: String) throws {
      var child = ChildProcess([builtProduct("EndingRunner"), "end", how, spool.path])
      child.environment["SWIFT_BACKTRACE"] = "enable=no"
      child.coreLimit = 0
      _ = try child.run()
    }
    try end("return")
    for _ in 0..<5 { try end("abort") }
    let answer = try ChildProcess([builtProduct("EndingRunner"), "previous", spool.path]).run().text
    let lines = answer.split(separator: "\n")
    // More than are stored: those that are counted only count here too.
    #expect(lines.first == "complete true in a row 5", "\(answer)")
    #expect(lines.dropFirst().map { $0.split(separator: " ")[0] } == Array(repeating: "crashed", count: 5) + ["clean"])
    #expect(spool.names("new").count == 3)
  }
}
