import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// Crashes in logs of other tools, from the line to the name.
struct LogInputTests {
  private let program: BuiltProgram
  private let report: CrashReport

  init() throws {
    program = try BuiltProgram()
    report = try program.report(place: "/srv/program")
  }

  private func hex(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return "0x" + String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// As the runtime writes it with `symbolicate=off`.
  private func swiftLog(images: Bool = true) -> [String] {
    let frames = report.threads[0].frames.compactMap(\.captured)
    var lines = [
      "app/Cart.swift:12: Fatal error: no stock for alice@" + "example.com", "",
      "*** Signal 4: Backtracing from \(hex(frames[0].address.rawValue))... done ***", "",
      "*** Program crashed: Illegal instruction at \(hex(frames[0].address.rawValue)) ***", "",
      "Platform: x86_64 Linux (Debian GNU/Linux 12 (bookworm))", "", "Thread 0 \"program\" crashed:", "",
    ]
    for (index, frame) in frames.enumerated() {
      lines.append("\(index) \(frame.kind == .returnAddress ? "[ra]" : "    ") \(hex(frame.address.rawValue))")
    }
    lines += ["", "Registers:", "", "rax 0x0000000000000000  0", "", "Images (3 omitted):", ""]
    for image in images ? report.images : [] {
      lines.append(
        "\(hex(image.address.rawValue))–\(hex(image.address.rawValue + image.size)) \(image.buildID?.description ?? "") "
          + "\(image.name)  \(image.path)")
    }
    return lines + ["", "Backtrace took 0.02s", ""]
  }

  @Test func namesFramesOfALog() throws {
    let log = (["[ NOTICE ] Server starting"] + swiftLog() + ["restarted"]).map { "api-1  | \($0)" }
    let outcome = try SymbolicateTool.run(
      "-f", "json", "-e", program.path, "-", input: Array(log.joined(separator: "\n").utf8))
    // The other image has no file.
    #expect(outcome.status == .exited(1), "\(outcome.errorText)")
    let found = try #require(try JSONSerialization.jsonObject(with: Data(outcome.output)) as? [String: Any])
    let threads = try #require(found["threads"] as? [[String: Any]])
    let frames = try #require(threads[0]["frames"] as? [[String: Any]])
    #expect(frames.prefix(2).map { $0["function"] as? String } == ["inner", "outer"])
    #expect(frames.prefix(2).allSatisfy { ($0["file"] as? String)?.hasSuffix("program.c") == true })
    #expect(found["message"] as? String == "app/Cart.swift:12: Fatal error: no stock for [redacted]")
    #expect(found["reason"] as? String == "fatal")
    #expect(found["stack_hash_quality"] as? String == "dwarf")
  }

  /// Three processes, three log systems, one bug.
  @Test func groupsLogs() throws {
    let folder = try TemporaryDirectory()
    _ = try folder.file("a.log", Array(swiftLog().joined(separator: "\n").utf8))
    let compose = swiftLog().map { "api-1  | \($0)\napi-2  | \($0)" }
    _ = try folder.file("b.log", Array(compose.joined(separator: "\n").utf8))
    _ = try folder.file("other.txt", Array("nothing of the kind\n".utf8))
    let outcome = try SymbolicateTool.run("group", "-f", "ndjson", "-e", program.path, folder.path)
    #expect(outcome.status == .exited(1))
    let groups = try objects(outcome, schema: "crash-group/1")
    #expect(groups.count == 1)
    #expect(groups.first?["count"] as? Int == 3)
    #expect((groups.first?["title"] as? String)?.contains("inner") == true)
    let summary = try #require(try objects(outcome, schema: "symbolicate-summary/1").first)
    #expect(summary["errors"] as? Int == 0)
  }

  @Test func withoutImagesItIsIncomplete() throws {
    let log = swiftLog(images: false).joined(separator: "\n")
    let outcome = try SymbolicateTool.run("-f", "json", "-e", program.path, "-", input: Array(log.utf8))
    #expect(outcome.status == .exited(1))
    let found = try #require(try JSONSerialization.jsonObject(with: Data(outcome.output)) as? [String: Any])
    #expect((found["notes"] as? [String])?.contains { $0.contains("does not say where images were loaded") } == true)
  }

  /// A log without a crash is refused with what is read.
  @Test func nothingFound() throws {
    let outcome = try SymbolicateTool.run(
      "-", input: Array(String(repeating: "2026-11-30 info: all is well\n", count: 5_000).utf8))
    #expect(outcome.status == .exited(2))
    #expect(outcome.output.isEmpty)
    #expect(outcome.errorText.contains("found text that begins with \"2026-11-30 info"))
    #expect(outcome.errorText.contains("crash logs of the Swift runtime"))
  }

  /// An image that only has a name is the file of that name that was given.
  @Test func imagesByName() throws {
    let offset = try #require(report.threads[0].frames.first?.captured?.imageOffset).rawValue
    let base: UInt64 = 0x5555_5555_4000
    let log =
      "Stack trace of thread 7:\n#0  \(hex(base + offset)) n/a (program + 0x\(String(offset, radix: 16)))\n"
    let outcome = try SymbolicateTool.run("-f", "json", "-e", program.path, "-", input: Array(log.utf8))
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.text.contains("\"function\":\"inner\""))
    let without = try SymbolicateTool.run("-f", "json", "-", input: Array(log.utf8))
    #expect(without.status == .exited(1))
    #expect(!without.text.contains("\"function\""))
  }

