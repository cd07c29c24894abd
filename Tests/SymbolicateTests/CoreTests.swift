import Foundation
import Glibc
import TestSupport
import Testing

/// Cores as input: whole, compressed, cut, damaged, and away from the machine that they come from. That their frames are the
/// debugger's is held to by the fault programs (`CoreReading`).
@Suite(.enabled(if: coresBecomeFiles, "cores do not become files here"))
struct CoreTests {
  private static let source = """
    #include <stdlib.h>
    #include <pthread.h>
    #include <unistd.h>
    __attribute__((noinline)) static void fail(int x) { if (x) abort(); }
    __attribute__((noinline)) static void work(int x) { fail(x); __asm__ volatile(""); }
    static void *wait_here(void *ready) { write(*(int *)ready, "", 1); pause(); return 0; }
    int main(int argc, char **argv) {
      (void)argv;
      pthread_t thread;
      int ends[2];
      char byte;
      if (pipe(ends)) return 1;
      pthread_create(&thread, 0, wait_here, &ends[1]);
      if (read(ends[0], &byte, 1) != 1) return 1;
      work(argc);
      return 0;
    }

    """

  private let folder: TemporaryDirectory
  private var program: String { folder.path + "/victim" }
  private let core: String

  init() throws {
    folder = try TemporaryDirectory("cores")
    try write(Array(Self.source.utf8), to: folder.path + "/victim.c")
    let build = try ChildProcess(
      ["/usr/bin/env", "gcc", "-O1", "-g", "-Wl,--build-id", "victim.c", "-o", "victim"], directory: folder.path
    ).run()
    try #require(build.status == .exited(0), "\(build.errorText)")
    var child = ChildProcess([folder.path + "/victim"], directory: folder.path)
    child.coreLimit = .max
    #expect(try child.run().status == .signaled(SIGABRT))
    let name = try #require(folder.names().first { $0.hasPrefix("core") })
    core = folder.path + "/" + name
  }

  private func json(_ arguments: String...) throws -> [String: Any] {
    var process = ChildProcess([SymbolicateTool.path, "--no-cache", "-f", "json"] + arguments)
    process.environment = ["TMPDIR": folder.path]
    let outcome = try process.run()
    #expect(outcome.status == .exited(0) || outcome.status == .exited(1), "\(outcome.errorText)")
    return try #require(try JSONSerialization.jsonObject(with: Data(outcome.output)) as? [String: Any])
  }

  private func functions(_ report: [String: Any], thread: Int = 0) -> [String] {
    let threads = report["threads"] as? [[String: Any]] ?? []
    guard thread < threads.count else { return [] }
    return (threads[thread]["frames"] as? [[String: Any]] ?? []).compactMap { $0["function"] as? String }
  }

  @Test func bothThreadsTheSignalAndTheProgram() throws {
    let report = try json(core)
    #expect(Array(functions(report).drop { $0 != "fail" }.prefix(3)) == ["fail", "work", "main"])
    #expect(functions(report, thread: 1).contains("wait_here"))
    #expect(report["type"] as? String == "SIGABRT" && report["kind"] as? String == "crash")
    #expect((report["process"] as? [String: Any])?["executable"] as? String == program)
    #expect(report["stack_hash_quality"] as? String == "dwarf")
    let time = try #require(modified(core))
    #expect((report["timestamp"] as? String)?.hasPrefix(Self.date(time.tv_sec)) == true)
    // Read twice, it is the same report.
    #expect(try json(core)["id"] as? String == report["id"] as? String)
  }

