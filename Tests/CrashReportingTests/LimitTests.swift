import CrashModel
import CrashReporting
import RecordForge
import Testing

@Suite struct LimitTests {
  private let start: Int64 = 1_790_000_000
  private let day: Int64 = 86_400

  @Test func thousandCrashesOfOneBug() throws {
    let fixture = try SpoolFixture()
    for number in 0..<1_000 { try fixture.put(forge(UInt64(number), at: start + Int64(number))) }
    try fixture.process()
    #expect(fixture.names("records") == [])
    #expect(fixture.names("new").count == 3)
    #expect(try fixture.reports().allSatisfy { $0["suppressed_count"] == nil })
    // The next one that is stored says how many were not; the one behind it does not say it again.
    try fixture.put(forge(5_000, at: start + 3 * day))
    try fixture.put(forge(5_001, at: start + 3 * day + 60))
    try fixture.process()
    let counts = try fixture.reports().map { $0["suppressed_count"] as? Int }
    #expect(counts == [nil, nil, nil, 997, nil])
  }

  @Test func thousandRestartsOneByOne() throws {
    let fixture = try SpoolFixture()
    // A restart a minute: 1,000 of them are less than a day.
    for number in 0..<1_000 {
      try fixture.put(forge(UInt64(number), at: start + 60 * Int64(number)))
      try fixture.process()
      if number.isMultiple(of: 250) { #expect(fixture.names("new").count <= 3) }
    }
    #expect(fixture.names("new").count == 3 && fixture.names("records") == [])
    try fixture.put(forge(2_000, at: start + 2 * day))
    try fixture.process()
    #expect(try fixture.reports().last?["suppressed_count"] as? Int == 997)
  }

  @Test func twentyBugsStayInsideTheBounds() throws {
    let fixture = try SpoolFixture()
    for number in 0..<1_000 {
      try fixture.put(forge(UInt64(number), bug: UInt64(number % 20), at: start + Int64(number)))
    }
    let diagnostics = try fixture.process()
    #expect(diagnostics.filter { $0.code == .reportSuppressed }.count == 1_000 - 60)
    let names = fixture.names("new")
    #expect(names.count == 50)
    let hashes = Dictionary(grouping: names) { $0.split(separator: ".")[1] }
    // Repeats went, no bug did.
    #expect(hashes.count == 20 && hashes.values.allSatisfy { $0.count >= 2 })
    for bug in 0..<20 { try fixture.put(forge(3_000 + UInt64(bug), bug: UInt64(bug), at: start + 2 * day)) }
    try fixture.process()
    let counts = try fixture.reports().compactMap { $0["suppressed_count"] as? Int }
    #expect(counts == Array(repeating: 47, count: 20))
    #expect(fixture.names("new").count == 50)
  }

  @Test func aNewBugDisplacesRepeatsAndNeverItself() throws {
    let fixture = try SpoolFixture()
    var limits = SpoolLimits()
    limits.reports = 4
    for number in 0..<3 { try fixture.put(forge(UInt64(number), bug: 1, at: start + Int64(number))) }
    try fixture.put(forge(10, bug: 2, at: start - 100))
    try fixture.process(limits: limits)
    try fixture.put(forge(11, bug: 3, at: start + 100))
    try fixture.process(limits: limits)
    let bugs = Dictionary(grouping: fixture.names("new")) { $0.split(separator: ".")[1] }
    #expect(bugs.count == 3 && fixture.names("new").count == 4)
    limits.reports = 1
    try fixture.put(forge(12, bug: 4, at: start - 5_000))
    let last = try CrashRecord.read(bytes: forge(12, bug: 4, at: start - 5_000).bytes()).report().id
    try fixture.process(limits: limits)
    #expect(fixture.names("new").map { String($0.prefix(36)) } == [last])
  }

  @Test func bytesAreBounded() throws {
    let fixture = try SpoolFixture()
    var limits = SpoolLimits()
    try fixture.put(forge(1, bug: 1, at: start))
    try fixture.process(limits: limits)
    let size = try #require(fixture.reportBytes().first)
    limits.bytes = size * 5 + size / 2
    for bug in 2...30 { try fixture.put(forge(UInt64(bug), bug: UInt64(bug), at: start + Int64(bug))) }
    try fixture.process(limits: limits)
    #expect(fixture.reportBytes().reduce(0, +) <= limits.bytes)
    #expect(fixture.names("new").count >= 4)
  }

  @Test func ageRemovesAndClockJumpsDoNot() throws {
    let fixture = try SpoolFixture()
    try fixture.put(forge(1))
    let now = SpoolClock.now()
    try fixture.process(clock: now)
    func at(_ days: Int64, boot: Int64) -> SpoolClock {
      SpoolClock(wall: now.wall + days * day, boot: now.boot + boot * day, bootID: now.bootID)
    }
    // Ten years ahead within a second of the same boot, and back, and before 1970.
    for jump: Int64 in [3_650, 0, -30_000, 3_650, 40] {
      try fixture.process(clock: at(jump, boot: 0))
      #expect(fixture.names("new").count == 1, "\(jump) days")
    }
    try fixture.process(clock: at(0, boot: 0))
    // Time that really passed.
    try fixture.process(clock: at(29, boot: 29))
    #expect(fixture.names("new").count == 1)
    let diagnostics = try fixture.process(clock: at(31, boot: 31))
    #expect(fixture.names("new") == [] && diagnostics.map(\.code) == [.reportRemoved])
  }

  @Test func deliveredReportsCountToo() throws {
    let fixture = try SpoolFixture()
    let clock = SpoolClock(wall: start + 120, boot: 1_000, bootID: "boot")
    for number in 0..<3 { try fixture.put(forge(UInt64(number), at: start + Int64(number))) }
    try fixture.process(clock: clock)
    for name in fixture.names("new") { fixture.remove("new/" + name) }
    try fixture.put(forge(4, at: start + 60))
    #expect(try fixture.process(clock: clock).map(\.code) == [.reportSuppressed])
    #expect(fixture.names("new") == [])
  }

  /// A bug with two counted crashes, whose report that says so is the only one in the spool.
  private func carrying(_ limits: SpoolLimits, clock: SpoolClock = .now()) throws -> SpoolFixture {
    let fixture = try SpoolFixture()
    for number in 0..<5 { try fixture.put(forge(UInt64(number), bug: 1, at: start + Int64(number))) }
    try fixture.process(limits: limits, clock: clock)
    try fixture.put(forge(10, bug: 1, at: start + 3 * day))
    try fixture.process(limits: limits, clock: clock)
    #expect(try fixture.reports().map { $0["suppressed_count"] as? Int } == [2])
    return fixture
  }

  @Test func aReportThatGoesForRoomLeavesItsCount() throws {
    var limits = SpoolLimits()
    limits.reports = 1
    let fixture = try carrying(limits)
    try fixture.put(forge(11, bug: 2, at: start + 3 * day))
    try fixture.process(limits: limits)
    #expect(try fixture.reports().map { $0["suppressed_count"] as? Int } == [nil])
    // Whatever comes in between, the next one of its bug says it, and only that one.
    try fixture.put(forge(12, bug: 1, at: start + 6 * day))
    try fixture.process(limits: limits)
    #expect(try fixture.reports().map { $0["suppressed_count"] as? Int } == [2])
    // The same bug's next report displaces it, and takes the count on.
    try fixture.put(forge(13, bug: 1, at: start + 9 * day))
    try fixture.process(limits: limits)
    #expect(try fixture.reports().map { $0["suppressed_count"] as? Int } == [2])
  }

  @Test func aReportThatIsTooOldLeavesItsCount() throws {
    var limits = SpoolLimits()
    limits.reports = 1
    let now = SpoolClock.now()
    let fixture = try carrying(limits, clock: now)
    let later = SpoolClock(wall: now.wall + 31 * day, boot: now.boot + 31 * day, bootID: now.bootID)
    #expect(try fixture.process(limits: limits, clock: later).map(\.code) == [.reportRemoved])
    #expect(fixture.names("new") == [])
    try fixture.put(forge(12, bug: 1, at: start + 60 * day))
    try fixture.process(limits: limits, clock: later)
    #expect(try fixture.reports().map { $0["suppressed_count"] as? Int } == [2])
  }

  @Test func aDeliveredReportTookItsCountAlong() throws {
    var limits = SpoolLimits()
    limits.reports = 1
    let fixture = try carrying(limits)
    for name in fixture.names("new") { fixture.remove("new/" + name) }
    try fixture.put(forge(12, bug: 1, at: start + 6 * day))
    try fixture.process(limits: limits)
    #expect(try fixture.reports().map { $0["suppressed_count"] as? Int } == [nil])
  }
}