  // MARK: --filter

  @Test func filterNamesFramesInPlace() throws {
    let lines = swiftLog()
    let log = lines.map { "api-1  | \($0)\nweb-1  | GET /orders" }.joined(separator: "\n") + "\n"
    let outcome = try SymbolicateTool.run("--filter", "-e", program.path, input: Array(log.utf8))
    let output = outcome.text.split(separator: "\n", omittingEmptySubsequences: false)
    let frames = output.filter { $0.hasPrefix("api-1  | 0") && $0.contains(" inner in program at ") }
    #expect(frames.count == 1, "\(outcome.text)")
    #expect(output.contains { $0.hasPrefix("api-1  | 1 [ra] ") && $0.contains(" outer in program at ") })
    // Nothing else is another, or has gone; and what another process says has not waited.
    let others = { (text: String) in
      text.split(separator: "\n").filter { !$0.contains("| 0 ") && !$0.contains("| 1 ") && $0.hasPrefix("api-1") }
        .sorted()
    }
    #expect(others(outcome.text) == others(log))
    #expect(output.filter { $0 == "web-1  | GET /orders" }.count == lines.count)
    // What comes out is input as good.
    let again = try SymbolicateTool.run("-f", "json", "-", input: outcome.output)
    #expect(again.text.contains("\"function\":\"inner\""))
  }

