import Foundation
import TestSupport
import Testing

/// The objects that run in the handler may call only what is safe there.
@Suite struct SymbolAllowListTests {
  /// Memory functions of libc keep no state and take no lock.
  static let memory: Set = ["memcpy", "memset", "memcmp", "bcmp", "memmove", "strnlen"]

  /// For each source of the crash path: what else it may refer to, and why that is no danger.
  static let allowed: [String: Set<String>] = [
    "arch_x86_64.c": [],
    "noted_call.c": [],
    // No crash handlers, but run in the middle of anything too. sigaction and friends run when they are installed;
    // clock_gettime is async-signal-safe by POSIX.
    "terminations.c": ["clock_gettime", "sigaction", "sigemptyset"], "quit.c": ["sigaction", "sigemptyset"],
    // No crash path: a thread that is well reports an error.
    "capture_stack.c": ["pthread_mutex_trylock", "pthread_mutex_unlock"],
    "cfi.c": [],
    "unwind.c": [],
    // dlsym runs at start only; the two runtimes' functions are weak.
    "message.c": ["dlsym", "swift_getFatalErrorMessageBuffer", "__cxa_current_exception_type"],
    // dl_iterate_phdr, strlen, strncmp and sysconf run at start and for those who are well only; _dl_find_object takes no lock.
    "images.c": ["dl_iterate_phdr", "_dl_find_object", "_r_debug", "strlen", "strncmp", "sysconf"],
    "deadline.c": [],
    // dlsym runs at start only.
    "stages.c": ["dlsym"],
    // sigaction and friends run when the handlers are installed. The runtime's function is weak, and only its place is
    // asked for.
    "hand_over.c": ["sigaction", "_swift_installCrashHandler", "__errno_location"],
    "handlers.c": ["sigfillset", "sigdelset"],
    // The list of threads that exist already is read at start only. Thread-local storage is not used in the handler.
    "threads.c": [
      "stat", "opendir", "readdir", "closedir", "strtoul", "__isoc23_strtoul", "__tls_get_addr",
      "__libc_single_threaded",
    ],
    // dlsym runs at start only; the runtime's functions are weak, and run in a stage that survives their faults. The
    // header of the file is the linker's, and only read.
    "async.c": [
      "dlsym", "__ehdr_start", "swift_job_run", "swift_job_run_on_task_executor",
      "swift_job_run_on_serial_and_task_executor",
      "swift_task_getCurrent", "swift_task_getJobTaskId", "swift_task_getCurrentTaskName", "swift_task_localValueGet",
    ],
  ]

  @Test(arguments: allowed.keys.sorted()) func undefinedSymbols(source: String) throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().path
    let directory = try TemporaryDirectory("nm")
    let object = "\(directory.path)/object.o"
    let compiled = try ChildProcess([
      "/usr/bin/env", "gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
      "-fno-stack-protector", "-U_FORTIFY_SOURCE",
      "-I\(root)/CCrashSupport/include", "-I\(root)/Sources/CCrashFormat/include", "-c",
      "\(root)/CCrashSupport/\(source)", "-o", object,
    ]).run()
    try #require(compiled.status == .exited(0), "\(compiled.errorText)")
    let symbols = try ChildProcess(["/usr/bin/env", "nm", "-u", "--format=just-symbols", object]).run()
    try #require(symbols.status == .exited(0))
    let ours = { (name: Substring) in name.hasPrefix("crash_") || name == "_GLOBAL_OFFSET_TABLE_" }
    for name in symbols.text.split(separator: "\n") where !ours(name) {
      let known = Self.memory.contains(String(name)) || Self.allowed[source]?.contains(String(name)) == true
      #expect(known, "\(source) refers to \(name)")
    }
  }

  // ---- Instrumentation ------------------------------------------------------------------------------------------

  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path

  static let crashPath =
    allowed.keys.sorted().map { "CCrashSupport/\($0)" }
    + ["CCrashSupport/record.c", "Sources/CCrashFormat/checksum.c", "Sources/CCrashFormat/redact.c"]

  /// Everything that adds code to functions, in groups that one compilation bears.
  static let instrumentations = [
    [
      "-fsanitize=address", "-fsanitize-coverage=trace-pc-guard", "-fprofile-instr-generate", "-finstrument-functions",
      "-fstack-protector-all", "-pg",
    ],
    ["-fsanitize=thread,undefined", "-fprofile-generate"], ["-fsanitize=memory,integer,implicit-conversion"],
    // The functions that write the counters at exit have no source, and are instrumented like any.
    ["-fprofile-arcs"], ["-fsanitize=hwaddress"],
  ]

  /// Symbols that instrumented functions refer to or count in. Not the runtime's initialisation, of which every object has
  /// one that runs at the start, nor the registration of global variables.
  private func instrumentation(of source: String, _ flags: [String]) throws -> [String] {
    let directory = try TemporaryDirectory("instrumented")
    let object = "\(directory.path)/object.o"
    let compiled = try ChildProcess(
      [
        "\(try Toolchain.path())/bin/clang", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror",
        "-Wno-unknown-attributes",
        "-D_GNU_SOURCE", "-I\(Self.root)/CCrashSupport/include", "-I\(Self.root)/Sources/CCrashFormat/include", "-c",
        "\(Self.root)/\(source)", "-o", object,
      ] + flags, environment: ["TMPDIR": directory.path]
    ).run()
    try #require(compiled.status == .exited(0), "\(compiled.errorText)")
    let symbols = try ChildProcess(["/usr/bin/env", "nm", "--format=just-symbols", object]).run()
    let marks = [
      "__asan_report", "__asan_load", "__asan_store", "__asan_handle", "__asan_stack", "__asan_mem", "__tsan_func",
      "__tsan_read", "__tsan_write", "__tsan_unaligned", "__tsan_atomic", "__tsan_mem", "__msan_warning",
      "__msan_chain",
      "__msan_mem", "__msan_param", "__msan_retval", "__hwasan_load", "__hwasan_store", "__hwasan_tag", "__hwasan_mem",
      "__ubsan", "__sanitizer_cov", "__sancov", "__cyg_profile", "mcount", "__fentry__", "__stack_chk",
      "__profc", "__profd", "__llvm_gcov_ctr",
    ]
    return symbols.text.split(separator: "\n").map(String.init).filter { name in
      marks.contains { name.hasPrefix($0) }
    }
  }

  @Test(arguments: crashPath) func nothingIsInstrumented(source: String) throws {
    for flags in Self.instrumentations {
      let found = try instrumentation(of: source, flags)
      #expect(found.isEmpty, "\(source) with \(flags.joined(separator: " ")): \(found)")
    }
  }

  /// The other files are, as everything in their program: each group of options is seen.
  @Test func theRestIsInstrumented() throws {
    for flags in Self.instrumentations {
      // The sources of a host, of which all may be had.
      let found = try instrumentation(of: "Tests/CCrashSupportTests/Faults/lives.c", flags)
      #expect(found.count >= flags.count, "\(flags.joined(separator: " ")): \(found)")
    }
  }
}
