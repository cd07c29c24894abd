import CrashModel
import Foundation
import TestSupport
import Testing

/// What is done for a processor that the tests do not run on: aarch64 is compiled everywhere, and run where an emulator is.
@Suite struct ArchitectureTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
  static let crossHeaders = "/usr/aarch64-linux-gnu/include"

  static var hasHeaders: Bool { access("\(crossHeaders)/sys/ucontext.h", R_OK) == 0 }

  static let sources = ["CCrashSupport", "Sources/CCrashFormat"].flatMap { folder in
    (try? FileManager.default.contentsOfDirectory(atPath: "\(root)/\(folder)"))?
      .filter { $0.hasSuffix(".c") }.map { "\(folder)/\($0)" }.sorted() ?? []
  }

  static func isInstalled(_ tools: String...) -> Bool {
    tools.allSatisfy { access("/usr/bin/\($0)", X_OK) == 0 }
  }

  @Test func theSourcesAreThere() {
    #expect(Self.sources.contains("CCrashSupport/arch_aarch64.c"))
    #expect(Self.sources.contains("CCrashSupport/arch_x86_64.c"))
  }

  /// Without a warning, and referring to nothing else than on x86-64.
  @Test(
    .enabled(if: hasHeaders, "no C headers for aarch64 here: apt-get install libc6-dev-arm64-cross"),
    arguments: sources) func compilesForAArch64(source: String) throws
  {
    let directory = try TemporaryDirectory("aarch64")
    let object = "\(directory.path)/object.o"
    let compiled = try ChildProcess([
      "/usr/bin/env", "clang", "--target=aarch64-linux-gnu", "-nostdlibinc", "-isystem", Self.crossHeaders,
      "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-fno-stack-protector",
      "-U_FORTIFY_SOURCE", "-mno-outline-atomics", "-I\(Self.root)/CCrashSupport/include",
      "-I\(Self.root)/Sources/CCrashFormat/include", "-c", "\(Self.root)/\(source)", "-o", object,
    ]).run()
    try #require(compiled.status == .exited(0), "\(compiled.errorText)")

    let name = String(source.split(separator: "/").last ?? "")
    guard var allowed = name == "arch_aarch64.c" ? [] : SymbolAllowListTests.allowed[name] else { return }
    allowed.formUnion(SymbolAllowListTests.memory)
    // readelf reads the objects of any processor; nm knows its own.
    let symbols = try ChildProcess(["/usr/bin/env", "readelf", "-sW", object]).run()
    // The other processor's file has nothing for this one.
    let isEmpty = name == "arch_x86_64.c"
    try #require(symbols.status == .exited(0) && symbols.text.contains(" crash_") != isEmpty)
    for line in symbols.text.split(separator: "\n") where line.contains(" UND ") {
      guard let symbol = line.split(separator: " ").last.map(String.init), symbol != "UND" else { continue }
      #expect(symbol.hasPrefix("crash_") || allowed.contains(symbol), "\(source) refers to \(symbol)")
    }
  }

  /// Fault programs in qemu's user mode. Not a processor: it has no seccomp filters, and it ends a process by a signal of
  /// its own host. But registers, signal frames, call frame information and the loads that fault are aarch64's.
  @Suite(
    .serialized,
    .enabled(
      if: isInstalled("qemu-aarch64", "aarch64-linux-gnu-gcc"),
      "no emulator or no compiler: apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"))
  struct Emulated {
    struct Fault: CustomTestStringConvertible, Sendable {
      var name: String
      var signal: Int32
      /// These functions in order.
      var functions: [String]
      var testDescription: String { name }
      init(_ name: String, _ signal: Int32, _ functions: [String]) {
        self.name = name
        self.signal = signal
        self.functions = functions
      }
    }

    static let faults = [
      Fault("null_main", SIGSEGV, ["fx_leaf_null", "fx_mid_null", "fx_top_null", "fault_run", "main", "_start"]),
      Fault("abort_main", SIGABRT, ["fx_leaf_abort", "fx_mid_abort", "fx_top_abort", "fault_run", "main"]),
      Fault("ill_main", SIGILL, ["fx_leaf_ill", "fx_mid_ill", "fault_run", "main"]),
      Fault("so_smallthread", SIGSEGV, ["fx_recurse", "fx_recurse", "fx_thread_recurse"]),
      Fault("pc_zero", SIGSEGV, ["fx_pc_caller", "fx_pc_top", "fault_run", "main"]),
      Fault("jit", SIGSEGV, ["fx_pc_caller", "fx_jit_top", "fault_run", "main"]),
      Fault("raise_trap", SIGTRAP, ["fault_run", "main"]),
      // The trap's instruction comes again by itself: to the default action, or to nobody at all.
      Fault("host_int3", SIGTRAP, ["hx_leaf_int3", "hx_top_int3", "main"]),
      Fault("host_int3_default", SIGTRAP, ["hx_leaf_int3", "hx_top_int3", "main"]),
      // Through the frame of a signal, whose trampoline has no call frame information.
      Fault(
        "host_in_handler", SIGSEGV, ["hx_leaf", "hx_top", "hx_crashing_handler", "hx_interrupted", "main", "_start"]),
      // The mask of the former handler is where the kernel has it.
      Fault("host_mask", SIGSEGV, ["hx_leaf", "hx_top", "main"]),
      Fault("host_unloaded", SIGSEGV, ["hx_call", "main"]),
    ]

    /// Plain, and with return addresses signed by the processor (`-cpu max` has pointer authentication).
    @Test(arguments: faults, [false, true]) func fault(_ fault: Fault, signsReturnAddresses: Bool) throws {
      let programs = try EmulatedHost.shared.get()
      let run = try TemporaryDirectory("qemu")
      var child = ChildProcess(
        [
          "/usr/bin/env", "qemu-aarch64", "-cpu", signsReturnAddresses ? "max" : "cortex-a57", "-L",
          "/usr/aarch64-linux-gnu", signsReturnAddresses ? programs.signing : programs.plain, fault.name,
        ], environment: ["FX_LIB": programs.library], directory: run.path)
      let bare = try child.run()
      #expect(bare.status == .signaled(fault.signal), "without the reporter")
      #expect(mkdir("\(run.path)/spool", 0o700) == 0)
      child.environment["FX_DB"] = "\(run.path)/spool"
      let outcome = try child.run()
      #expect(outcome.status == bare.status)
      #expect(outcome.errorText == bare.errorText)

      let captured = try #require(try CapturedRecord(in: run))
      #expect(captured.record.isComplete && captured.record.machine == 183)
      #expect(captured.report.signal?.number == fault.signal)
      #expect(captured.report.crashedThread?.registers.map(\.name).suffix(3) == ["sp", "pc", "pstate"])
      try captured.expectFunctions(fault.functions, addr2line: "aarch64-linux-gnu-addr2line")
    }
  }
}

