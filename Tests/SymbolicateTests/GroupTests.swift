import CrashModel
import Foundation
import TestSupport
import Testing

struct GroupTests {
  private func group(_ arguments: String..., input: [UInt8] = []) throws -> ChildProcess.Outcome {
    var process = ChildProcess([SymbolicateTool.path, "group", "--no-cache", "-q"] + arguments)
    process.input = input
    return try process.run()
  }

  private func objects(_ outcome: ChildProcess.Outcome) throws -> [[String: Any]] {
    try outcome.text.split(separator: "\n").map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  /// Three bugs over three releases: 0 in all, 1 in the first only, 2 in the last only.
  private func month() -> [CrashReport] {
    [
      namedReport(1, bug: 0, release: "1.0.0", day: 1), namedReport(2, bug: 0, release: "1.1.0", day: 5, host: "h2"),
      namedReport(3, bug: 0, release: "1.2.0", day: 9), namedReport(4, bug: 1, release: "1.0.0", day: 2),
      namedReport(5, bug: 1, release: "1.0.0", day: 3), namedReport(6, bug: 2, release: "1.2.0", day: 9),
    ]
  }

  @Test func ndjson() throws {
    let folder = try TemporaryDirectory("group")
    let file = try folder.file("month.ndjson", reports: month())
    let outcome = try group("--format", "ndjson", file)
    let lines = try objects(outcome)
    #expect(
      lines.map { $0["schema"] as? String } == Array(repeating: "crash-group/1", count: 3) + ["symbolicate-summary/1"])
    #expect(lines.prefix(3).map { $0["count"] as? Int } == [3, 2, 1])
    #expect(lines[0]["title"] as? String == "segv in orderd.lookUp0()")
    #expect(lines[0]["days"] as? [String: Int] == ["2026-11-01": 1, "2026-11-05": 1, "2026-11-09": 1])
    #expect(lines[0]["hosts"] as? [String] == ["h1", "h2"])
    #expect(
      lines[0]["stack"] as? String
        == "0 lookUp0() at /build/orderd/Store.swift:10\n1 serve() at /build/orderd/Store.swift:10")
    #expect(lines[0]["status"] == nil && lines[0]["members"] == nil)
    #expect(lines[3]["reports"] as? Int == 6 && lines[3]["groups"] as? Int == 3 && lines[3]["new_groups"] == nil)
  }

  /// The run in which the sample crashed is the one that its report names, whichever way it came.
  @Test func theRunOfTheSample() throws {
    let folder = try TemporaryDirectory("group")
    let reports = month().enumerated().map { index, report in
      var report = report
      report.runID = "01911111-0000-7000-8000-00000000000\(index)"
      return report
    }
    let file = try folder.file("month.ndjson", reports: reports)
    let byID = Dictionary(uniqueKeysWithValues: reports.map { ($0.id, $0.runID) })
    let direct = try objects(try group("--format", "ndjson", file))
    let state = folder.path + "/state.json"
    #expect(try group("--partial", "-o", state, file).status == .exited(0))
    let joined = try objects(try group("--format", "ndjson", state))
    for lines in [direct, joined] {
      #expect(lines.count == 4)
      for line in lines.dropLast() {
        #expect(line["run_id"] as? String == byID[try #require(line["sample"] as? String)])
      }
    }
  }

  @Test func sorted() throws {
    let folder = try TemporaryDirectory("group")
    let file = try folder.file("month.ndjson", reports: month())
    func bugs(_ order: String) throws -> [String] {
      try objects(try group("--format", "ndjson", "--sort", order, file)).compactMap { $0["title"] as? String }
        .map { String($0.dropLast(2).suffix(1)) }
    }
    #expect(try bugs("count") == ["0", "1", "2"])
    #expect(try bugs("last-seen") == ["2", "0", "1"])
    #expect(try bugs("first-seen") == ["2", "1", "0"])
    let limited = try group("--sort", "first-seen", "--limit", "1", file).text
    #expect(limited.contains("lookUp2") && !limited.contains("lookUp1") && limited.contains("2 more groups"))
  }

  @Test func members() throws {
    let folder = try TemporaryDirectory("group")
    let file = try folder.file("month.ndjson", reports: month())
    // A report that is in two files is one.
    let again = try folder.file("again.ndjson", reports: Array(month().prefix(3)))
    let lines = try objects(try group("--format", "ndjson", "--members", file, again))
    #expect(lines[0]["count"] as? Int == 3)
    let ids = lines[0]["members"] as? [String]
    #expect(ids == [3, 2, 1].map { "01900000-0000-7000-8000-00000000000\($0)" })
    let text = try group("--members", file).text
    #expect(text.contains("\n  01900000-0000-7000-8000-000000000003\n"))
    #expect(try objects(try group("--format", "ndjson", file, again))[0]["count"] as? Int == 6)
  }

  @Test func since() throws {
    let folder = try TemporaryDirectory("group")
    var undated = namedReport(7)
    undated.timestamp = nil
    var fresh = namedReport(8, bug: 3)
    fresh.timestamp = Timestamp(rawValue: Int64(Date().timeIntervalSince1970) * 1_000_000_000 - 3_600_000_000_000)
    let file = try folder.file("month.ndjson", reports: month() + [undated, fresh])
    var summary = try #require(try objects(try group("--format", "ndjson", "--since", "2026-11-05", file)).last)
    #expect(summary["reports"] as? Int == 4 && summary["older_reports"] as? Int == 3)
    #expect(summary["undated_reports"] as? Int == 1)
    summary = try #require(
      try objects(try group("--format", "ndjson", "--since", "2026-11-09T00:00:03Z", file)).last)
    #expect(summary["reports"] as? Int == 3)
    for length in ["2h", "120m", "7200s", "1d", "1w"] {
      let lines = try objects(try group("--format", "ndjson", "--since", length, file))
      #expect(lines.contains { $0["title"] as? String == "segv in orderd.lookUp3()" }, "\(length)")
    }
    #expect(try objects(try group("--format", "ndjson", "--since", "30m", file)).last?["reports"] as? Int == 0)
    for wrong in ["", "yesterday", "7", "-1d", "1y", "99999999999999999999d", "9999999999w", "2026-13-01"] {
      let outcome = try group("--since", wrong, file)
      #expect(outcome.status == .exited(64) && outcome.errorText.contains("a length of time"), "\(wrong)")
    }
  }

  @Test func baseline() throws {
    let folder = try TemporaryDirectory("group")
    let old = try folder.file("old.ndjson", reports: Array(month().prefix(5)))
    let new = try folder.file(
      "new.ndjson", reports: [month()[2], month()[5], namedReport(9, bug: 0, release: "1.3.0", day: 12)])
    let state = folder.path + "/groups.json"
    #expect(try group("--partial", "-o", state, old).status == .exited(0))
    // A state, and what the JSON formats write.
    let list = folder.path + "/list.json"
    let stream = folder.path + "/list.ndjson"
    #expect(try group("--format", "json", "-o", list, old).status == .exited(0))
    #expect(try group("--format", "ndjson", "-o", stream, old).status == .exited(0))
    for baseline in [state, list, stream] {
      let lines = try objects(try group("--format", "ndjson", "--baseline", baseline, new))
      #expect(lines.compactMap { $0["status"] as? String } == ["known", "new", "gone"], "\(baseline)")
      #expect((lines[0]["baseline"] as? [String: Any])?["count"] as? Int == 3)
      #expect((lines[0]["baseline"] as? [String: Any])?["new_releases"] as? [String] == ["1.3.0"])
      let summary = try #require(lines.last)
      #expect(
        summary["groups"] as? Int == 2 && summary["new_groups"] as? Int == 1 && summary["gone_groups"] as? Int == 1)
    }
    let text = try group("--baseline", state, new)
    #expect(text.text.hasPrefix("STATUS ") && text.text.hasSuffix("\n1 new, 0 regressed, 1 known, 1 gone\n"))
    #expect(text.status == .exited(0))
    #expect(try group("--baseline", state, "--fail-on", "new", new).status == .exited(3))
    #expect(try group("--baseline", state, "--fail-on", "regressed", new).status == .exited(0))
    #expect(try group("--baseline", state, "--fail-on", "new", old).status == .exited(0))

    // Mended in 1.1.0, and seen in 1.2.0 and 1.3.0.
    let hash = try #require(try objects(try group("--format", "ndjson", new))[0]["stack_hash"] as? String)
    let resolved = try ChildProcess(
      [SymbolicateTool.path, "group", "resolve", "--in", "1.1.0", state, String(hash.prefix(8))]
    ).run()
    #expect(resolved.status == .exited(0), "\(resolved.errorText)")
    #expect(resolved.text == "\(hash)  resolved in 1.1.0  segv in orderd.lookUp0()\n")
    let failed = try ChildProcess(
      [SymbolicateTool.path, "group", "--baseline", state, "--fail-on", "regressed", "--fail-on=new", new]
    ).run()
    #expect(failed.status == .exited(3) && failed.errorText.contains("--fail-on: 1 new, 1 regressed"))
    let line = try objects(try group("--format", "ndjson", "--baseline", state, new))[0]
    #expect(line["status"] as? String == "regressed" && line["resolved_in"] as? String == "1.1.0")
    // Taken back.
    let reopened = try ChildProcess([SymbolicateTool.path, "group", "resolve", "--reopen", state, hash]).run()
    #expect(reopened.text == "\(hash)  open  segv in orderd.lookUp0()\n")
    #expect(try group("--baseline", state, "--fail-on", "regressed", new).status == .exited(0))
  }

  @Test func resolveChangesNothingWhereItCannot() throws {
    let folder = try TemporaryDirectory("group")
    let state = folder.path + "/groups.json"
    let file = try folder.file("month.ndjson", reports: month())
    #expect(try group("--partial", "-o", state, file).status == .exited(0))
    #expect(chmod(state, 0o640) == 0)
    let before = try #require(contents(of: state))
    let hash = try #require(try objects(try group("--format", "ndjson", file))[0]["stack_hash"] as? String)
    for (words, message) in [
      (["--in", "2.0", state, "abcdef0123456789"], "no group has this stack hash"),
      (["--in", "2.0", state, String(hash.prefix(5))], "at least 6 digits"),
      (["--in", "2.0", state, hash, "0000000"], "no group has this stack hash"),
      (["--in", "2.0", file, hash], "crash-groups/1"),
    ] {
      let outcome = try ChildProcess([SymbolicateTool.path, "group", "resolve"] + words).run()
      #expect(
        outcome.status == .exited(2) && outcome.output.isEmpty && outcome.errorText.contains(message),
        "\(outcome.errorText)")
    }
    for words in [
      [state, hash], ["--in", "1", "--reopen", state, hash], ["--in", "1", state], ["--in", "1", "-", hash],
    ] {
      #expect(try ChildProcess([SymbolicateTool.path, "group", "resolve"] + words).run().status == .exited(64))
    }
    #expect(contents(of: state) == before)
    let done = try ChildProcess([SymbolicateTool.path, "group", "resolve", "--in", "2.0", state, hash]).run()
    #expect(done.status == .exited(0))
    var status = stat()
    #expect(stat(state, &status) == 0 && status.st_mode & 0o777 == 0o640)
    #expect(folder.names(in: "").sorted() == ["groups.json", "month.ndjson"])
  }

  @Test func usage() throws {
    let folder = try TemporaryDirectory("group")
    let file = try folder.file("a.json", namedReport(1).json())
    for (words, message) in [
      (["--fail-on", "new", file], "--baseline FILE"),
      (["--fail-on", "gone", "--baseline", file, file], "one of new, regressed"),
      (["--sort", "name", file], "one of count, last-seen, first-seen"),
      (["--format", "sentry", file], "one of text, json, ndjson, markdown, html"),
      (["--partial", "--format", "json", file], "the state that --partial writes"),
      (["--partial", "--sort", "count", file], "the state that --partial writes"),
      (["--partial", "--baseline", file, file], "the state that --partial writes"),
      (["merge"], "no states"),
    ] {
      let outcome = try ChildProcess([SymbolicateTool.path, "group"] + words).run()
      #expect(outcome.status == .exited(64) && outcome.errorText.contains(message), "\(words): \(outcome.errorText)")
    }
    let missing = try group("--baseline", folder.path + "/none", file)
    #expect(missing.status == .exited(2) && missing.output.isEmpty && missing.errorText.contains("no such file"))
    #expect(try group("--baseline", file, file).status == .exited(2))
  }
}

