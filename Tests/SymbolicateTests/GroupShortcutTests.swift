import CrashModel
import Foundation
import TestSupport
import Testing

/// Reports whose frames have their names are added up without being made into reports first. Nobody must see that.
struct GroupShortcutTests {
  private func run(_ arguments: [String]) throws -> ChildProcess.Outcome {
    try ChildProcess([SymbolicateTool.path, "group", "-q"] + arguments).run()
  }

  /// Of functions that are somebody's, nobody's, folded, in closures, of the runtime, of dependencies, of the system; with
  /// and without debug information, linker names and lines.
  private static let functions: [(name: String, raw: String?, file: String?, image: Int)] = [
    ("Store.load(id:)", "$s6orderd5StoreC4load2idySi_tF", "/build/orderd/Sources/orderd/Store.swift", 0),
    ("Store.save()", "$s6orderd5StoreC4saveyyF", "/build/orderd/Sources/orderd/Store.swift", 0),
    ("closure #1 in Store.save()", "$s6orderd5StoreC4saveyyFyycfU_", "/build/orderd/Sources/orderd/Store.swift", 0),
    ("partial apply for closure #1 in Store.save()", "$s6orderd5StoreC4saveyyFyycfU_TA", nil, 0),
    ("serve()", "$s6orderd5serveyyF", "/build/orderd/Sources/orderd/main.swift", 0),
    ("Check.isPositive(_:)", "$s5Tools5CheckO10isPositiveyySiF", "/build/.build/checkouts/tools/Check.swift", 0),
    ("Array._checkSubscript(_:)", "$sSa15_checkSubscriptyySiF", nil, 1),
    (
      "_assertionFailure(_:_:file:line:flags:)",
      "$ss17_assertionFailure__4file4line5flagss5NeverOs12StaticStringV_SSAHSus6UInt32VtF", nil, 1
    ),
    ("cc_check_range", "cc_check_range", "/build/orderd/Sources/cc/check.c", 0),
    ("orders::Ledger::post(int)", "_ZN6orders6Ledger4postEi", "/build/orderd/Sources/cc/ledger.cpp", 0),
    ("zlib_inflate", "zlib_inflate", "/build/vendor/zlib/inflate.c", 0),
    ("abort", "abort", nil, 2), ("raise", nil, nil, 2), ("start_thread", "start_thread", nil, 2),
    ("__assert_fail", "__assert_fail", nil, 2), ("no linker name", nil, "/build/orderd/Sources/orderd/x.swift", 0),
    ("Swift runtime failure: Index out of range", "Swift runtime failure: Index out of range", nil, 0),
    ("", "", nil, 0),
    ("lib function", "lib_function", nil, 3),
  ]

