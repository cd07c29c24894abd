import CrashModel
import Foundation
import TestSupport
import Testing

struct GroupStateTests {
  private func run(_ arguments: [String], input: [UInt8] = []) throws -> ChildProcess.Outcome {
    var process = ChildProcess([SymbolicateTool.path, "group"] + arguments)
    process.input = input
    return try process.run()
  }

  private func reports(_ count: Int) -> [CrashReport] {
    (0..<count).map { index in
      var report = namedReport(
        index, bug: index * index % 7, release: ["1.0.0", "1.1.0", nil, "main"][index % 4], day: index % 40,
        second: index % 11, host: "h\(index % 90)")
      report.message = index % 3 == 0 ? "text \"\(index)\" \u{202e} \u{1F600}\n" : nil
      report.suppressedCount = index % 5 == 0 ? index : nil
      report.runID = [nil, "run \(index)", "01911111-0000-7000-8000-\(100_000_000_000 + index)"][index % 3]
      return report
    }
  }

  /// What one run over everything writes, shards that were joined write as well: in any order, joined at once or one after
  /// the other, through files or a pipe, states among reports.
  @Test(arguments: [[], ["--members"]])
  func shards(flags: [String]) throws {
    let folder = try TemporaryDirectory("state")
    let reports = reports(400)
    let whole = try folder.file("whole.ndjson", reports: reports)
    let state = try run(["-q", "--partial", whole] + flags)
    #expect(state.status == .exited(0), "\(state.errorText)")
    #expect(try JSONSerialization.jsonObject(with: Data(state.output)) is [String: Any])
    var generator = SystemRandomNumberGenerator()
    var paths: [String] = []
    let shuffled = reports.shuffled(using: &generator)
    for shard in 0..<5 {
      let part = shuffled.indices.filter { $0 % 5 == shard }.map { shuffled[$0] }
      let file = try folder.file("part\(shard).ndjson", reports: part)
      paths.append(folder.path + "/part\(shard).json")
      #expect(try run(["-q", "--partial", "-o", paths[shard], file] + flags).status == .exited(0))
    }
    let flat = try run(["merge"] + paths.shuffled())
    #expect(flat.status == .exited(0) && flat.output == state.output)
    let left = folder.path + "/left.json"
    #expect(try run(["merge", "-o", left, paths[3], paths[0]]).status == .exited(0))
    // Into one that is read.
    #expect(try run(["merge", "-o", left, left, paths[4]]).status == .exited(0))
    let nested = try run(["merge", "-", left, paths[1]], input: try #require(contents(of: paths[2])))
    #expect(nested.output == state.output)
    // A state among reports; and alone, as groups.
    let mixed = try run(
      ["-q", "--partial", left, folder.path + "/part1.ndjson", folder.path + "/part2.ndjson"] + flags)
    #expect(mixed.output == state.output)
    let merged = try folder.file("merged.json", flat.output)
    for format in ["text", "json", "markdown", "html"] {
      let direct = try run(["-q", "--format", format, whole] + flags)
      #expect(try run(["-q", "--format", format, merged] + flags).output == direct.output, "\(format)")
    }
    // In a directory it is passed over: it was most likely made from what else is there.
    let other = try TemporaryDirectory("state")
    _ = try other.file("reports.ndjson", reports: reports)
    _ = try other.file("groups.json", flat.output)
    #expect(try run(["-q", "--partial", other.path] + flags).output == state.output)
  }

  /// Another tool may have laid the file out anew.
  @Test func anyLayout() throws {
    let folder = try TemporaryDirectory("state")
    let file = try folder.file("whole.ndjson", reports: reports(60))
    let state = try run(["-q", "--partial", "--members", file])
    let object = try JSONSerialization.jsonObject(with: Data(state.output))
    let pretty = try JSONSerialization.data(withJSONObject: object, options: [.prettyPrinted])
    #expect(try run(["merge", "-"], input: Array(pretty)).output == state.output)
  }

  private func expectRefused(_ bytes: [UInt8], _ message: String, _ note: String = "") throws {
    let folder = try TemporaryDirectory("state")
    let file = try folder.file("bad.json", bytes)
    let good = try folder.file(
      "good.json", try run(["-q", "--partial", try folder.file("a.ndjson", reports: reports(9))]).output)
    let before = contents(of: good)
    let outcome = try run(["merge", "-o", good, good, file])
    #expect(outcome.status == .exited(2), "\(note)\(outcome.status)")
    #expect(
      outcome.errorText.hasPrefix("symbolicate: \(file): ") && (message.isEmpty || outcome.errorText.contains(message)),
      "\(note)\(outcome.errorText)")
    // Nothing is lost.
    #expect(contents(of: good) == before)
    #expect(folder.names(in: "").sorted() == ["a.ndjson", "bad.json", "good.json"])
    #expect(try run(["--baseline", file, good]).status == .exited(2))
  }

