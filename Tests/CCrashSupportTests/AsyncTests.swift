import CrashModel
import Foundation
import TestSupport
import Testing

/// Crashes in tasks: the callers that await stand behind the function that they wait for, in front of the runtime's own
/// frames, in every kind of task and every way to link.
@Suite struct AsyncTests {
  /// For each kind of task the functions that await, innermost first, by a part of their mangled names.
  static let callers: [String: [String]] = [
    "task": ["as_leaf", "as_mid", "as_top"],
    "detached": ["as_leaf", "as_mid", "as_top"],
    "main": ["as_leaf", "as_mid", "as_top", "Main"],
    "main_actor": ["as_leaf", "as_mid", "as_top", "as_on_main"],
    "direct": ["as_direct", "as_direct_top"],
    "nonsending": ["as_ns2", "as_ns1"],
    "actor": ["as_leaf", "as_mid", "as_top", "as_book"],
    "group": ["as_leaf", "as_mid", "as_top"],
    "let": ["as_leaf", "as_mid", "as_top"],
    "named": ["as_leaf", "as_mid", "as_top"],
  ]

  @Test(arguments: callers.keys.sorted(), FaultHost.AsyncBuild.allCases)
  func callersThatAwait(kind: String, build: FaultHost.AsyncBuild) throws {
    let captured = try crash(kind, build)
    let names = try captured.names()
    var position = try #require(names.firstIndex { $0.contains("as_crash") }, "\(names)")
    for caller in try #require(Self.callers[kind]) {
      guard let found = names[position...].firstIndex(where: { $0.contains(caller) }) else {
        Issue.record("\(kind): \(caller) is not in \(names)")
        return
      }
      position = found
    }
    // Every caller that awaits stands in front of the runtime's frame that runs the job.
    let frames = try #require(captured.report.crashedThread).frames.compactMap(\.captured)
    let last = try #require(frames.lastIndex { $0.kind == .asyncResume }, "\(names)")
    let runner = try #require(names.firstIndex { $0.contains("swift_job_run") || $0.contains("runJob") }, "\(names)")
    #expect(last < runner)
    #expect(position <= last || kind == "direct")
  }

  @Test(arguments: FaultHost.AsyncBuild.allCases) func idNameAndLocals(build: FaultHost.AsyncBuild) throws {
    let captured = try crash("named", build)
    let task = try #require(captured.report.task)
    #expect(task.id > 0)
    #expect(task.name == "nightly export")
    #expect(
      task.locals == [
        Tag(key: "request_id", value: "a request id that is longer than fifteen bytes, of [redacted]"),
        Tag(key: "tenant", value: "acme"),
      ])
    #expect(!String(decoding: captured.bytes, as: UTF8.self).contains("jane@example.com"))
  }

  @Test func codeOutsideOfTasksHasNoCallersThatAwait() throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("threads")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess([host.swift(optimized: true), "sw_nil"], directory: run.path)
    child.environment = ["FX_DB": "\(run.path)/spool", "SWIFT_BACKTRACE": "enable=no"]
    _ = try child.run()
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.report.task == nil)
    for thread in captured.report.threads {
      #expect(!thread.frames.contains { $0.captured?.kind == .asyncResume })
    }
  }

  private func crash(_ kind: String, _ build: FaultHost.AsyncBuild) throws -> CapturedRecord {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("async")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess([host.async(build), kind], directory: run.path)
    child.environment = ["FX_DB": "\(run.path)/spool", "SWIFT_BACKTRACE": "enable=no"]
    #expect(try child.run().status == .signaled(SIGILL))
    let captured = try #require(try CapturedRecord(in: run))
    #expect(captured.record.isComplete == true)
    return captured
  }
}
