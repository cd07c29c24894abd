import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// Debug files from a server: only when asked, last, once, and checked.
@Suite(
  .enabled(if: DebuginfodServer.path != nil, "debuginfod is not installed: apt-get install debuginfod"),
  .enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed"))
struct DebuginfodTests {
  /// A stripped program, its debug file in a folder of its own, and a report of a crash in it.
  struct Program {
    let folder: TemporaryDirectory
    let buildID: String
    let report: CrashReport
    var served: String { folder.path + "/served" }
    var cache: String { folder.path + "/cache" }

    init(source: String = "", strippedOf: String = "--strip-all") throws {
      folder = try TemporaryDirectory("debuginfod")
      let file = try folder.file(
        "program.c",
        Array(
          """
          #include <stdlib.h>
          __attribute__((noinline)) static void inner(int x) {
            if (x) abort();
          }
          int main(int argc, char **argv) { (void)argv; inner(argc); return 0; }
          \(source)

          """.utf8))
      let path = folder.path + "/program"
      try Self.run(["/usr/bin/gcc", "-g", "-O1", "-Wl,--build-id", "-o", path, file])
      let symbols = try Self.run(["/usr/bin/env", "nm", path]).split(separator: "\n").map { $0.split(separator: " ") }
      let offset = try #require(symbols.first { $0.last == "inner" }.flatMap { Hex.value($0[0]) })
      let notes = try Self.run(["/usr/bin/env", "readelf", "-n", path])
      buildID = String(
        try #require(notes.split(separator: "\n").first { $0.contains("Build ID:") }?.split(separator: " ").last))
      try FileManager.default.createDirectory(atPath: folder.path + "/served", withIntermediateDirectories: false)
      try Self.run(["/usr/bin/env", "objcopy", "--only-keep-debug", path, folder.path + "/served/program.debug"])
      try Self.run(["/usr/bin/env", "strip", strippedOf, path])

      var report = plainReport()
      let base: UInt64 = 0x5555_0000_0000
      report.images = [
        Image(path: path, buildID: BuildID(buildID), address: Address(rawValue: base), size: 1 << 20),
        // No frame lies in it, so that nobody needs its names.
        Image(
          path: "/usr/lib/libunused.so", buildID: BuildID("00112233445566778899aabbccddeeff00112233"),
          address: Address(rawValue: 0x7000_0000_0000), size: 1 << 20),
      ]
      report.threads = [
        ThreadInfo(
          id: 1, crashed: true,
          frames: [
            .captured(
              CapturedFrame(
                kind: .programCounter, address: Address(rawValue: base + offset), imageIndex: 0,
                imageOffset: ImageOffset(rawValue: offset)))
          ])
      ]
      self.report = report
    }

    @discardableResult
    static func run(_ command: [String]) throws -> String {
      let outcome = try ChildProcess(command).run()
      guard outcome.status == .exited(0) else {
        throw ChildProcess.LaunchFailure(description: "\(command): \(outcome.errorText)")
      }
      return outcome.text
    }

    func server() throws -> DebuginfodServer {
      try DebuginfodServer(serving: served, until: buildID, log: folder.path + "/log")
    }

    func symbolicate(
      _ arguments: [String] = [], urls: String? = nil, timeout: String? = nil, reports: [CrashReport]? = nil,
      environment: [String: String] = [:]
    ) throws -> ChildProcess.Outcome {
      var values = environment
      values["DEBUGINFOD_CACHE_PATH"] = cache
      values["HOME"] = folder.path
      if let urls { values["DEBUGINFOD_URLS"] = urls }
      if let timeout { values["DEBUGINFOD_TIMEOUT"] = timeout }
      var process = ChildProcess([SymbolicateTool.path, "-f", "json"] + arguments + ["-"], environment: values)
      process.input = (reports ?? [report]).flatMap { $0.json() + [UInt8(ascii: "\n")] }
      return try process.run()
    }
  }

  private func isNamed(_ outcome: ChildProcess.Outcome, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(outcome.status == .exited(0), "\(outcome.errorText)", sourceLocation: sourceLocation)
    #expect(outcome.text.contains(#""function":"inner""#), sourceLocation: sourceLocation)
    #expect(
      outcome.text.contains(#"program.c""#) && outcome.text.contains(#""declaration_line":2"#),
      sourceLocation: sourceLocation)
  }

  private func isUnnamed(_ outcome: ChildProcess.Outcome, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(outcome.status == .exited(1), "\(outcome.errorText)", sourceLocation: sourceLocation)
    #expect(!outcome.text.contains(#""function":"inner""#), sourceLocation: sourceLocation)
  }

  @Test func fromTheEnvironmentOnceAndCached() throws {
    let program = try Program()
    let server = try program.server()
    var second = program.report
    second.id = "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6c"
    let outcome = try program.symbolicate(urls: server.url, reports: [program.report, second])
    isNamed(outcome)
    #expect(server.requests(for: program.buildID) == 1)
    // The other image has no frames.
    #expect(server.requests == 1)
    // The client has it now.
    isNamed(try program.symbolicate(urls: server.url))
    #expect(server.requests == 1)
  }

  @Test func fromTheCommandLine() throws {
    let program = try Program()
    let server = try program.server()
    isNamed(try program.symbolicate(["--debuginfod", server.url]))
    #expect(server.requests == 1)
    let groups = try SymbolicateTool.run(
      "group", "--debuginfod", server.url, "-", input: program.report.json(),
      environment: ["DEBUGINFOD_CACHE_PATH": program.folder.path + "/other-cache"])
    #expect(groups.text.contains("inner"), "\(groups.text)")
    for bad in ["localhost:8002", "ftp://127.0.0.1", ""] {
      #expect(try program.symbolicate(["--debuginfod", bad]).status == .exited(64))
    }
  }

  /// A library that was built without `-g`: the server has its symbols, and this machine has no file at all.
  @Test func programWithoutDebugInformation() throws {
    let program = try Program()
    try FileManager.default.removeItem(atPath: program.served + "/program.debug")
    try Program.run(
      ["/usr/bin/gcc", "-O1", "-Wl,--build-id", "-o", program.served + "/program", program.folder.path + "/program.c"])
    let notes = try Program.run(["/usr/bin/env", "readelf", "-n", program.served + "/program"])
    let id = String(
      try #require(notes.split(separator: "\n").first { $0.contains("Build ID:") }?.split(separator: " ").last))
    let server = try DebuginfodServer(
      serving: program.served, until: id, kind: "executable", log: program.folder.path + "/log")
    var report = program.report
    report.images[0].path = "/nowhere/program"
    report.images[0].buildID = BuildID(id)
    let outcome = try program.symbolicate(urls: server.url, reports: [report])
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.text.contains(#""function":"inner""#))
    #expect(server.requests(for: id) == 2)
  }

  @Test func onlyWhenAsked() throws {
    let program = try Program()
    let server = try program.server()
    isUnnamed(try program.symbolicate())
    isUnnamed(try program.symbolicate(urls: ""))
    isUnnamed(try program.symbolicate(["--no-debuginfod"], urls: server.url))
    isUnnamed(try program.symbolicate(["--no-debuginfod", "--debuginfod", server.url]))
    #expect(server.requests == 0)
  }

  /// What lies here is taken first.
  @Test func askedLast() throws {
    let program = try Program()
    let server = try program.server()
    isNamed(try program.symbolicate(["--debug-dir", program.served], urls: server.url))
    #expect(server.requests == 0)
  }

  @Test func unknownBuildIsToldWithTheServer() throws {
    let program = try Program()
    let server = try program.server()
    var report = program.report
    report.images[0].buildID = BuildID("ffffffffffffffffffffffffffffffffffffffff")
    report.images[0].path = "/nowhere/program"
    let outcome = try program.symbolicate(urls: server.url, reports: [report])
    isUnnamed(outcome)
    #expect(
      outcome.errorText.contains("debuginfod \(server.url) (has no executable of build id ffff"), "\(outcome.errorText)"
    )
  }

  @Test func nobodyListens() throws {
    let program = try Program()
    let (port, socket) = try Loopback.listen()
    close(socket)
    var report = program.report
    report.images[0].path = "/nowhere/program"
    let outcome = try program.symbolicate(urls: "http://127.0.0.1:\(port)", reports: [report])
    isUnnamed(outcome)
    #expect(
      outcome.errorText.contains("debuginfod http://127.0.0.1:\(port) (not asked again: connection refused"),
      "\(outcome.errorText)")
  }

  /// A server that takes the connection and says nothing, for as long as the test runs.
  @Test func silenceEnds() throws {
    let program = try Program()
    let (port, socket) = try Loopback.listen()
    defer { close(socket) }
    var report = program.report
    report.images[0].path = "/nowhere/program"
    let outcome = try program.symbolicate(urls: "http://127.0.0.1:\(port)", timeout: "1", reports: [report])
    isUnnamed(outcome)
    #expect(outcome.errorText.contains("did not answer in time"), "\(outcome.errorText)")
  }

  /// Whatever a server, or someone who can write to the cache, gives out: the build id decides.
  @Test func otherBuildIsRefused() throws {
    let program = try Program()
    let other = try Program(source: "int other(void) { return 1; }")
    #expect(program.buildID != other.buildID)
    let folder = program.cache + "/" + program.buildID
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: other.served + "/program.debug", toPath: folder + "/debuginfo")
    var report = program.report
    report.images[0].path = "/nowhere/program"
    // The client asks no server for what is in its cache.
    let outcome = try program.symbolicate(urls: "http://127.0.0.1:9", reports: [report])
    isUnnamed(outcome)
    #expect(outcome.errorText.contains("is of another build (build id \(other.buildID))"), "\(outcome.errorText)")
  }

  @Test func withoutTheLibrary() throws {
    let program = try Program()
    let folder = program.folder.path + "/no-library"
    _ = try program.folder.file("no-library/libdebuginfod.so.1", Array("not a library".utf8))
    let outcome = try program.symbolicate(urls: "http://127.0.0.1:9", environment: ["LD_LIBRARY_PATH": folder])
    isUnnamed(outcome)
    var report = program.report
    report.images[0].path = "/nowhere/program"
    let told = try program.symbolicate(
      urls: "http://127.0.0.1:9", reports: [report], environment: ["LD_LIBRARY_PATH": folder])
    #expect(told.errorText.contains("libdebuginfod.so.1 is not installed"), "\(told.errorText)")
  }
}