  private func report(_ number: Int, using generator: inout SeededGenerator) -> CrashReport {
    func chance(_ percent: Int, _ generator: inout SeededGenerator) -> Bool {
      Int.random(in: 0..<100, using: &generator) < percent
    }
    var report = namedReport(
      number, release: ["1.0.0", "1.1.0", nil][number % 3], day: number % 5, second: number / 4 % 20,
      host: ["h1", "h2", "alice@example.com"][number % 3])
    let run = "01911111-0000-7000-8000-\(100_000_000_000 + number)"
    report.runID = [nil, "run of bob@example.com", run][number / 2 % 3]
    let signals: [(Int32, String)] = [(4, "SIGILL"), (5, "SIGTRAP"), (6, "SIGABRT"), (8, "SIGFPE"), (11, "SIGSEGV")]
    let signal = signals[Int.random(in: 0..<signals.count, using: &generator)]
    report.signal = SignalInfo(
      number: signal.0, name: signal.1, address: chance(50, &generator) ? Address(rawValue: 0x7ffd_0000) : nil)
    report.type = chance(90, &generator) ? signal.1 : "std::runtime_error"
    report.images.append(
      Image(path: "/srv/libswiftCore.so", buildID: nil, address: Address(rawValue: 0x80_0000), size: 4096))
    report.images.append(
      Image(path: "/usr/lib/libc.so.6", buildID: nil, address: Address(rawValue: 0x90_0000), size: 4096))
    report.images.append(Image(path: "/srv/plugin.so", buildID: nil, address: Address(rawValue: 0xa0_0000), size: 4096))
    let messages: [String?] = [
      nil, nil, "orderd/Store.swift:7: Fatal error: Index out of range", "free(): invalid pointer",
      "order 12345678 is bad",
      "Precondition failed: \u{e9}", "*** stack smashing detected ***: terminated",
    ]
    report.message = messages[Int.random(in: 0..<messages.count, using: &generator)]
    if chance(20, &generator) { report.reason = Reason(rawValue: "trap:something #") }
    if chance(10, &generator) { report.suppressedCount = number }
    if chance(5, &generator) { report.tags = [Tag(key: StackHasher.groupTag, value: "own {default}")] }
    if chance(10, &generator) { report.tags.append(Tag(key: "region", value: "eu")) }
    if chance(5, &generator) { report.notes = ["a note"] }
    if chance(3, &generator) { report.kind = .hang }
    if chance(3, &generator) { report.service = nil }
    if chance(30, &generator) {
      report.stackHash = StackHash(
        digits: String(repeating: ["a", "b", "c"][number % 3], count: 32),
        quality: [.dwarf, .symtab, .offsets][number / 3 % 3])
    }
    var frames: [Frame] = []
    for depth in 0..<Int.random(in: 1...9, using: &generator) {
      let function = Self.functions[
        chance(85, &generator)
          ? Int.random(in: 0..<16, using: &generator) : Int.random(in: 0..<Self.functions.count, using: &generator)]
      let isDescribed = function.file != nil && chance(85, &generator)
      var frame = SymbolicatedFrame(
        captured: CapturedFrame(
          kind: depth == 0 ? .programCounter : .returnAddress, address: Address(rawValue: 0x5000),
          imageIndex: chance(95, &generator) ? function.image : nil, imageOffset: ImageOffset(rawValue: 0x1000)),
        status: chance(98, &generator) ? .resolved : .noSymbols, function: function.name, rawFunction: function.raw,
        file: isDescribed ? function.file : nil, line: isDescribed ? [0, 12, 12, 40][depth % 4] : nil,
        declarationLine: isDescribed ? 10 : nil, inlined: chance(25, &generator), hasDebugInformation: isDescribed)
      if chance(2, &generator) { frame.line = nil }
      frames.append(.symbolicated(frame))
    }
    if chance(3, &generator) { frames.append(.omitted(count: 7)) }
    report.threads[0].frames = frames
    report.threads[0].depth = chance(3, &generator) ? 5_000 : UInt64(frames.count)
    report.threads[0].registers = [ThreadInfo.Register(name: "rsp", value: 0x7ffd_0800)]
    return report
  }

  /// A rule that fits nothing makes every report take the long way.
  @Test(arguments: [1, 2, 3]) func theLongWayGivesTheSame(seed: UInt64) throws {
    let folder = try TemporaryDirectory("shortcut")
    var generator = SeededGenerator(seed: seed)
    let reports = (0..<700).map { report($0, using: &generator) }
    let file = try folder.file("reports.ndjson", reports: reports)
    let rules = try folder.file("rules", Array("helper function:there.is.no.such.function".utf8))
    for flags in [
      ["--format", "json"], ["--format", "text"], ["--format", "json", "--members"], ["--format", "html"],
    ] {
      let short = try run(flags + [file])
      let long = try run(flags + ["--rules", rules, file])
      #expect(short.status == long.status && short.output == long.output, "\(flags)")
    }
    let states = try [[], ["--rules", rules]].map { try run(["--partial", file] + $0) }
    let (short, long) = (states[0].text, states[1].text)
    // What they were made with is all that differs.
    let mark = try #require(long.range(of: #","rules":"[0-9a-f]{32}""#, options: .regularExpression))
    #expect(short == long.replacingCharacters(in: mark, with: ""))
    #expect(short.contains("bounds") && short.contains("overflow") == long.contains("overflow"))
  }

  /// Reports with a fault in them are told as before, whatever else is wrong with them.
  @Test func whatCannotBeRead() throws {
    let folder = try TemporaryDirectory("shortcut")
    let text = String(decoding: namedReport(1).json(), as: UTF8.self)
    let lines = [
      text, text.replacingOccurrences(of: #""line":10"#, with: #""line":"ten""#),
      text.replacingOccurrences(of: #""status":"resolved""#, with: #""status":7"#),
      text.replacingOccurrences(of: #""address":"0x0000000000004000""#, with: #""address":"4000""#),
      text.replacingOccurrences(of: #""release":"1.0.0""#, with: #""release":[]"#),
      text.replacingOccurrences(of: #""kind":"program_counter""#, with: #""kind":"guessed""#),
      text.replacingOccurrences(of: #""host":"h1""#, with: #""host":null"#),
    ]
    let file = try folder.file("reports.ndjson", Array(lines.joined(separator: "\n").utf8))
    let rules = try folder.file("rules", Array("helper function:there.is.no.such.function".utf8))
    let short = try run(["--format", "ndjson", file])
    let long = try run(["--format", "ndjson", "--rules", rules, file])
    #expect(short.output == long.output && short.errorText == long.errorText && short.status == long.status)
    #expect(Set(lines).count == lines.count && short.text.contains("symbolicate-error/1"))
  }
}
