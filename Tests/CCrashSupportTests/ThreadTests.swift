import CrashModel
import Foundation
import TestSupport
import Testing

/// The threads that did not crash.
@Suite struct ThreadTests {
  @Test func fiveHundred() throws {
    let captured = try crash("threads500")
    let others = captured.report.threads.filter { !$0.crashed }
    #expect(others.count == 500)
    #expect(others.allSatisfy { $0.status == .captured })
    #expect(captured.report.threads.first?.crashed == true)
    // All wait in one place: every one has the same stack, down to where threads begin.
    let stacks = Set(others.map { $0.frames.compactMap(\.captured).map(\.address) })
    #expect(stacks.count == 1)
    let names = try captured.names(of: try #require(others.last))
    #expect(names.contains("fx_parked_mark") && names.contains("fx_parked_thread"))
    #expect(Set(others.compactMap(\.id)).count == 500)
  }

  /// The room is for 1,024; what finds none is counted.
  @Test func moreThanThereIsRoomFor() throws {
    let captured = try crash("host_threads_many")
    #expect(captured.report.threads.count == 1025)
    #expect(captured.report.notes.contains { $0.hasPrefix("76 further threads") })
    #expect(captured.report.threads.dropFirst().allSatisfy { $0.status == .captured && $0.frames.count > 2 })
  }

  @Test func threadsThatBlockEverySignalOrNeverSleep() throws {
    let captured = try crash("host_threads_blocked")
    let others = captured.report.threads.filter { !$0.crashed }
    #expect(others.count == 6)
    #expect(others.allSatisfy { $0.status == .captured })
    let names = try others.map { try captured.names(of: $0) }
    #expect(names.filter { $0.contains("blocks_everything") }.count == 4)
    #expect(names.filter { $0.contains("spins") }.count == 2)
    #expect(others.allSatisfy { !$0.registers.isEmpty })
  }

  /// A thread that blocks even libc's signals, by the system call itself, is listed, and costs a fraction of a second.
  @Test func threadsThatDoNotAnswer() throws {
    let captured = try crash("host_threads_silent")
    let others = captured.report.threads.filter { !$0.crashed }
    #expect(others.count == 4)
    #expect(others.filter { $0.status == .noAnswer && $0.frames.isEmpty }.count == 2)
    #expect(others.filter { $0.status == .captured }.count == 2)
  }

  @Test func threadsThatEndedAreForgotten() throws {
    let captured = try crash("host_threads_come_and_go")
    #expect(captured.report.threads.count == 4)
    #expect(!captured.report.notes.contains { $0.contains("further threads") })
  }

  /// The host's handler recovers 64 times beside running threads: they go on each time.
  @Test func threadsGoOnWhenTheHostRecovers() throws {
    let captured = try crash("host_maps_beside_threads")
    let others = captured.report.threads.filter { !$0.crashed }
    #expect(others.count == 2)
    #expect(others.allSatisfy { $0.status == .captured && $0.name == "ticker" })
  }

  private func crash(_ fault: String) throws -> CapturedRecord {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("threads")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess([host.c, fault], directory: run.path)
    child.environment = ["FX_DB": "\(run.path)/spool"]
    #expect(try child.run().status == .signaled(SIGSEGV))
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.record.isComplete || captured.report.threads.contains { $0.status == .noAnswer })
    return captured
  }
}
