import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

struct OutputTests {
  @Test func oneReport() throws {
    let folder = try TemporaryDirectory()
    let path = try folder.file("a.json", plainReport().json())
    let outcome = try SymbolicateTool.run("-f", "json", path)
    #expect(outcome.status == .exited(0))
    let object = try #require(JSONSerialization.jsonObject(with: Data(outcome.output)) as? [String: Any])
    #expect(object["reason"] as? String == "segv")
    #expect(object["message"] as? String == "mail of [redacted]")
    #expect((object["stack_hash"] as? String)?.count == 32)
    // Its own output is input, and changes nothing any more.
    let again = try SymbolicateTool.run("-f", "json", "-", input: outcome.output)
    #expect(again.output == outcome.output)
    let array = try SymbolicateTool.run("-f", "json", "--pretty", folder.path)
    #expect((try JSONSerialization.jsonObject(with: Data(array.output)) as? [Any])?.count == 1)
  }

  /// Every field into which somebody may have written a person's address; the list is held by `RedactedReportTests`.
  @Test(arguments: [["-f", "json"], ["-f", "ndjson"], ["-f", "text", "--threads", "all"], ["group", "-f", "json"]])
  func whatIsReadIsRedacted(_ arguments: [String]) throws {
    let address = "alice@" + "example.com"
    var report = plainReport()
    report.userID = address
    report.operation = address
    report.tags = [Tag(key: address, value: address)]
    report.notes = [address]
    report.process = ProcessInfo(executable: "/home/alice/\(address)/orderd", host: address)
    report.breadcrumbs = [
      Breadcrumb(timestamp: Timestamp(rawValue: 0), category: address, message: address)
    ]
    report.threads[0].name = address
    var tool = ChildProcess([SymbolicateTool.path] + arguments + ["-"])
    tool.input = report.json()
    let outcome = try tool.run()
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(!outcome.text.contains("alice") && !outcome.errorText.contains("alice"), "\(outcome.text)")
  }

  @Test func earlierHashIsKept() throws {
    var report = plainReport()
    let earlier = StackHash(digits: String(repeating: "a", count: 32), quality: .offsets)
    report.stackHash = earlier
    let outcome = try SymbolicateTool.run("-f", "json", "-", input: report.json())
    #expect(outcome.text.contains(#""previous_stack_hashes":[{"stack_hash":"\#(earlier.digits)""#))
  }

