import CrashModel
import CrashReporting
import Glibc
import RecordForge
import TestSupport
import Testing

@Suite struct NextStartTests {
  @Test func crashBecomesOneRedactedReport() throws {
    let fixture = try SpoolFixture()
    var record = forge(1)
    let secret = "alice" + "@" + "example.com"
    let token = "gh" + "p_" + String(repeating: "aB3d", count: 9)
    record.messages = [(1, "Fatal error: no order for \(secret) with \(token)")]
    record.breadcrumbs = ["sent \(secret)"]
    record.tags = [("mail", secret), ("password", "hunter2")]
    record.operation = "GET /reset?token=\(token)"
    try fixture.put(record)
    let diagnostics = try fixture.process()
    #expect(diagnostics.map(\.code) == [.reportStored])
    #expect(fixture.names("records") == [] && fixture.names("quarantine") == [])
    let names = fixture.names("new")
    try #require(names.count == 1)
    let id = try CrashRecord.read(bytes: record.bytes()).report().id
    #expect(names[0].hasPrefix(id + "."))
    let bytes = try #require(contents(of: "\(fixture.path)/new/\(names[0])"))
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(!text.contains(secret) && !text.contains(token) && !text.contains("hunter2"))
    let report = try #require(try fixture.reports().first)
    #expect(report["schema"] as? String == "crash-report/1")
    #expect(report["type"] as? String == "SIGSEGV" && report["reason"] as? String == "fatal")
    #expect((report["message"] as? String)?.contains("[redacted]") == true)
    let hash = try #require(report["stack_hash"] as? String)
    #expect(names[0] == "\(id).\(hash).json")
    #expect(report["stack_hash_quality"] as? String == "offsets")
    var status = stat()
    #expect(stat("\(fixture.path)/new/\(names[0])", &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test func namesComeFromTheSameBinary() throws {
    // The C library of this process stands for the binary that crashed.
    let address = try #require(dlsym(nil, "qsort"))
    let maps = String(decoding: try #require(contents(of: "/proc/self/maps")), as: UTF8.self)
    let words = try #require(maps.split(separator: "\n").first { $0.hasSuffix("/libc.so.6") }).split(separator: " ")
    let path = String(try #require(words.last))
    let base = try #require(Hex.value(words[0].prefix { $0 != "-" }))
    let buildID = try #require(try buildID(of: path))
    let fixture = try SpoolFixture()
    var record = forge(1)
    record.images.append(.init(path: path, address: base, size: 0x20_0000, buildID: buildID.bytes))
    record.frames = [UInt64(UInt(bitPattern: address)) + 4, 0x5555_0000_9000]
    try fixture.put(record)
    record = forge(2)
    record.images.append(.init(path: path, address: base, size: 0x20_0000, buildID: Array(repeating: 9, count: 20)))
    record.frames = [UInt64(UInt(bitPattern: address)) + 4, 0x5555_0000_9000]
    try fixture.put(record)
    try fixture.process()
    let reports = try fixture.reports()
    try #require(reports.count == 2)
    func frame(_ report: [String: Any]) -> [String: Any]? {
      ((report["threads"] as? [[String: Any]])?.first?["frames"] as? [[String: Any]])?.first
    }
    #expect((frame(reports[0])?["function"] as? String)?.hasPrefix("qsort") == true)
    #expect(frame(reports[0])?["status"] as? String == "resolved")
    // Another build at the same path: not used, and said so.
    #expect(frame(reports[1])?["function"] == nil)
    #expect(frame(reports[1])?["status"] as? String == "build_id_mismatch")
    #expect((reports[1]["notes"] as? [String])?.contains { $0.contains("another build") } == true)
  }

  @Test func livingRunIsLeftAlone() throws {
    let fixture = try SpoolFixture()
    try fixture.put(forge(1))
    let path = "\(fixture.path)/records/\(forge(1).fileName)"
    let holder = try ChildProcess([runner(), "lock", path]).start()
    #expect(holder.readLine() == "locked")
    #expect(try fixture.process() == [])
    #expect(fixture.names("records").count == 1 && fixture.names("new") == [])
    _ = try holder.finish()
    #expect(try fixture.process().map(\.code) == [.reportStored])
    #expect(fixture.names("records") == [] && fixture.names("new").count == 1)
  }

  @Test func ownRecordIsLeftAlone() throws {
    let fixture = try SpoolFixture()
    let own = forge(1)
    try fixture.put(own)
    NextStart.run(spool: try Spool(path: fixture.path), ownRunID: own.runID) { Issue.record("\($0)") }
    #expect(fixture.names("records") == [own.fileName])
  }

  @Test func runsWithoutACrashAreRemovedAndToldApart() throws {
    let fixture = try SpoolFixture()
    for (number, state) in [(UInt64(1), UInt32(1)), (2, 2), (3, 3), (4, 0)] {
      var record = forge(number)
      record.crashState = 0
      record.runState = state
      try fixture.put(record)
    }
    let diagnostics = try fixture.process()
    #expect(fixture.names("records") == [])
    #expect(diagnostics.map(\.code) == [.runEnded, .runEnded])
    #expect(diagnostics.contains { $0.message.contains("The process was running and left no other sign") })
    let endings = try fixture.reports().map { ($0["ending"] as? [String: Any])?["kind"] as? String }
    #expect(Set(endings) == ["killed", "start_failed"])
  }

  @Test func hostileFilesGoToQuarantineAndTheRestIsUsed() throws {
    let fixture = try SpoolFixture()
    let records = fixture.path + "/records/"
    let outside = fixture.directory.path + "/outside"
    try write(forge(9).bytes(), to: outside)
    #expect(symlink(outside, records + "link.crashrecord") == 0)
    #expect(mkfifo(records + "fifo.crashrecord", 0o600) == 0)
    #expect(mkdir(records + "folder.crashrecord", 0o700) == 0)
    try fixture.put([UInt8](repeating: 0, count: 5_000) + [1], name: "zeros.crashrecord")
    try fixture.put(Array(forge(3).bytes().prefix(1_000)), name: "cut.crashrecord")
    let sparse = open(records + "sparse.crashrecord", O_WRONLY | O_CREAT, 0o600)
    #expect(ftruncate(sparse, 1 << 30) == 0)
    close(sparse)
    var expected = 6
    if geteuid() == 0 {
      try fixture.put(forge(4).bytes(), name: "foreign.crashrecord")
      #expect(chown(records + "foreign.crashrecord", 12_345, 12_345) == 0)
      expected += 1
    }
    try fixture.put(forge(1))
    let diagnostics = try fixture.process()
    #expect(diagnostics.filter { $0.code == .quarantined }.count == expected)
    #expect(diagnostics.filter { $0.code == .reportStored }.count == 1)
    #expect(fixture.names("records") == [] && fixture.names("new").count == 1)
    let quarantined = fixture.names("quarantine")
    #expect(quarantined.count == 2 * expected)
    #expect(
      contents(of: fixture.path + "/quarantine/zeros.crashrecord.reason.txt").map {
        String(decoding: $0, as: UTF8.self).contains("not a crash record")
      } == true)
    // What the link led to is untouched; what was far too large does not fill the disk.
    #expect(contents(of: outside) == forge(9).bytes())
    var status = stat()
    #expect(stat(fixture.path + "/quarantine/sparse.crashrecord", &status) == 0 && status.st_size == 1 << 20)
  }

  /// A record has its name before it is locked and filled.
  @Test func aStartThatWasCutShortLeavesNothingForLong() throws {
    let fixture = try SpoolFixture()
    let records = fixture.path + "/records/"
    try fixture.put([], name: "young.crashrecord")
    try fixture.put([], name: "old.crashrecord")
    var times = [timespec(), timespec()]
    times[0].tv_sec = time(nil) - 2 * 3_600
    times[1].tv_sec = time(nil) - 2 * 3_600
    #expect(utimensat(AT_FDCWD, records + "old.crashrecord", times, 0) == 0)
    try fixture.put([UInt8](repeating: 0, count: 140_000), name: "zeros.crashrecord")
    // One that is being filled: its process holds the lock.
    try fixture.put([UInt8](repeating: 0, count: 140_000), name: "locked.crashrecord")
    let locked = open(records + "locked.crashrecord", O_RDWR)
    defer { close(locked) }
    #expect(flock(locked, LOCK_EX | LOCK_NB) == 0)
    let diagnostics = try fixture.process()
    #expect(diagnostics.map(\.code) == [.runEnded])
    #expect(diagnostics.allSatisfy { $0.message.contains("zeros.crashrecord holds nothing") })
    #expect(fixture.names("records") == ["locked.crashrecord", "young.crashrecord"])
    #expect(fixture.names("quarantine") == [])
    // Nobody took the lock that its maker is about to take.
    let young = open(records + "young.crashrecord", O_RDWR)
    defer { close(young) }
    #expect(flock(young, LOCK_EX | LOCK_NB) == 0)
  }

  @Test func quarantineKeepsTheLatestTen() throws {
    let fixture = try SpoolFixture()
    for number in 10..<40 { try fixture.put([1, 2, 3], name: "bad\(number).crashrecord") }
    try fixture.process()
    let names = fixture.names("quarantine")
    #expect(names.count == 20)
    #expect(names.filter { $0.hasSuffix(".reason.txt") }.count == 10)
    #expect(names.first == "bad30.crashrecord")
  }

  @Test func severalAtOnceHandleEachRecordOnce() throws {
    let fixture = try SpoolFixture()
    for number in 1...40 { try fixture.put(forge(UInt64(number), bug: UInt64(number))) }
    let running = try (0..<4).map { _ in try ChildProcess([runner(), "process", fixture.path]).start() }
    var stored = 0
    for process in running {
      let outcome = try process.finish()
      #expect(outcome.status == .exited(0))
      stored += outcome.text.split(separator: "\n").filter { $0.contains("[report_stored]") }.count
    }
    #expect(stored == 40 && fixture.names("new").count == 40 && fixture.names("records") == [])
  }

  @Test func largeReportIsTrimmedNotDropped() throws {
    let fixture = try SpoolFixture()
    var record = forge(1)
    record.breadcrumbs = (0..<128).map { "\($0) " + String(repeating: "x", count: 150) }
    for number in 0..<300 {
      record.images.append(
        .init(
          path: "/opt/lib/" + String(repeating: "p", count: 200) + "\(number)",
          address: 0x7000_0000_0000 + UInt64(number) << 24,
          size: 4096, buildID: Array(repeating: 7, count: 20)))
    }
    try fixture.put(record)
    var limits = SpoolLimits()
    limits.reportBytes = 60 * 1024
    try fixture.process(limits: limits)
    let report = try #require(try fixture.reports().first)
    #expect((report["images"] as? [Any])?.count == 1)
    #expect((report["breadcrumbs"] as? [Any])?.count == 128)
    limits.reportBytes = 8 * 1024
    record.entropy[8] ^= 1
    record.runID[15] ^= 1
    try fixture.put(record)
    try fixture.process(limits: limits)
    let smaller = try #require(try fixture.reports().first { $0["breadcrumbs"] == nil })
    #expect((smaller["notes"] as? [String])?.count == 2)
    #expect(smaller["stack_hash"] as? String == report["stack_hash"] as? String)
  }

  private func buildID(of path: String) throws -> BuildID? { try SymbolNames.buildID(ofFile: path) }
}

@Suite struct SpoolFolderTests {
  @Test func unsafeFoldersAreRefused() throws {
    let directory = try TemporaryDirectory("spool")
    func refusal(_ path: String) -> SystemError? {
      do throws(SystemError) {
        _ = try Spool(path: path)
        return nil
      } catch { return error }
    }
    let open = directory.path + "/open"
    #expect(mkdir(open, 0o700) == 0 && chmod(open, 0o770) == 0)
    #expect(refusal(open)?.number == EPERM)
    let link = directory.path + "/link"
    #expect(symlink(directory.path, link) == 0)
    #expect(refusal(link)?.description.contains("no link") == true)
    try write([1], to: directory.path + "/file")
    #expect(refusal(directory.path + "/file")?.description.contains("must be a folder") == true)
    #expect(refusal(directory.path + "/missing/spool")?.number == ENOENT)
    // A good folder with a bad one inside.
    let inside = directory.path + "/inside"
    #expect(refusal(inside) == nil)
    #expect(chmod(inside + "/records", 0o777) == 0)
    #expect(refusal(inside)?.description.contains("/records") == true)
    if geteuid() == 0 {
      let foreign = directory.path + "/foreign"
      #expect(mkdir(foreign, 0o700) == 0 && chown(foreign, 12_345, 12_345) == 0)
      #expect(refusal(foreign)?.description.contains("belongs to user 12345") == true)
    }
    var status = stat()
    #expect(stat(inside + "/new", &status) == 0 && status.st_mode & 0o777 == 0o700)
  }
}
