import CrashModel
import RecordForge
import Testing

/// Records of snapshots and hangs: of a run that lives on.
@Suite struct SnapshotRecordTests {
  private func record(_ kind: UInt32) throws -> CrashRecord {
    var forge = RecordForge(number: 5)
    forge.kind = kind
    forge.images = [.init(path: "/opt/orderd", address: 0x5000_0000, size: 0x10_0000, buildID: [1, 2, 3])]
    forge.otherThreads = [[0x5000_1000, 0x5000_2000], [0x5000_3000]]
    return try CrashRecord.read(bytes: forge.bytes())
  }

  @Test func aSnapshotIsNoCrash() throws {
    let record = try record(1)
    #expect(record.kind == .snapshot && !record.hasCrash)
    let report = record.report()
    #expect(report.kind == .snapshot && !report.fatal)
    #expect(report.runID == record.runIDText)
    #expect(report.timestamp != nil)
    #expect(report.threads.contains { $0.frames.count == 2 })
  }

  @Test func aHangSaysWhatDoesNotAnswer() throws {
    let report = try record(2).report()
    #expect(report.kind == .hang && report.type == "Hang")
    #expect(report.hang == HangInfo(watch: "main queue", silentMilliseconds: 0, samples: 5))
    #expect(report.message == "main queue has not answered for 0.0 s")
  }

  /// Reading one twice gives one report.
  @Test func theIdIsOfTheRecord() throws {
    #expect(try record(1).report().id == record(1).report().id)
  }

  @Test func anUnknownKindIsARunOfWhichNothingIsKnown() throws {
    let record = try record(77)
    #expect(record.kind == .unknown(77) && !record.hasCrash)
    #expect(record.report().kind == .termination)
  }
}
