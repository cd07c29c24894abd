import CrashModel
import Foundation
import TestSupport
import Testing

/// The whole path on real crashes of the sample service, in the four ways in which services are built.
@Suite struct CrashTests {
  @Test(arguments: Sample.bugs, Sample.ways) func everyCrashIsReported(bug: Sample.Bug, way: String) throws {
    let service = Sample.service(way)
    try #require(FileManager.default.isExecutableFile(atPath: service), "`make samples` builds the service")
    let run = try TemporaryDirectory("crash")
    var child = ChildProcess([service, "--no-crash-reports", bug.request], directory: run.path)
    child.environment = ["SWIFT_BACKTRACE": "enable=no"]
    child.coreLimit = .max
    #expect(mkdir("\(run.path)/bare", 0o700) == 0)
    child.directory = "\(run.path)/bare"
    let bare = try child.run()
    guard case .signaled = bare.status else {
      Issue.record("\(bug.request) did not crash: \(bare.status)")
      return
    }

    child.directory = run.path
    child.arguments = [service, "--spool", "\(run.path)/spool", "--release", "1.0.0", bug.request]
    let outcome = try child.run()
    #expect(outcome.status == bare.status, "the same death as without us")
    #expect(outcome.dumpedCore == bare.dumpedCore, "the same core as without us")

    let names = run.names(in: "spool/records").filter { $0.hasSuffix(".crashrecord") }
    let name = try #require(names.first)
    #expect(names.count == 1)
    let path = "\(run.path)/spool/records/\(name)"
    let bytes = try #require(contents(of: path))
    expectNoCustomerData(in: bytes)
    let record = try CrashRecord.read(bytes: bytes)
    #expect(record.isComplete)
    try compareWithDebugger(record.report(), service: service, run: run, dumpedCore: outcome.dumpedCore)

    // A record that no next start has claimed.
    let read = try ChildProcess([Sample.symbolicate, "--format", "json", path]).run()
    #expect(read.status == .exited(0) || read.status == .exited(1), "\(read.errorText)")
    try check(JSONObject(read.output), bug: bug, way: way)

    // And the report that the next start makes of it.
    child.coreLimit = 0
    child.arguments = [service, "--spool", "\(run.path)/spool"]
    #expect(try child.run().status == .exited(0))
    let reports = run.names(in: "spool/new")
    #expect(reports.count == 1)
    let reportName = try #require(reports.first)
    let report = "\(run.path)/spool/new/\(reportName)"
    expectNoCustomerData(in: try #require(contents(of: report)))
    let second = try ChildProcess([Sample.symbolicate, "--format", "json", report]).run()
    let again = try JSONObject(second.output)
    try check(again, bug: bug, way: way)
    #expect(try again.string("id") == JSONObject(read.output).string("id"), "one crash has one id")
    #expect(try again.string("stack_hash") == JSONObject(read.output).string("stack_hash"))
  }

  private func check(_ report: JSONObject, bug: Sample.Bug, way: String) throws {
    #expect(report.string("reason") == bug.reason)
    #expect(report.string("stack_hash_quality") == "dwarf")
    #expect(report.string("operation") == bug.request)
    #expect(report.string("release") == "1.0.0")
    if bug.isInTask {
      let task = try #require(report.fields["task"] as? [String: Any])
      #expect((task["locals"] as? [String: String]) == ["request_id": "req-1"])
    }
    let own = report.crashedFrames.first { $0["in_app"] as? Bool == true && $0["function"] != nil }
    let frame = try #require(own, "a frame of the application's")
    let function = frame["function"] as? String ?? ""
    #expect(function.contains(bug.function), "\(function) in \(way)")
    #expect((frame["file"] as? String)?.hasSuffix(bug.file) == true, "\(frame)")
    let line = try #require(frame["line"] as? Int)
    let expected = try bug.line()
    // A recursion overflows at whichever instruction of it touches the stack first, an exception ends in the cleanup of
    // the function that lets none out: both are in the function, which is a few lines long.
    let room = bug.reason == "stack-overflow" || bug.reason == "cxx-terminate" ? 4 : 0
    #expect(line >= expected && line <= expected + room, "line \(line) instead of \(expected) in \(way)")
  }

  private func compareWithDebugger(
    _ report: CrashReport, service: String, run: TemporaryDirectory, dumpedCore: Bool
  ) throws {
    // `theDebuggerIsAJudge` of the fault tests reports where there are no cores to look at.
    guard dumpedCore, coresBecomeFiles else { return }
    let core = try #require(run.names().first { $0.hasPrefix("core") })
    let stacks = try gdbProgramCounters(executable: service, core: "\(run.path)/\(core)")
    let crashed = try #require(report.crashedThread?.id)
    let judge = try #require(stacks[crashed])
    let frames = (report.crashedThread?.frames ?? []).compactMap(\.captured)
    // Callers that await are on no stack, and unknown to gdb.
    let ours = frames.filter { $0.kind != .asyncResume }.map(\.address.rawValue)
    #expect(!judge.isEmpty)
    if ours.count > 400 {
      #expect(judge.count > 300 && ours.prefix(300) == judge.prefix(300))
    } else {
      #expect(ours == judge, "the frames of gdb on the core of the same run")
    }
  }

  private func expectNoCustomerData(in bytes: [UInt8]) {
    for secret in ["ayse.yilmaz" + "@", "4111" + "1111", "/home/" + "ayse"] {
      #expect(Data(bytes).range(of: Data(secret.utf8)) == nil, "\(secret)")
    }
  }

  @Test(arguments: Sample.ways) func killedFromOutside(way: String) throws {
    let run = try TemporaryDirectory("kill")
    let running = try ChildProcess(
      [Sample.service(way), "--spool", "\(run.path)/spool", "WAIT"], environment: ["SWIFT_BACKTRACE": "enable=yes"]
    ).start()
    var line = running.readLine()
    while !line.isEmpty, line != "waiting \(running.processID)" { line = running.readLine() }
    #expect(line == "waiting \(running.processID)")
    kill(running.processID, SIGSEGV)
    // The runtime's own handler would let it live.
    #expect(try running.finish().status == .signaled(SIGSEGV))
    let name = try #require(run.names(in: "spool/records").first { $0.hasSuffix(".crashrecord") })
    let bytes = try #require(contents(of: "\(run.path)/spool/records/\(name)"))
    let record = try CrashRecord.read(bytes: bytes)
    #expect(record.report().signal?.senderPID == getpid())
    #expect(record.report().signal?.address == nil)
  }
}
