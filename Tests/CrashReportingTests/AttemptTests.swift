import CrashModel
import CrashReporting
import Glibc
import RecordForge
import TestSupport
import Testing

/// Records that end the process that works on them.
@Suite struct AttemptTests {
  @Test func aRecordThatEndsThreeProcessesIsPutAside() throws {
    let fixture = try SpoolFixture()
    var poison = forge(1)
    poison.messages = [(1, "Fatal error: poisoned")]
    try fixture.put(poison)
    // Behind it in the folder: it waits, and is not taken for the culprit.
    try fixture.put(forge(2, bug: 2))
    for attempt in 1...3 {
      let outcome = try ChildProcess([runner(), "poison", fixture.path]).run()
      #expect(outcome.status == .signaled(SIGABRT), "\(attempt): \(outcome.text)")
      #expect(fixture.names("quarantine") == [] && fixture.names("new") == [], "\(attempt)")
    }
    let outcome = try ChildProcess([runner(), "poison", fixture.path]).run()
    #expect(outcome.status == .exited(0), "\(outcome.text)")
    #expect(fixture.names("quarantine") == [poison.fileName, poison.fileName + ".reason.txt"])
    let reason = contents(of: "\(fixture.path)/quarantine/\(poison.fileName).reason.txt") ?? []
    #expect(String(decoding: reason, as: UTF8.self).contains("3 processes ended while they worked on it"))
    // The other record, and the three deaths, which are crashes like any other.
    let services = try fixture.reports().compactMap { $0["service"] as? String }
    #expect(services.filter { $0 == "orderd" }.count == 1 && services.filter { $0 == "runner" }.count == 3)
    #expect(contents(of: fixture.path + "/attempts")?.starts(with: Array("end\n".utf8)) == true)
  }

  /// A process that ended by something else than the record has not failed at it.
  @Test(arguments: [
    // A crash of the thread that worked; of another; the end of a program; a death that nothing is known of.
    (crashState: UInt32(2), runState: UInt32(1), thread: UInt32(4242), isFailure: true),
    (2, 1, 1, false), (0, 2, 1, false), (0, 3, 1, false), (0, 1, 1, true),
  ]) func onlyItsOwnDeathsCount(_ end: (crashState: UInt32, runState: UInt32, thread: UInt32, isFailure: Bool)) throws {
    let fixture = try SpoolFixture()
    let record = forge(1)
    try fixture.put(record)
    var dead = forge(7, bug: 7)
    dead.crashState = end.crashState
    dead.runState = end.runState
    try fixture.put(dead)
    let text = "failed \(record.fileName) 2\nworking \(record.fileName) \(dead.fileName) \(end.thread)\nend\n"
    try write(Array(text.utf8), to: fixture.path + "/attempts")
    try fixture.process()
    #expect(fixture.names("quarantine").contains(record.fileName) == end.isFailure)
    #expect(fixture.names("records") == [])
  }

  /// Anything may stand in the file.
  @Test(arguments: [
    "", "end", "working", "working a b c d e f", "failed x 99999999999999999999\nfailed x -1\n",
    "working ../../etc/passwd ../../etc/passwd 1\nend\n", "\u{0}\u{0}\n\n\n failed failed failed\n",
  ]) func damagedFile(_ text: String) throws {
    let fixture = try SpoolFixture()
    try fixture.put(forge(1))
    try write(Array(text.utf8), to: fixture.path + "/attempts")
    #expect(try fixture.process().map(\.code) == [.reportStored])
    #expect(fixture.names("new").count == 1 && fixture.names("records") == [])
  }
}