/// `--jobs N` says what one process says.
struct GroupJobsTests {
  private func run(_ arguments: [String], input: [UInt8] = []) throws -> ChildProcess.Outcome {
    var process = ChildProcess([SymbolicateTool.path, "group", "--no-cache"] + arguments)
    process.input = input
    return try process.run()
  }

  /// Files that are read in pieces, and others; lines that are no reports, cut ones, documents over many lines, text
  /// between them; images without files, and files without images.
  private func month(in folder: TemporaryDirectory) throws -> [String] {
    var lines: [UInt8] = []
    var index = 0
    while lines.count < 5 << 20 {
      var report = namedReport(index, bug: index % 9, release: "1.\(index % 4)", day: 1 + index % 20)
      report.notes = [String(repeating: "x", count: 9_000)]
      // Not named: a file is looked for.
      if index % 50 == 1 {
        report.threads[0].frames = [
          .captured(
            CapturedFrame(
              kind: .programCounter, address: Address(rawValue: 0x5000), imageIndex: 0,
              imageOffset: ImageOffset(rawValue: 0x1000)))
        ]
      }
      lines += report.json() + [0x0A]
      switch index % 60 {
      case 7: lines += Array("{\"schema\":\"crash-report/1\",\"id\":7}\n".utf8)
      case 13: lines += report.json().prefix(200) + [0x0A]
      case 21: lines += report.json(pretty: true) + [0x0A, 0x0A]
      case 33: lines += Array("{\"schema\":\"other/1\"}\nno JSON at all\n".utf8)
      default: break
      }
      index += 1
    }
    let large = try folder.file("month/large.ndjson", lines)
    _ = try folder.file("month/other.ndjson", lines.reversed())
    for index in 0..<20 { _ = try folder.file("month/r\(index).json", namedReport(9_000 + index, bug: index).json()) }
    return [large, folder.path + "/month"]
  }

