import CrashModel
import CrashReporting
import Glibc
import RecordForge
import TestSupport
import Testing

private let strace = access("/usr/bin/strace", X_OK) == 0

@Suite struct KillTests {
  /// Ends the processing at its first, second, third … system call that touches files, and lets the next start finish.
  @Test(.enabled(if: strace, "strace is not installed"), arguments: ["openat", "write", "fsync", "renameat,unlinkat"])
  func killedAnywhereNothingIsLostOrDoubled(calls: String) throws {
    let start: Int64 = 1_790_000_000
    var finished = false
    var kills = 0
    for number in 1...400 where !finished {
      let fixture = try SpoolFixture()
      // A bug that has used up its reports and has two counted crashes; then one that will carry the count, one that is
      // counted, another bug, and something unreadable.
      for index in 0..<5 { try fixture.put(forge(UInt64(index), at: start + Int64(index))) }
      try fixture.process()
      try fixture.put(forge(100, at: start + 200_000))
      try fixture.put(forge(101, at: start + 200_001))
      try fixture.put(forge(102, bug: 7, at: start + 200_002))
      try fixture.put([1, 2, 3], name: "bad.crashrecord")
      for index in 0..<2 { try fixture.put(forge(UInt64(20 + index), at: start + 30 + Int64(index))) }
      let outcome = try ChildProcess([
        "/usr/bin/strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e",
        "inject=\(calls):signal=SIGKILL:when=\(number)", runner(), "process", fixture.path,
      ]).run()
      if outcome.status == .exited(0) { finished = true } else { kills += 1 }
      for name in fixture.names("new") where !name.hasPrefix(".") {
        #expect(contents(of: "\(fixture.path)/new/\(name)")?.last == UInt8(ascii: "}"), "partial file after \(number)")
      }
      try fixture.process()
      try fixture.put(forge(200, at: start + 500_000))
      try fixture.process()
      let reports = try fixture.reports()
      let ids = reports.compactMap { $0["id"] as? String }
      #expect(ids.count == 7 && Set(ids).count == 7, "call \(number)")
      #expect(reports.reduce(0) { $0 + ($1["suppressed_count"] as? Int ?? 0) } == 4, "call \(number)")
      #expect(fixture.names("records") == [])
      #expect(fixture.names("new").allSatisfy { !$0.hasPrefix(".") })
      #expect(fixture.names("quarantine") == ["bad.crashrecord", "bad.crashrecord.reason.txt"])
    }
    #expect(finished && kills > 5)
  }

  /// The same while a report with a count makes room for another bug's.
  @Test(.enabled(if: strace, "strace is not installed"), arguments: ["write", "fsync", "renameat,unlinkat"])
  func killedWhileMakingRoomNoCountIsLost(calls: String) throws {
    let start: Int64 = 1_790_000_000
    var limits = SpoolLimits()
    limits.reports = 1
    var finished = false
    for number in 1...100 where !finished {
      let fixture = try SpoolFixture()
      for index in 0..<5 { try fixture.put(forge(UInt64(index), bug: 1, at: start + Int64(index))) }
      try fixture.process(limits: limits)
      try fixture.put(forge(10, bug: 1, at: start + 300_000))
      try fixture.process(limits: limits)
      try fixture.put(forge(11, bug: 2, at: start + 300_001))
      let outcome = try ChildProcess([
        "/usr/bin/strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e",
        "inject=\(calls):signal=SIGKILL:when=\(number)", runner(), "process", fixture.path, "1",
      ]).run()
      finished = outcome.status == .exited(0)
      try fixture.process(limits: limits)
      try fixture.put(forge(12, bug: 1, at: start + 600_000))
      try fixture.process(limits: limits)
      #expect(try fixture.reports().map { $0["suppressed_count"] as? Int } == [2], "call \(number)")
    }
    #expect(finished)
  }

  @Test(.enabled(if: strace, "strace is not installed"), arguments: ["ENOSPC", "EIO", "EROFS", "EACCES"])
  func failingDiskLosesNothing(error: String) throws {
    for call in ["write", "fsync", "renameat", "unlinkat"] {
      let fixture = try SpoolFixture()
      try fixture.put(forge(1))
      try fixture.put(forge(2, bug: 2))
      let outcome = try ChildProcess([
        "/usr/bin/strace", "-f", "-qq", "-o", "/dev/null", "-P", fixture.path, "-P", fixture.path + "/new", "-P",
        fixture.path + "/records", "-e", "trace=\(call)", "-e", "inject=\(call):error=\(error):when=1+", runner(),
        "process", fixture.path,
      ]).run()
      #expect(outcome.status == .exited(0), "\(call)")
      try fixture.process()
      #expect(fixture.names("new").count == 2 && fixture.names("records") == [], "\(call)")
    }
  }
}
