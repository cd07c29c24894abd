import CrashModel
import Foundation
import TestSupport
import Testing

/// Hosts that are built with a sanitizer, and the reporter with them: the sanitizer's own handler says what it says, the
/// process ends as without the reporter, and the record is there.
@Suite struct SanitizerTests {
  struct Build: CustomTestStringConvertible, Sendable {
    var compiler: String
    var sanitizer: String
    var testDescription: String { "\(compiler) \(sanitizer)" }
  }

  /// Each sanitizer once, and both compilers. Building a host takes ten times as long as letting it crash.
  static let builds = [
    Build(compiler: "gcc", sanitizer: "address"), Build(compiler: "gcc", sanitizer: "undefined"),
    Build(compiler: "clang", sanitizer: "thread"),
  ]

  /// Where the Swift toolchain's own libraries and compilers are.
  private static func toolchain() throws -> String {
    let outcome = try ChildProcess(["/bin/sh", "-c", "readlink -f \"$(command -v swiftc)\""]).run()
    let compiler = outcome.text.split(separator: "\n").first.map(String.init) ?? ""
    return URL(fileURLWithPath: compiler).deletingLastPathComponent().deletingLastPathComponent().path
  }

  private func command(_ build: Build, _ sources: [String], _ program: String) throws -> [String] {
    let flags = ["-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-fsanitize=\(build.sanitizer)", "-rdynamic"]
    guard build.compiler == "clang" else { return ["/usr/bin/env", "gcc"] + flags + sources + ["-o", program] }
    let toolchain = try Self.toolchain()
    // The thread sanitizer of this toolchain intercepts libdispatch and so needs it.
    let libraries = "\(toolchain)/lib/swift/linux"
    let dispatch =
      build.sanitizer == "thread"
      ? ["-L\(libraries)", "-ldispatch", "-lBlocksRuntime", "-Wl,-rpath,\(libraries)"] : []
    return ["\(toolchain)/bin/clang"] + flags + sources + dispatch + ["-o", program]
  }

  static let faults = ["null_main", "null_thread", "abort_main", "so_thread", "kill_segv", "heap_after_free"]
  /// The thread sanitizer keeps a call stack of its own, of 64 Ki calls, which a recursion on a large stack fills first: then
  /// the sanitizer hangs or dies by itself, and a handler that it instruments dies with it.
  static let smaller = ["so_thread": "so_smallthread"]

  @Test(arguments: builds) func host(_ build: Build) throws {
    let run = try TemporaryDirectory("sanitizer")
    let program = "\(run.path)/host"
    // A one-line program tells whether this compiler has this runtime; a failure of ours must not pass for its absence.
    try write(Array("int main(void) { return 0; }".utf8), to: "\(run.path)/probe.c")
    let probe = try? ChildProcess(
      try command(build, ["\(run.path)/probe.c"], program), environment: ["TMPDIR": run.path]
    )
    .run()
    guard probe?.status == .exited(0), try ChildProcess([program]).run().status == .exited(0) else { return }
    let compiled = try ChildProcess(
      try command(build, FaultHost.sourcesOfTheCProgram(), program), environment: ["TMPDIR": run.path]
    ).run()
    try #require(compiled.status == .exited(0), "\(compiled.errorText)")

    for name in Self.faults where name != "heap_after_free" || build.sanitizer == "address" {
      let fault = build.sanitizer == "thread" ? Self.smaller[name] ?? name : name
      var child = ChildProcess(
        [program, fault == "heap_after_free" ? "host_uses_after_free" : fault], directory: run.path)
      // The reports are of no interest here, and naming their frames takes seconds.
      let options = "symbolize=0"
      child.environment = ["ASAN_OPTIONS": options, "TSAN_OPTIONS": options, "UBSAN_OPTIONS": options]
      let bare = try child.run()
      let spool = "\(run.path)/spool"
      for name in run.names(in: "spool") { unlink("\(spool)/\(name)") }
      _ = mkdir(spool, 0o700)
      child.environment["FX_DB"] = spool
      let outcome = try child.run()
      #expect(outcome.status == bare.status, "\(fault): \(outcome.errorText.prefix(2000))")
      #expect(firstLine(outcome.errorText) == firstLine(bare.errorText), "\(fault)")
      let captured = try #require(try CapturedRecord(in: run))
      // What the sanitizer itself finds is no signal: it ends the process in its own way.
      if fault == "heap_after_free" {
        #expect(!captured.record.hasCrash)
        continue
      }
      #expect(captured.record.isComplete, "\(fault): \(captured.report.notes)")
      #expect(captured.report.signal?.number == (fault == "abort_main" ? SIGABRT : SIGSEGV))
      let innermost = fault.hasPrefix("so_") ? "fx_recurse" : fault == "kill_segv" ? "fault_run" : "fx_leaf_"
      #expect(try captured.names().contains { $0.hasPrefix(innermost) }, "\(fault)")
    }
  }

  /// Behind the process id that some of them print.
  private func firstLine(_ text: String) -> Substring {
    let line = text.prefix { $0 != "\n" }
    return line.hasPrefix("==") ? line.drop { $0 == "=" }.drop { $0 != "=" } : line
  }
}
