import CrashModel
import CrashReporting
import Glibc
import TestSupport
import Testing

@Suite struct CrashReporterTests {
  @Test func crashOfOneRunIsTheReportOfTheNext() throws {
    let directory = try TemporaryDirectory("start")
    let spool = directory.path + "/spool"
    let crashed = try ChildProcess([runner(), "start", spool, "11"]).run()
    #expect(crashed.status == .signaled(SIGSEGV), "\(crashed.text)")
    #expect(crashed.text.contains("[already_started]"))
    #expect(crashed.text.contains("[invalid_input]"))
    let run = try #require(crashed.text.split(separator: "\n").first { $0.hasPrefix("run ") }?.dropFirst(4))
    #expect(directory.names(in: "spool/records").count == 1)
    let processed = try ChildProcess([runner(), "process", spool]).run()
    #expect(processed.text.contains("[report_stored]"), "\(processed.text)")
    #expect(directory.names(in: "spool/records") == [])
    let name = try #require(directory.names(in: "spool/new").first)
    let text = String(decoding: try #require(contents(of: "\(spool)/new/\(name)")), as: UTF8.self)
    for part in [
      "\"run_id\":\"\(run)\"", "\"service\":\"runner\"", "\"release\":\"1.0.0\"", "\"operation\":\"POST /checkout\"",
      "\"user_id\":\"usr_7c1e\"", "the last one", "\"type\":\"SIGSEGV\"", "\"stack_hash_quality\":\"symtab\"",
    ] { #expect(text.contains(part), "\(part) is missing in \(text.prefix(3_000))") }
    // 50 tags at most, whatever 32 threads did.
    #expect(text.contains("\"region\""))
  }

  @Test func otherHandlersAreNoticedAndTasksAreDescribed() throws {
    let directory = try TemporaryDirectory("verify")
    let spool = directory.path + "/spool"
    let crashed = try ChildProcess([runner(), "verify", spool]).run()
    #expect(crashed.status == .signaled(SIGSEGV), "\(crashed.text)")
    let said = crashed.text.split(separator: "\n").map(String.init)
    #expect(said.first?.contains("isStarted: false") == true)
    #expect(
      Array(said.dropFirst()) == [
        "started true", "replaced [\"SIGBUS\"]", "included true", "included false",
      ])
    _ = try ChildProcess([runner(), "process", spool]).run()
    let name = try #require(directory.names(in: "spool/new").first)
    let text = String(decoding: try #require(contents(of: "\(spool)/new/\(name)")), as: UTF8.self)
    #expect(text.contains("Somebody replaced the handler for SIGBUS after the start"))
    #expect(text.contains("\"name\":\"nightly\",\"locals\":{\"request_id\":\"9f2c\"}"), "\(text.prefix(3_000))")
  }

  @Test func badConfigurationsAreRefused() {
    func code(_ change: (inout CrashReporter.Configuration) -> Void) -> CrashReporter.StartError.Code? {
      var configuration = CrashReporter.Configuration(service: "s", directory: "/nowhere/at/all")
      change(&configuration)
      do throws(CrashReporter.StartError) {
        try CrashReporter.start(configuration)
        return nil
      } catch { return error.code }
    }
    #expect(code { $0.directory = "relative" } == .invalidConfiguration)
    #expect(code { $0.service = "" } == .invalidConfiguration)
    #expect(code { $0.release = "a\0b" } == .invalidConfiguration)
    #expect(code { $0.environment = String(repeating: "e", count: 65) } == .invalidConfiguration)
    #expect(code { _ in } == .spoolUnusable)
    #expect(CrashReporter.runID == nil)
  }

  @Test func embeddedLayerLinksOnlyTheRuntime() throws {
    let libraries = try ChildProcess(["/usr/bin/ldd", runner()]).run().text
    for forbidden in ["Foundation", "libdw", "libunwind", "curl", "sqlite", "libcrypto"] {
      #expect(!libraries.contains(forbidden))
    }
    #expect(libraries.contains("libswiftCore"))
  }
}