  @Test(arguments: [
    ["--partial"], ["--partial", "--members", "--since", "2026-11-05"], ["--format", "ndjson", "-v"], [],
  ])
  func sameAsOne(flags: [String]) throws {
    let folder = try TemporaryDirectory("jobs")
    let inputs = try month(in: folder)
    for input in inputs {
      let one = try run(flags + [input])
      for jobs in ["2", "5"] {
        let several = try run(flags + ["--jobs", jobs, input])
        #expect(several.status == one.status)
        #expect(several.output == one.output, "\(jobs) \(input)")
        #expect(several.errorText == one.errorText, "\(jobs) \(input)")
      }
    }
    let bytes = try #require(contents(of: inputs[0]))
    let one = try run(flags + ["-"], input: bytes)
    let several = try run(flags + ["-j3", "-"], input: bytes)
    #expect(several.output == one.output && several.errorText == one.errorText && several.status == one.status)
    // What cannot be cut is read by one.
    let log = Array("before\n".utf8) + bytes.prefix(100_000)
    let plain = try run(flags + ["-"], input: log)
    let piped = try run(flags + ["-j3", "-"], input: log)
    #expect(piped.output == plain.output && piped.errorText == plain.errorText && piped.status == plain.status)
  }

  @Test func givenFiles() throws {
    let program = try BuiltProgram("orderd")
    let folder = program.folder
    let report = try program.report(place: folder.path + "/orderd")
    let file = try folder.file(
      "a.ndjson",
      reports: (0..<30).map { number in
        var copy = report
        copy.id = namedReport(number).id
        return copy
      })
    let other = try BuiltProgram("maild")
    for flags in [["-e", folder.path + "/orderd"], ["-e", other.folder.path + "/maild", "-d", folder.path + "/none"]] {
      let one = try run(["--format", "ndjson"] + flags + [file, file + ".none"])
      let several = try run(["--format", "ndjson", "--jobs", "3"] + flags + [file, file + ".none"])
      #expect(
        several.output == one.output && several.errorText == one.errorText && several.status == one.status,
        "\(several.errorText)")
    }
  }

  @Test func usage() throws {
    for wrong in ["0", "-1", "257", "two", ""] {
      #expect(try run(["--jobs", wrong, "x"]).status == .exited(64), "\(wrong)")
    }
  }
}
