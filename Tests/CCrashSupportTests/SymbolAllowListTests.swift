import Foundation
import TestSupport
import Testing

/// The objects that run in the handler may call only what is safe there.
@Suite struct SymbolAllowListTests {
  /// Memory functions of libc keep no state and take no lock.
  static let memory: Set = ["memcpy", "memset", "memcmp", "bcmp", "memmove", "strnlen"]

  /// For each source of the crash path: what else it may refer to, and why that is no danger.
  static let allowed: [String: Set<String>] = [
    "arch_x86_64.c": [], "capture_stack.c": ["getcontext"],
    "cfi.c": [],
    "unwind.c": [],
    // dlsym runs at start only; the two runtimes' functions are weak.
    "message.c": ["dlsym", "swift_getFatalErrorMessageBuffer", "__cxa_current_exception_type"],
    // dl_iterate_phdr, strlen, strncmp and sysconf run at start only; _dl_find_object takes no lock.
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
    // dlsym runs at start only; the runtime's functions are weak, and run in a stage that survives their faults.
    "async.c": [
      "dlsym", "swift_job_run", "swift_job_run_on_task_executor", "swift_job_run_on_serial_and_task_executor",
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
}