  @Test func cutAnywhere() throws {
    let folder = try TemporaryDirectory("state")
    let file = try folder.file("whole.ndjson", reports: reports(12))
    let state = try run(["-q", "--partial", "--members", file]).output
    let good = try folder.file("good.json", state)
    // One process for each place would take long: the last line of each is what a reader gets that stops there.
    for length in stride(from: 0, to: state.count - 2, by: 397) {
      let outcome = try run(["merge", good, "-"], input: Array(state.prefix(length)))
      #expect(outcome.status == .exited(2) && outcome.output.isEmpty && !outcome.errors.isEmpty, "\(length)")
    }
  }

  @Test func changed() throws {
    let folder = try TemporaryDirectory("state")
    let file = try folder.file("whole.ndjson", reports: reports(12))
    let text = try run(["-q", "--partial", "--members", file]).text
    let cases: [(String, String, String)] = [
      ("crash-groups/1", "crash-groups/2", "schema"), (#""algorithm":"g1""#, #""algorithm":"g9""#, "made with \"g9\""),
      (#""group_count":"#, #""group_count":1"#, "group_count is 1"), (#""count":"#, #""count":-"#, "out of range"),
      (#""count":"#, #""count":99999999999999999999"#, "number"), (#""count":"#, #""count":1.5,"x":"#, "fraction"),
      (#""count":"#, #""counted":"#, "groups[0].count: missing"),
      (#""stack_hash":""#, #""stack_hash":"x"#, "32 lower-case hex digits"),
      (#""quality":"dwarf""#, #""quality":"magic""#, ""),
      (#""stack_hash_quality":"dwarf""#, #""stack_hash_quality":"magic""#, "expected one of offsets, symtab, dwarf"),
      (#""first_seen":""#, #""first_seen":"x"#, "an RFC 3339 time"), (#""days":{""#, #""days":{"x"#, "a date"),
      (#""hosts":["#, #""hosts":[7,"#, "groups[0].hosts[0]"),
      (#""releases":["#, #""releases":[{},"#, "release and count"),
      (#""members":["#, #""members":[{"times":0},"#, "out of range"),
      (#""groups":["#, #""groups":7,"g":["#, "no array of groups"),
      (#""groups":["#, #""groups":[7,"#, "group_count"), (#""groups":["#, #""groups":[,"#, ""), ("]", "", ""),
      (#""groups":["#, #""groups":[],"groups":["#, "second"), ("{", "[", ""), ("{", "", ""),
    ]
    for (old, new, message) in cases {
      guard let range = text.range(of: old) else {
        #expect(old == #""quality":"dwarf""#, "\(old) is not in the state")
        continue
      }
      try expectRefused(Array(text.replacingCharacters(in: range, with: new).utf8), message, "\(new): ")
    }
    try expectRefused(Array((text + text).utf8), "more than one document")
    try expectRefused([], "empty")
    try expectRefused([0xff, 0xfe, 0x00], "")
    try expectRefused(Array("{}".utf8), "crash-groups/1")
    try expectRefused(Array(repeating: UInt8(ascii: "["), count: 100_000), "cut off")
    try expectRefused(
      Array((#"{"schema":"crash-groups/1","groups":"# + String(repeating: "[", count: 100_000)).utf8), "cut off")
  }

  /// Numbers as large as they can be do not wrap around.
  @Test func hugeNumbers() throws {
    let folder = try TemporaryDirectory("state")
    let file = try folder.file("whole.ndjson", reports: reports(3))
    let text = try run(["-q", "--partial", "--members", file]).text
    let huge = text.replacingOccurrences(
      of: #""(count|reports|other_releases_count)":[0-9]+"#, with: #""$1":9223372036854775807"#,
      options: .regularExpression
    ).replacingOccurrences(
      of: #""id":("[^"]*"),"timestamp""#,
      with: #""id":$1,"crashes":9223372036854775807,"times":9223372036854775807,"timestamp""#,
      options: .regularExpression)
    let state = try folder.file("huge.json", Array(huge.utf8))
    let merged = try run(["merge", state, state])
    #expect(merged.status == .exited(0), "\(merged.errorText)")
    #expect(merged.text.contains(#""count":9223372036854775807"#))
    for format in ["text", "ndjson", "markdown", "html"] {
      #expect(try run(["--members", "--format", format, state]).status == .exited(0), "\(format)")
    }
  }

  /// One crash has different hashes with different rules, so that states made with others would count it as two bugs.
  @Test func otherRulesAreNotJoined() throws {
    let folder = try TemporaryDirectory("state")
    let reports = try folder.file("reports.ndjson", reports: reports(12))
    func rules(_ name: String, _ text: String) throws -> String { try folder.file(name, Array(text.utf8)) }
    let one = try rules("one", "helper function:orderd.Check.*\nmerge \(Self.hash("a")) \(Self.hash("b"))\n")
    // Laid out otherwise, and with another rule about what is shown.
    let equal = try rules("equal", "# ours\n  helper   function:orderd.Check.*   # too\nsplit \(Self.hash("c"))")
    let other = try rules("other", "helper function:orderd.Checks.*")
    let showing = try rules("showing", "split \(Self.hash("c"))")
    func state(_ name: String, _ flags: [String]) throws -> String {
      let path = folder.path + "/\(name).json"
      #expect(try run(["-q", "--partial", "-o", path, reports] + flags).status == .exited(0))
      return path
    }
    let plain = try state("plain", [])
    let first = try state("first", ["--rules", one])
    let second = try state("second", ["--rules", equal])
    let third = try state("third", ["--rules", other])
    let across = try state("across", ["--across-builds"])
    let shown = try state("showing", ["--rules", showing])
    #expect(contents(of: plain) == contents(of: shown))
    #expect(contents(of: first) == contents(of: second))
    let joined = try run(["merge", first, second])
    #expect(
      joined.status == .exited(0) && joined.text.hasPrefix(#"{"schema":"crash-groups/1","algorithm":"g1","rules":""#))
    for (left, right) in [(plain, first), (first, third), (plain, across), (across, first)] {
      let refused = try run(["merge", left, right])
      #expect(refused.status == .exited(2) && refused.output.isEmpty)
      #expect(refused.errorText.contains("\(right): made with "), "\(refused.errorText)")
    }
    // Beside reports, or with flags, the state must have been made alike; alone it is shown as it is.
    #expect(try run(["-q", first]).status == .exited(0))
    #expect(try run(["-q", "--rules", one, first]).status == .exited(0))
    #expect(try run(["-q", "--rules", one, first, reports]).status == .exited(0))
    for arguments in [[first, reports], ["--rules", other, first], ["--across-builds", plain]] {
      let refused = try run(arguments)
      #expect(refused.status != .exited(0) && refused.errorText.contains("made with "), "\(arguments)")
    }
    // A baseline is compared all the same, and it is said.
    let compared = try run(["--baseline", first, reports])
    #expect(compared.status == .exited(0) && compared.errorText.contains("\(first): made with --rules (digest "))
    let alike = try run(["--baseline", first, "--rules", one, reports])
    #expect(!alike.errorText.contains("made with"))
    // What somebody says of a group is kept, and so is what the state was made with.
    let hash = try #require(try run(["-q", first]).text.firstMatch(of: /[0-9a-f]{32}/)).output
    #expect(try run(["resolve", "--rules", one, "--in", "2.0.0", first, String(hash)]).status == .exited(0))
    #expect(try run(["merge", first, second]).status == .exited(0))
  }

  private static func hash(_ digit: String) -> String { String(repeating: digit, count: 32) }
}

/// A state that is reached through a link is read before it is replaced, and the link stays one.
struct LinkedStateTests {
  @Test func mergeAndResolve() throws {
    let folder = try TemporaryDirectory("state")
    let reports = try folder.file("a.ndjson", reports: [namedReport(1), namedReport(2, bug: 1)])
    let state = folder.path + "/real/groups.json"
    let link = folder.path + "/link.json"
    try FileManager.default.createDirectory(atPath: folder.path + "/real", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "real/groups.json")
    #expect(try SymbolicateTool.run("group", "-q", "--partial", "-o", state, reports).status == .exited(0))
    let merged = try SymbolicateTool.run("group", "merge", "-o", link, link, state)
    #expect(merged.status == .exited(0), "\(merged.errorText)")
    let lines = try SymbolicateTool.run("group", "--format", "ndjson", link).text.split(separator: "\n")
    #expect(lines.count == 3 && lines[0].contains("\"count\":2"))
    let group = try #require(try JSONSerialization.jsonObject(with: Data(lines[0].utf8)) as? [String: Any])
    let hash = try #require(group["stack_hash"] as? String)
    #expect(try SymbolicateTool.run("group", "resolve", "--in", "2.0", link, hash).status == .exited(0))
    #expect(try #require(contents(of: state)).count > 0)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "real/groups.json")
    #expect(folder.names(in: "real") == ["groups.json"])
  }
}