  /// A log system that writes JSON, with a document for each line of the crash, or one for all of it.
  @Test(arguments: [false, true]) func filterNamesFramesInJSON(isOneDocument: Bool) throws {
    let lines = swiftLog()
    func document(_ text: String) throws -> String {
      let object = ["level": "error", "message": text, "service": "api \"one\""]
      return String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
    }
    let documents = try isOneDocument ? [document(lines.joined(separator: "\n"))] : lines.map(document)
    let log = (["{\"level\":\"info\",\"message\":\"before\"}"] + documents).joined(separator: "\n") + "\n"
    let outcome = try SymbolicateTool.run("--filter", "-e", program.path, input: Array(log.utf8))
    let texts = try outcome.text.split(separator: "\n").map { line in
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
      return try #require(object?["message"])
    }
    if isOneDocument { #expect(texts.count == 2) }
    let output = texts.flatMap { $0.components(separatedBy: "\n") }
    #expect(output.first == "before")
    #expect(output.count { $0.hasPrefix("0 ") && $0.contains(" inner in program at ") } == 1, "\(output)")
    #expect(output.count { $0.hasPrefix("1 [ra] ") && $0.contains(" outer in program at ") } == 1, "\(output)")
    let others = { (lines: [String]) in lines.filter { !$0.hasPrefix("0 ") && !$0.hasPrefix("1 ") } }
    #expect(others(Array(output.dropFirst())) == others(lines))
    let again = try SymbolicateTool.run("-f", "json", "-", input: outcome.output)
    #expect(again.text.contains("\"function\":\"inner\""))
  }

  /// The runtime's own JSON is a document for programs and goes on as it is.
  @Test func filterLeavesCrashLogsInJSON() throws {
    let log = Array((LogInputTests.jsonLog + "\nbehind\n").utf8)
    #expect(try SymbolicateTool.run("--filter", input: log).output == log)
  }

  private static let jsonLog =
    #"{"timestamp":"2026-11-30T05:12:33.042000Z","kind":"crashReport","description":"Illegal instruction","#
    + #""faultAddress":"0x0000000000001000","platform":"Linux","architecture":"x86_64","threads":[{"crashed":true,"#
    + #""frames":[{"kind":"programCounter","address":"0x0000000000001000"}]}],"backtraceTime":0.01}"#

  /// A frame that says where its image begins has its name at once.
  @Test func filterNamesOffsetsAtOnce() throws {
    let offset = try #require(report.threads[0].frames.first?.captured?.imageOffset).rawValue
    let line = "    #0 0x55d0c0a0a1f0  (\(program.path)+0x\(String(offset, radix: 16))) (BuildId: \(program.buildID))\n"
    let outcome = try SymbolicateTool.run(
      "--filter", input: Array(("==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n" + line).utf8))
    #expect(outcome.text.contains(" in inner "), "\(outcome.text)")
    #expect(outcome.text.contains("program.c:1"))
  }

  @Test func filterChangesNoOtherByte() throws {
    var generator = SeededGenerator(seed: 7)
    var bytes: [UInt8] = []
    for _ in 0..<200_000 { bytes.append(UInt8.random(in: 0...255, using: &generator)) }
    let outcome = try SymbolicateTool.run("--filter", input: bytes)
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == bytes)
  }

  /// Whoever follows a log sees each line when it comes.
  @Test func filterDoesNotWait() throws {
    var input: [CInt] = [0, 0]
    var output: [CInt] = [0, 0]
    #expect(pipe(&input) == 0 && pipe(&output) == 0)
    // Other tests start programs meanwhile.
    for descriptor in input + output { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    defer { close(output[0]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input[0], 0)
    posix_spawn_file_actions_adddup2(&actions, output[1], 1)
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(SymbolicateTool.path), strdup("--filter"), nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    #expect(posix_spawn(&process, SymbolicateTool.path, &actions, nil, &arguments, environ) == 0)
    close(input[0])
    close(output[1])
    for line in ["one\n", "*** Program crashed: Aborted at 0x0000000000000001 ***\n", "Thread 0 crashed:\n", "two\n"] {
      #expect(
        line.utf8.withContiguousStorageIfAvailable { write(input[1], $0.baseAddress, $0.count) } == line.utf8.count)
      var received = ""
      while !received.hasSuffix("\n") {
        var byte: UInt8 = 0
        guard read(output[0], &byte, 1) == 1 else { break }
        received.append(String(decoding: [byte], as: UTF8.self))
      }
      #expect(received == line)
    }
    close(input[1])
    var status: CInt = 0
    #expect(waitpid(process, &status, 0) == process)
    #expect(status == 0)
  }

  @Test(arguments: [
    ["--filter", "a.log"], ["--filter", "-f", "json"], ["--filter", "--explain"], ["--filter", "--limit", "3"],
  ])
  func filterTakesALogAndNothingElse(_ arguments: [String]) throws {
    let outcome = try ChildProcess([SymbolicateTool.path] + arguments).run()
    #expect(outcome.status == .exited(64))
    #expect(outcome.errorText.contains("--filter"))
  }
}
