import CrashModel
import TestSupport
import Testing

@Suite struct GroupingFlagTests {
  private static let check = "$s6orderd5CheckO5equalyySi_SitFZ"
  private static let load = "$s6orderd5StoreC4load2idS2i_tF"
  private static let save = "$s6orderd5StoreC4save2idS2i_tF"

  private func report(
    _ id: Int, build: String = "aa11", functions: [String] = [check, load], described: Bool = true,
    message: String = "a.swift:1: Precondition failed: 7 is not 8"
  ) -> [UInt8] {
    var report = plainReport("0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6\(id)")
    report.type = "SIGILL"
    report.signal = SignalInfo(number: 4, name: "SIGILL")
    report.message = message
    report.images = [
      Image(path: "/srv/orderd", buildID: BuildID(build), address: Address(rawValue: 0x5000_0000), size: 1 << 20)
    ]
    report.threads[0].frames = functions.enumerated().map { index, raw in
      .symbolicated(
        SymbolicatedFrame(
          captured: CapturedFrame(
            kind: .returnAddress, address: Address(rawValue: 0x5000_0100 + UInt64(index)), imageIndex: 0,
            imageOffset: ImageOffset(rawValue: 0x100 + UInt64(index))),
          status: .resolved, function: Demangler.simplified(raw), rawFunction: raw,
          file: described ? "/src/Sources/orderd/a.swift" : nil, line: described ? 12 : nil,
          declarationLine: described ? 10 : nil, hasDebugInformation: described))
    }
    return report.json() + [UInt8(ascii: "\n")]
  }

  @Test func rulesDecideInReportsAndGroups() throws {
    let folder = try TemporaryDirectory()
    let crash = try folder.file("a.json", report(1))
    let rules = try folder.file("rules", Array("# ours\nhelper function:orderd.Check.*\n".utf8))
    let plain = try SymbolicateTool.run("group", crash)
    #expect(plain.text.contains("orderd.Check.equal(_:_:)"), "\(plain.text)")
    let ruled = try SymbolicateTool.run("group", "--rules", rules, crash)
    #expect(ruled.text.contains("orderd.Store.load(id:)") && !ruled.text.contains("Check.equal"), "\(ruled.text)")
    let explained = try SymbolicateTool.run("--rules", rules, "--explain", crash).text
    #expect(explained.contains("a rule of the rules file"))
    #expect(explained.contains("Line 2 behind the declaration of the blamed function."))
  }

  @Test func rulesThatCannotBeUsed() throws {
    let folder = try TemporaryDirectory()
    let crash = try folder.file("a.json", report(1))
    let bad = try folder.file("bad", Array("app module:x\n\nhepler function:y\n".utf8))
    let binary = try folder.file("binary", [0xff, 0xfe])
    let large = try folder.file("large", Array(repeating: UInt8(ascii: "#"), count: 1 << 20 + 1))
    for (path, message) in [
      (bad, "\(bad):3: unknown action 'hepler'; one of app, lib"), (binary, "not UTF-8"), (large, "larger than 1 MiB"),
      (folder.path, "is a directory"), (folder.path + "/none", "no such file"),
    ] {
      let outcome = try SymbolicateTool.run("group", "--rules", path, crash)
      #expect(outcome.status == .exited(64) && outcome.output.isEmpty)
      #expect(outcome.errorText.contains(message), "\(outcome.errorText)")
    }
  }

  @Test func acrossBuilds() throws {
    let two = report(1, described: false) + report(2, build: "bb22", described: false)
    func count(_ flags: [String]) throws -> Int {
      var tool = ChildProcess([SymbolicateTool.path, "group", "-f", "json"] + flags + ["-"])
      tool.input = two
      return try tool.run().text.split(separator: "\"schema\"").count - 1
    }
    #expect(try count([]) == 2)
    #expect(try count(["--across-builds"]) == 1)
  }

  @Test func diff() throws {
    let folder = try TemporaryDirectory()
    let one = try folder.file("a.json", report(1))
    let other = try folder.file(
      "b.json", report(2, functions: [Self.check, Self.save], message: "b.swift:1: Fatal error: x"))
    let third = try folder.file("c.json", report(3))
    let same = try SymbolicateTool.run("group", "--diff", one, third)
    #expect(same.text.contains("The same stack hash.\n"), "\(same.text)")
    let rules = try folder.file("rules", Array("helper function:orderd.Check.*".utf8))
    let text = try SymbolicateTool.run("group", "--diff", "--rules", rules, one, other).text
    #expect(text.contains("Different reasons: precondition and fatal."), "\(text)")
    #expect(text.contains("Different blamed functions: orderd.Store.load(id:) and orderd.Store.save(id:)."))
    let rows = text.split(separator: "\n").filter { $0.contains("orderd.") && $0.contains("  ") }
    #expect(rows.count == 3 && rows[1].hasPrefix("-") && rows[2].hasPrefix("+"), "\(rows)")
    #expect(rows.dropFirst().allSatisfy { $0.contains("1 <-") })

    for (operands, found) in [([one], "one"), ([one, third, other], "more than two")] {
      let outcome = try ChildProcess([SymbolicateTool.path, "group", "--diff"] + operands).run()
      #expect(outcome.status == .exited(2) && outcome.output.isEmpty)
      #expect(outcome.errorText.contains("compares two reports, and found \(found)"), "\(outcome.errorText)")
    }
    let json = try SymbolicateTool.run("group", "--diff", "-f", "json", one, other)
    #expect(json.status == .exited(64))
  }

  /// The text of the tag is redacted before it is hashed, whatever the report is wanted for.
  @Test func theTagOfAGroup() throws {
    var tagged = plainReport()
    tagged.tags = [Tag(key: StackHasher.groupTag, value: "tenant 12345678")]
    let bytes = tagged.json()
    func hash(_ text: String) -> Substring? { text.split(separator: #""stack_hash":""#).dropFirst().first?.prefix(32) }
    let report = hash(try SymbolicateTool.run("-f", "ndjson", "-", input: bytes).text)
    let group = hash(try SymbolicateTool.run("group", "-f", "ndjson", "-", input: bytes).text)
    #expect(report != nil && report == group)
  }
}