  private func modified(_ path: String) -> timespec? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mtim : nil
  }

  private static func date(_ seconds: Int) -> String {
    let format = DateFormatter()
    format.timeZone = TimeZone(identifier: "UTC")
    format.locale = Locale(identifier: "en_US_POSIX")
    format.dateFormat = "yyyy-MM-dd'T'HH:mm:ss"
    return format.string(from: Date(timeIntervalSince1970: TimeInterval(seconds)))
  }

  @Test func compressedIsTheSame() throws {
    let packed = folder.path + "/packed.zst"
    let pack = try ChildProcess(["/usr/bin/env", "zstd", "-q", core, "-o", packed]).run()
    try #require(pack.status == .exited(0), "\(pack.errorText)")
    let time = try #require(modified(core))
    #expect(utimensat(AT_FDCWD, packed, [time, time], 0) == 0)
    let (one, two) = (try json(core), try json(packed))
    #expect(NSDictionary(dictionary: one) == NSDictionary(dictionary: two))
    #expect(!folder.names().contains { $0.hasPrefix("symbolicate-") })
  }

  /// Standard input may be a pipe, which nobody can read here and there, or the file itself.
  @Test(arguments: ["cat core | symbolicate -", "symbolicate - <core", "cat core.zst | symbolicate -"])
  func standardInputMayBeACore(_ command: String) throws {
    let packed = folder.path + "/core.zst"
    let pack = try ChildProcess(["/usr/bin/env", "zstd", "-qf", core, "-o", packed]).run()
    try #require(pack.status == .exited(0), "\(pack.errorText)")
    let line = command.replacingOccurrences(of: "symbolicate -", with: "'\(SymbolicateTool.path)' --no-cache -f json -")
      .replacingOccurrences(of: "core.zst", with: "'\(packed)'")
      .replacingOccurrences(of: "cat core ", with: "cat '\(core)' ").replacingOccurrences(
        of: "<core", with: "<'\(core)'")
    let outcome = try ChildProcess(["/bin/sh", "-c", line], environment: ["TMPDIR": folder.path]).run()
    let report = try #require(
      try JSONSerialization.jsonObject(with: Data(outcome.output)) as? [String: Any], "\(outcome.errorText)")
    #expect(functions(report) == functions(try json(core)))
    #expect(!folder.names().contains { $0.hasPrefix("symbolicate-") })
  }

  /// Without the program there are addresses and a sentence about it; with it, wherever it lies, all names.
  @Test func theProgramMayLieElsewhere() throws {
    let whole = try json(core)
    let elsewhere = folder.path + "/elsewhere"
    #expect(mkdir(elsewhere, 0o700) == 0 && rename(program, elsewhere + "/renamed") == 0)
    let without = try json(core)
    #expect(!functions(without).contains("work"))
    #expect((without["notes"] as? [String] ?? []).contains { $0.contains("victim") })
    for way in [["--exe", elsewhere + "/renamed"], ["--debug-dir", elsewhere]] {
      let found = try json(way[0], way[1], core)
      #expect(functions(found) == functions(whole) && functions(found, thread: 1) == functions(whole, thread: 1))
    }
  }

  @Test func aDirectoryOfCoresIsGrouped() throws {
    let outcome = try ChildProcess([SymbolicateTool.path, "group", "--no-cache", "-f", "ndjson", folder.path]).run()
    #expect(outcome.text.contains("\"count\":1"), "\(outcome.errorText)")
    #expect(outcome.text.contains("fail"))
  }

  @Test func whatIsNoCoreIsToldFromOne() throws {
    let text = folder.path + "/text.zst"
    let pack = try ChildProcess(["/usr/bin/env", "zstd", "-q", folder.path + "/victim.c", "-o", text]).run()
    try #require(pack.status == .exited(0))
    let outcome = try SymbolicateTool.run(text)
    #expect(outcome.status == .exited(2))
    #expect(outcome.errorText.contains("text.zst") && outcome.errorText.contains("decompresses"))
    let bytes = try #require(contents(of: text))
    try write(Array(bytes.prefix(bytes.count / 2)), to: text)
    #expect(try SymbolicateTool.run(text).status == .exited(2))
  }

  /// Cut anywhere and changed anywhere, it is a report with less in it or an error that names it, and never the end of the
  /// tool.
  @Test func damagedCores() throws {
    let whole = try #require(contents(of: core))
    let damaged = folder.path + "/damaged"
    func check(_ bytes: [UInt8], _ what: String) throws {
      try write(bytes, to: damaged)
      let outcome = try SymbolicateTool.run("--no-cache", damaged)
      guard case .exited(let code) = outcome.status, code <= 2 else {
        Issue.record("\(what): \(outcome.status)")
        return
      }
      #expect(code != 2 || outcome.errorText.contains("damaged"), "\(what): \(outcome.errorText)")
      #expect(!outcome.errorText.contains("ended in SIG"), "\(what): \(outcome.errorText)")
    }
    for part in 0..<24 { try check(Array(whole.prefix(whole.count * part / 24)), "cut at \(part)/24") }
    var random = SystemRandomNumberGenerator()
    for _ in 0..<60 {
      var bytes = whole
      // Headers and notes, which say where everything is.
      for _ in 0..<3 { bytes[Int.random(in: 18..<min(bytes.count, 12_000), using: &random)] = .random(in: 0...255) }
      try check(bytes, "changed")
    }
  }
}