/// The fault programs for aarch64, compiled once for the whole run.
final class EmulatedHost: Sendable {
  static let shared = Result { try EmulatedHost() }

  private let directory: TemporaryDirectory
  var plain: String { "\(directory.path)/plain" }
  /// Its own code signs its return addresses.
  var signing: String { "\(directory.path)/signing" }
  var library: String { "\(directory.path)/fxlib.so" }

  private init() throws {
    let root = ArchitectureTests.root
    let faults = "\(root)/Tests/CCrashSupportTests/Faults"
    directory = try TemporaryDirectory(replacing: "\(root)/.build/fault-host-aarch64")
    let common = [
      "/usr/bin/env", "aarch64-linux-gnu-gcc", "-std=gnu11", "-g", "-w", "-D_GNU_SOURCE",
      "-I\(root)/CCrashSupport/include", "-I\(root)/Sources/CCrashFormat/include", "-I\(faults)",
    ]
    let style = ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]
    let sources = ArchitectureTests.sources.map { "\(root)/\($0)" }
    for (path, protection) in [(plain, []), (signing, ["-mbranch-protection=standard"])] {
      let command = common + style + protection + FaultHost.programs.map { "\(faults)/\($0)" }
      try require(command + sources + ["-rdynamic", "-o", path])
    }
    try require(common + style + ["-fPIC", "-shared", "\(faults)/fxlib.c", "-o", library])
  }

  private func require(_ command: [String]) throws {
    let outcome = try ChildProcess(command).run()
    guard outcome.status == .exited(0) else {
      throw ChildProcess.LaunchFailure(description: "\(command.joined(separator: " ")): \(outcome.errorText)")
    }
  }
}
