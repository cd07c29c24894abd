import CrashModel
import Foundation
import TestSupport
import Testing

/// What the handler needs of memory: nothing from an allocator, and little stack.
@Suite struct HandlerMemoryTests {
  /// Two words that the allocator of the tests keeps in a file.
  private func counts(_ path: String) throws -> (all: UInt64, inHandlers: UInt64) {
    let bytes = try #require(contents(of: path))
    return bytes.withUnsafeBytes {
      ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }

  private func run(_ program: String, _ fault: String, preload: String, with reporter: Bool, in run: TemporaryDirectory)
    throws -> ChildProcess.Outcome
  {
    let host = try FaultHost.shared.get()
    // The shell in front would count too.
    var child = ChildProcess(["/usr/bin/env", "LD_PRELOAD=\(preload)", program, fault], directory: run.path)
    child.environment = [
      "FX_LIB": host.library, "SWIFT_BACKTRACE": "enable=no", "FX_ALLOCATIONS": "\(run.path)/allocations",
    ]
    if reporter {
      _ = mkdir("\(run.path)/spool", 0o700)
      child.environment["FX_DB"] = "\(run.path)/spool"
    }
    return try child.run()
  }

  /// Faults that an allocator of one's own does not see as glibc's does, and one that hides the file of the counts.
  static let skipped = [
    "heap_top": "damages glibc's heap by its layout", "heap_segv": "damages glibc's heap by its layout",
    "fork_child": "the child has no record", "blocked_segv": "no handler runs", "kill_quit": "no handler runs",
  ]
  static let programs: [(String, Bool)] =
    FaultTests.cFaults.filter { skipped[$0] == nil }.map { ($0, false) }
    + FaultTests.swiftFaults.map { ($0, true) }

  /// Every fault program under an allocator with one lock for everything, that ends the process where the thread that
  /// holds it comes again. The faults in the middle of an allocation are the other test's.
  @Test(arguments: programs) func noAllocationBehindTheFault(fault: String, swift: Bool) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("allocations")
    let program = swift ? host.swift(optimized: true) : host.c
    let outcome = try self.run(program, fault, preload: host.allocator, with: true, in: run)
    guard case .signaled = outcome.status else {
      Issue.record("\(fault): \(outcome.status) \(outcome.errorText)")
      return
    }
    let counts = try counts("\(run.path)/allocations")
    #expect(counts.all > 0, "the allocator is not in place")
    #expect(counts.inHandlers == 0, "\(fault): \(counts.inHandlers) allocations on an alternate stack")
    let captured = try #require(try CapturedRecord(in: run, folder: fault == "nodir" ? "spool.gone" : "spool"))
    #expect(captured.record.isComplete)
  }

  /// The counter counts: a handler of a host's own that allocates is seen.
  @Test func anAllocationIsCounted() throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("allocations")
    let outcome = try self.run(host.c, "host_allocates", preload: host.allocator, with: true, in: run)
    #expect(outcome.status == .signaled(SIGSEGV))
    #expect(try counts("\(run.path)/allocations").inHandlers == 2, "malloc and free")
  }

  static let jemalloc = [
    "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2",
  ].first { (path: String) in access(path, R_OK) == 0 }

  /// A crash while the allocator's own lock is held.
  @Test func crashInsideOfTheAllocator() throws { try crash(inside: FaultHost.shared.get().allocator) }

  /// Under the allocator that most Vapor services preload.
  @Test(.enabled(if: jemalloc != nil, "no jemalloc here: apt-get install libjemalloc2"))
  func crashInsideOfJemalloc() throws { try crash(inside: #require(Self.jemalloc)) }

  private func crash(inside preload: String) throws {
    let host = try FaultHost.shared.get()
    for (program, fault) in [
      (host.c, "host_frees_garbage"), (host.c, "null_main"), (host.c, "so_thread"), (host.c, "abort_main"),
      (host.c, "threads500"), (host.swift(optimized: true), "sw_task"), (host.swift(optimized: true), "sw_nil"),
    ] {
      let run = try TemporaryDirectory("allocator")
      let bare = try self.run(program, fault, preload: preload, with: false, in: run)
      let outcome = try self.run(program, fault, preload: preload, with: true, in: run)
      #expect(outcome.status == bare.status, "\(fault)")
      guard case .signaled = outcome.status else {
        Issue.record("\(fault): \(outcome.status) \(outcome.errorText)")
        continue
      }
      #expect(try #require(try CapturedRecord(in: run)).record.isComplete, "\(fault)")
    }
  }

  // ---- Stack ----------------------------------------------------------------------------------------------------

  /// Bytes of alternate stack behind the frame that the kernel pushes, and the limit that the sizes of the stacks count on.
  static let stackLimit = 16 * 1024

  static let deep = [
    "null_main", "abort_main", "so_main", "pc_zero", "pc_wild", "pc_noncanon", "smashed", "jit", "heap_top",
    "heap_segv",
    "dlopened", "dl_iter", "co_null", "kill_segv", "raise_ill", "threads500", "host_int3", "host_namespace",
    "host_reload", "host_unloaded", "damage_rsp_null", "damage_rsp_top", "damage_at_exit_overflow",
    "damage_paint_thread",
  ]

  @Test(arguments: deep) func littleStackIsUsed(fault: String) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("paint")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess([host.c, fault], directory: run.path)
    child.environment = [
      "FX_DB": "\(run.path)/spool", "FX_LIB": host.library, "FX_LIB2": host.otherLibrary,
      "FX_PAINT": "\(run.path)/paint",
    ]
    let outcome = try child.run()
    guard case .signaled = outcome.status else {
      Issue.record("\(fault): \(outcome.status) \(outcome.errorText)")
      return
    }
    #expect(try #require(try CapturedRecord(in: run)).record.isComplete)
    let bytes = try #require(contents(of: "\(run.path)/paint"))
    let frame = Int(bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    let stack = bytes[4096...]
    let first = try #require(stack.firstIndex { $0 != 0xa5 }, "the stack was not used")
    let used = stack.endIndex - first - frame
    #expect(used > 0 && used < Self.stackLimit, "\(fault): \(used) bytes behind the kernel's frame of \(frame)")
    if getenv("SHOW_FIGURES") != nil { print("stack use: \(fault) \(used) of \(Self.stackLimit), frame \(frame)") }
  }
}