  @Test func directoryIsAList() throws {
    let folder = try TemporaryDirectory()
    for (number, release) in ["1.0", "1.1", "1.1"].enumerated() {
      let id = "0192a3b4-c5d\(number)-7e8f-9a0b-1c2d3e4f5a6b"
      _ = try folder.file("new/\(id).json", plainReport(id, release: release).json())
    }
    _ = try folder.file("quarantine/bad.json", [1])
    let outcome = try SymbolicateTool.run("-v", folder.path)
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.errorText.contains("quarantine: skipped"))
    let lines = outcome.text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines[0].contains("c5d2") && lines[1].contains("c5d1") && lines[2].contains("c5d0"))
    #expect(lines[4].hasPrefix("COUNT  FIRST SEEN"))
    #expect(lines[5].hasPrefix("    3  2026-11-30 05:12  2026-11-30 05:12  1.1 (2), 1.0 (1)  segv"))
    let limited = try SymbolicateTool.run("--limit", "1", "-f", "ndjson", folder.path).text.split(separator: "\n")
    #expect(limited.count == 2)

    let group = try SymbolicateTool.run("group", "-f", "ndjson", folder.path).text.split(separator: "\n")
    #expect(group.count == 2)
    #expect(group[0].contains(#""count":3,"#))
    // The same file under two names is one crash.
    let twice = try SymbolicateTool.run("group", "-f", "json", folder.path, folder.path + "/new").text
    #expect(twice.contains(#""count":3,"#))
  }

  @Test func explanation() throws {
    let text = try SymbolicateTool.run("--explain", "-", input: plainReport().json()).text
    #expect(text.contains("Stack hash ") && text.contains("CLASS") && text.contains("RULE"))
  }

  @Test func outputFileAppearsComplete() throws {
    let folder = try TemporaryDirectory()
    let path = folder.path + "/out.txt"
    let outcome = try SymbolicateTool.run("-o", path, "-", input: plainReport().json())
    #expect(outcome.status == .exited(0) && outcome.output.isEmpty)
    #expect(String(decoding: try #require(contents(of: path)), as: UTF8.self).hasPrefix("*** Program crashed"))
    // Nothing produced: what was there stays.
    let before = contents(of: path)
    for format in ["text", "json", "ndjson"] {
      #expect(try SymbolicateTool.run("-o", path, "-f", format, "/nonexistent/x").status == .exited(2))
      #expect(contents(of: path) == before)
      #expect(try SymbolicateTool.run("-o", path + "2", "-f", format, "/nonexistent/x").status == .exited(2))
    }
    #expect(folder.names() == ["out.txt"])
    #expect(try SymbolicateTool.run("-o", "/nonexistent/x", "-", input: plainReport().json()).status == .exited(2))
  }

  @Test func closedPipeIsNoError() throws {
    let folder = try TemporaryDirectory()
    let line = plainReport().json() + [10]
    let path = try folder.file("many.json", Array(repeatElement(line, count: 2_000).joined()))
    let script = "\"$0\" -f ndjson \"$1\" | head -n 1 > /dev/null; echo ${PIPESTATUS[0]}"
    let outcome = try ChildProcess(["/bin/bash", "-c", script, SymbolicateTool.path, path]).run()
    #expect(outcome.text == "0\n")
    #expect(outcome.errors.isEmpty, "\(outcome.errorText)")
  }

  @Test func colorFollowsTheRules() throws {
    let input = plainReport().json()
    #expect(!(try SymbolicateTool.run("-", input: input).text.contains("\u{1b}")))
    #expect(try SymbolicateTool.run("--color", "always", "-", input: input).text.contains("\u{1b}[1m"))
    #expect(
      try SymbolicateTool.run("-", input: input, environment: ["CLICOLOR_FORCE": "1", "NO_COLOR": ""]).text.contains(
        "\u{1b}[1m"))
    let both = ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"]
    #expect(!(try SymbolicateTool.run("-", input: input, environment: both).text.contains("\u{1b}")))
  }

  /// A program that reads the output gets a whole document, whatever the inputs were.
  @Test func onlyErrors() throws {
    for command in [[], ["group"]] {
      let json = try ChildProcess([SymbolicateTool.path] + command + ["-f", "json", "/nonexistent/x"]).run()
      #expect(json.status == .exited(2))
      #expect(json.text == "[]\n")
      let lines = try ChildProcess([SymbolicateTool.path] + command + ["-f", "ndjson", "/nonexistent/x"]).run()
      #expect(lines.status == .exited(2))
      let groups = command.isEmpty ? "" : #""groups":0,"#
      #expect(
        lines.text == #"{"schema":"symbolicate-error/1","file":"/nonexistent/x","message":"no such file or directory"}"#
          + "\n" + #"{"schema":"symbolicate-summary/1","reports":0,"incomplete_reports":0,"# + groups
          + #""frames":0,"unresolved_frames":0,"errors":1,"skipped":0}"# + "\n")
    }
  }

  private func reportLine(_ id: String, second: Int64) -> [UInt8] {
    var report = plainReport(id)
    report.timestamp = Timestamp(rawValue: (1_796_000_000 + second) * 1_000_000_000)
    return report.json() + [10]
  }

  /// The latest reports are the latest ones of all operands, files and lines.
  @Test func limitIsOverAllInputs() throws {
    let folder = try TemporaryDirectory()
    let first = try folder.file("a/x.ndjson", reportLine("a1", second: 1) + reportLine("a9", second: 9))
    let second = try folder.file("b/y.ndjson", reportLine("b5", second: 5) + reportLine("b8", second: 8))
    func ids(_ arguments: [String]) throws -> [Substring] {
      let text = try ChildProcess([SymbolicateTool.path, "-f", "ndjson"] + arguments).run().text
      return text.split(separator: "\n").compactMap { line in
        line.hasPrefix(#"{"schema":"crash-report/1""#) ? line.split(separator: "\"")[7] : nil
      }
    }
    for inputs in [
      [first, second], [second, first], [folder.path + "/a", folder.path + "/b"], [folder.path], [folder.path, first],
    ] {
      #expect(try ids(["--limit", "2"] + inputs) == ["a9", "b8"])
      #expect(try ids(["--limit", "9"] + inputs) == ["a9", "b8", "b5", "a1"])
    }
    let many = (0..<500).flatMap { reportLine("r\($0)", second: Int64(($0 * 7) % 500)) }
    #expect(try ids(["--limit", "3", try folder.file("many", many)]) == ["r357", "r214", "r71"])
  }

  /// Directories are merged, too: a newer file of the second one comes first.
  @Test func listIsOverAllDirectories() throws {
    let folder = try TemporaryDirectory()
    for number in 0..<4 {
      let id = "0192a3b4-c5d\(number)-7e8f-9a0b-1c2d3e4f5a6b"
      _ = try folder.file("\(number % 2)/\(id).json", plainReport(id).json())
    }
    let text = try SymbolicateTool.run(folder.path + "/0", folder.path + "/1").text
    let places = text.split(separator: "\n").prefix(4).map { $0.suffix(41).prefix(13) }
    #expect(places == ["0192a3b4-c5d3", "0192a3b4-c5d2", "0192a3b4-c5d1", "0192a3b4-c5d0"])
  }

  /// Compilers give the line 0 to code that they made up.
  @Test func noLineIsNoNumber() throws {
    var report = plainReport()
    report.threads[0].frames = [
      .symbolicated(
        SymbolicatedFrame(
          captured: CapturedFrame(kind: .programCounter, address: Address(rawValue: 0x1234)), status: .resolved,
          function: "orderd.Store.load()", file: "/src/orderd/Store.swift", line: 0, inApp: true,
          hasDebugInformation: true))
    ]
    let table = try SymbolicateTool.run("group", "-", input: report.json()).text
    #expect(table.contains("Store.swift"), "\(table)")
    let text = try SymbolicateTool.run("-", input: report.json()).text
    #expect(text.contains("at /src/orderd/Store.swift\n"), "\(text)")
    let json = try SymbolicateTool.run("group", "-f", "json", "-", input: report.json()).text
    #expect(!json.contains(#""line":0"#))
    #expect(!table.contains(":0") && !text.contains("Store.swift:0"))
  }

  /// Ended from outside, the tool leaves nothing behind and says what ended it.
  @Test(arguments: [SIGTERM, SIGINT, SIGHUP])
  func signalRemovesTheUnfinishedFile(number: CInt) throws {
    let folder = try TemporaryDirectory()
    // The first operand's error says that the file is there and that standard input is waited for.
    let script = "exec \"$0\" -o \"$1/out\" /nonexistent/x - 2>&1"
    let child = try ChildProcess(["/bin/sh", "-c", script, SymbolicateTool.path, folder.path]).start()
    #expect(child.readLine().contains("/nonexistent/x"))
    #expect(folder.names() == ["out.\(child.processID).tmp"])
    #expect(kill(child.processID, number) == 0)
    while folder.names() != [] && kill(child.processID, 0) == 0 && !hasEnded(child.processID) { sched_yield() }
    let outcome = try child.finish()
    #expect(outcome.status == .signaled(number))
    #expect(folder.names().isEmpty)
  }

  /// `nohup`: a signal that was ignored before stays so.
  @Test func ignoredSignalStaysIgnored() throws {
    let folder = try TemporaryDirectory()
    let script = "trap '' HUP; exec \"$0\" -o \"$1/out\" /nonexistent/x - 2>&1"
    let child = try ChildProcess(["/bin/sh", "-c", script, SymbolicateTool.path, folder.path]).start()
    #expect(child.readLine().contains("/nonexistent/x"))
    #expect(kill(child.processID, SIGHUP) == 0)
    #expect(try child.finish(input: plainReport().json()).status == .exited(1))
    #expect(folder.names() == ["out"])
  }

  /// The child is dead and not yet waited for.
  private func hasEnded(_ pid: pid_t) -> Bool {
    var information = siginfo_t()
    return waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0 && information.si_signo == SIGCHLD
  }

  @Test func hiddenCharacters() throws {
    var report = plainReport()
    report.message = "pay\u{202e}lap\u{200b}\u{ad}\u{2066}"
    report.service = "or\u{2060}derd"
    for arguments in [
      ["-"], ["-f", "json", "-"], ["group", "-"], ["group", "-f", "json", "-"], ["-f", "ndjson", "-"],
    ] {
      var process = ChildProcess([SymbolicateTool.path] + arguments)
      process.input = report.json()
      let text = try process.run().text
      #expect(!text.isEmpty)
      #expect(!text.unicodeScalars.contains { [0x202E, 0x200B, 0xAD, 0x2066, 0x2060].contains($0.value) })
    }
    #expect(try SymbolicateTool.run("-", input: report.json()).text.contains(#"pay\u{202e}lap\u{200b}"#))
    #expect(try SymbolicateTool.run("-f", "json", "-", input: report.json()).text.contains(#"pay\u202elap\u200b"#))
  }
}
