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
    // dl_iterate_phdr, readlink, strlen, strncmp and sysconf run at start only; _dl_find_object takes no lock.
    "images.c": ["dl_iterate_phdr", "_dl_find_object", "_r_debug", "readlink", "strlen", "strncmp", "sysconf"],
    "deadline.c": [],
    // dlsym and dladdr1 run at start only.
    "stages.c": ["dlsym", "dladdr1"],
    // sigaction and friends run when the handlers are installed.
    "hand_over.c": ["sigaction", "dladdr", "strstr", "__errno_location"],
    "handlers.c": ["sigfillset", "sigdelset"],
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
