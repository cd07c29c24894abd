import CrashModel
import Foundation
import TestSupport
import Testing

/// Hosts that are built with a sanitizer, and the reporter with them: the sanitizer's own handler says what it says, the
/// process ends as without the reporter, and the record is there.
@Suite struct SanitizerTests {
  struct Build: Sendable {
    var compiler: String
    var sanitizer: String

    /// Whether this compiler has this runtime, which a one-line program tells: a failure of ours must not pass for its
    /// absence.
    var isAvailable: Bool {
      get throws {
        let run = try TemporaryDirectory("probe")
        let program = "\(run.path)/probe"
        try write(Array("int main(void) { return 0; }".utf8), to: "\(program).c")
        let probe = try ChildProcess(
          try command(["\(program).c"], program), environment: ["TMPDIR": run.path]
        ).run()
        return try probe.status == .exited(0) && ChildProcess([program]).run().status == .exited(0)
      }
    }

    /// Whether the crash path must be compiled without it, as docs/capture.md has it.
    private var staysOutOfTheCrashPath: Bool { compiler == "gcc" && sanitizer == "thread" }

    /// What makes the fault host, one step after the other.
    ///
    /// - Parameter folder: for what lies in between.
    func steps(_ program: String, in folder: String) throws -> [[String]] {
      guard staysOutOfTheCrashPath else { return [try command(FaultHost.sourcesOfTheCProgram(), program)] }
      let (host, library, includes) = try FaultHost.partsOfTheCProgram()
      let objects = library.map { "\(folder)/\($0.split(separator: "/").suffix(2).joined(separator: "-")).o" }
      return zip(library, objects).map { source, object in
        ["/usr/bin/env", "gcc", "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-DCRASH_OWN_MEMORY_FUNCTIONS"] + includes
          + ["-c", source, "-o", object]
      } + [try command(includes + host + objects, program)]
    }

    private func command(_ sources: [String], _ program: String) throws -> [String] {
      let flags = ["-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-fsanitize=\(sanitizer)", "-rdynamic"]
      guard compiler == "clang" else { return ["/usr/bin/env", "gcc"] + flags + sources + ["-o", program] }
      let toolchain = try Toolchain.path()
      // The thread sanitizer of this toolchain intercepts libdispatch and so needs it.
      let libraries = "\(toolchain)/lib/swift/linux"
      let dispatch =
        sanitizer == "thread" ? ["-L\(libraries)", "-ldispatch", "-lBlocksRuntime", "-Wl,-rpath,\(libraries)"] : []
      return ["\(toolchain)/bin/clang"] + flags + sources + dispatch + ["-o", program]
    }
  }

  static let none = "this compiler has no such sanitizer here"

  static let faults = ["null_main", "null_thread", "abort_main", "so_main", "so_thread", "kill_segv"]
  static let afterFree = "host_uses_after_free"
  static let dives = "host_dives"

  @Test(.enabled(if: try Build(compiler: "gcc", sanitizer: "address").isAvailable, Comment(rawValue: none)))
  func addressByGCC() throws { try check(Build(compiler: "gcc", sanitizer: "address"), Self.faults + [Self.afterFree]) }

  @Test(.enabled(if: try Build(compiler: "gcc", sanitizer: "undefined").isAvailable, Comment(rawValue: none)))
  func undefinedBehaviorByGCC() throws { try check(Build(compiler: "gcc", sanitizer: "undefined"), Self.faults) }

  @Test(.enabled(if: try Build(compiler: "gcc", sanitizer: "thread").isAvailable, Comment(rawValue: none)))
  func threadByGCC() throws {
    // Where the recursion ends before that stack of calls does.
    let faults = Self.faults.filter { !["so_main", "so_thread"].contains($0) } + ["so_smallthread"]
    try check(Build(compiler: "gcc", sanitizer: "thread"), faults)
  }

  @Test(.enabled(if: try Build(compiler: "clang", sanitizer: "address").isAvailable, Comment(rawValue: none)))
  func addressByClang() throws {
    try check(Build(compiler: "clang", sanitizer: "address"), Self.faults + [Self.afterFree])
  }

  @Test(.enabled(if: try Build(compiler: "clang", sanitizer: "undefined").isAvailable, Comment(rawValue: none)))
  func undefinedBehaviorByClang() throws { try check(Build(compiler: "clang", sanitizer: "undefined"), Self.faults) }

  /// The thread sanitizer keeps a stack of calls of its own, of 64 Ki, which a recursion on a large stack fills first; the
  /// fault is in its own code then, and its own report on it hangs in every fifth run, with or without us. So that is off.
  /// (GCC's dies in what it puts in front of every handler, so that ours is never called.)
  @Test(.enabled(if: try Build(compiler: "clang", sanitizer: "thread").isAvailable, Comment(rawValue: none)))
  func threadByClang() throws {
    let deep = ["so_main", "so_thread", Self.dives]
    try check(Build(compiler: "clang", sanitizer: "thread"), Self.faults.filter { !deep.contains($0) })
    try check(Build(compiler: "clang", sanitizer: "thread"), deep, options: "handle_segv=0")
  }

  private func check(_ build: Build, _ faults: [String], options: String = "") throws {
    let run = try TemporaryDirectory("sanitizer")
    let program = "\(run.path)/host"
    for step in try build.steps(program, in: run.path) {
      let compiled = try ChildProcess(step, environment: ["TMPDIR": run.path]).run()
      try #require(compiled.status == .exited(0), "\(compiled.errorText)")
    }

    for fault in faults {
      var child = ChildProcess([program, fault], directory: run.path)
      // The reports are of no interest here, and naming their frames takes seconds.
      let options = "symbolize=0:\(options)"
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
      if fault == Self.afterFree {
        #expect(!captured.record.hasCrash)
        continue
      }
      #expect(captured.record.isComplete, "\(fault): \(captured.report.notes)")
      #expect(captured.report.signal?.number == (fault == "abort_main" ? SIGABRT : SIGSEGV))
      let innermost = [
        Self.dives: "hx_dive", "so_main": "fx_recurse", "so_thread": "fx_recurse", "so_smallthread": "fx_recurse",
        "kill_segv": "fault_run",
      ]
      #expect(try captured.names().contains { $0.hasPrefix(innermost[fault] ?? "fx_leaf_") }, "\(fault)")
    }
  }

  /// GCC's thread sanitizer in the crash path is a deadlock in one crash of some hundred: it is no option.
  @Test(.enabled(if: try Build(compiler: "gcc", sanitizer: "thread").isAvailable, Comment(rawValue: none)))
  func theCrashPathRefusesTheThreadSanitizerOfGCC() throws {
    let run = try TemporaryDirectory("sanitizer")
    let (_, library, includes) = try FaultHost.partsOfTheCProgram()
    let source = try #require(library.first { $0.hasSuffix("/threads.c") })
    let command = ["/usr/bin/env", "gcc", "-std=gnu11", "-D_GNU_SOURCE", "-fsanitize=thread"] + includes
    let compiled = try ChildProcess(
      command + ["-c", source, "-o", "\(run.path)/object"], environment: ["TMPDIR": run.path]
    ).run()
    #expect(compiled.status != .exited(0))
    #expect(compiled.errorText.contains("compile it with -fno-sanitize=thread -DCRASH_OWN_MEMORY_FUNCTIONS"))
  }

  /// Behind the process id that some of them print.
  private func firstLine(_ text: String) -> Substring {
    let line = text.prefix { $0 != "\n" }
    return line.hasPrefix("==") ? line.drop { $0 == "=" }.drop { $0 != "=" } : line
  }
}
