import CrashGrouping
import CrashModel
import Testing

@Suite struct GroupingRulesTests {
  private static let load = "$s6orderd5StoreC4load2idS2i_tF"
  private static let check = "$s6orderd5CheckO5equalyySi_SitFZ"
  private static let handle = "$s6orderd6ServerC6handleySiSiF"

  private static func frame(_ raw: String, file: String, line: Int = 12) -> Frame {
    .symbolicated(
      SymbolicatedFrame(
        captured: CapturedFrame(
          kind: .returnAddress, address: Address(rawValue: 0x5000_0100), imageIndex: 0,
          imageOffset: ImageOffset(rawValue: 0x100)),
        status: .resolved, function: Demangler.simplified(raw), rawFunction: raw, file: file, line: line,
        declarationLine: 10, hasDebugInformation: true))
  }

  private static func report(message: String = "a.swift:1: Precondition failed: 7 is not 8") -> CrashReport {
    var report = CrashReport(id: "r")
    report.service = "orderd"
    report.signal = SignalInfo(number: 4, name: "SIGILL")
    report.message = message
    report.images = [
      Image(path: "/srv/orderd", buildID: BuildID("aa11"), address: Address(rawValue: 0x5000_0000), size: 1 << 20)
    ]
    report.threads = [
      ThreadInfo(
        crashed: true,
        frames: [
          frame(check, file: "/src/Sources/orderd/Check.swift"), frame(load, file: "/src/Sources/orderd/Store.swift"),
          frame(handle, file: "/src/Sources/orderd/Server.swift"),
        ])
    ]
    report.crashedThreadIndex = 0
    return report
  }

  private func analyze(_ rules: String, _ report: CrashReport = report()) throws -> StackAnalysis {
    StackHasher(rules: try GroupingRules(rules)).analyze(report)
  }

  private func blamed(_ rules: String, _ report: CrashReport = report()) throws -> String {
    try analyze(rules, report).blame?.function ?? "nobody"
  }

  private static let store = "orderd.Store.load(id:)"
  private static let helper = "orderd.Check.equal(_:_:)"

  @Test func everyActionAndMatcher() throws {
    let bounds = Self.report(message: "a.swift:1: Fatal error: Index out of range")
    #expect(try blamed("") == Self.helper)
    // A helper that found a broken promise is not to blame, one with a bug of its own is.
    #expect(try blamed("helper function:orderd.Check.*") == Self.store)
    #expect(try blamed("helper function:orderd.Check.*", bounds) == Self.helper)
    #expect(try blamed("runtime function:\(Self.check)", bounds) == Self.store)
    #expect(try blamed("lib path:*/Check.swift") == Self.store)
    #expect(try blamed("runtime module:orderd caller:*.handle*") == Self.helper)
    #expect(try blamed("runtime callee:*.load(id:)") == Self.helper)
    #expect(try blamed("runtime caller:*.load(id:)") == Self.store)
    #expect(try blamed("runtime image:orderd\n") == Self.helper, "three names where nobody is to blame")
    #expect(try blamed("runtime image:/srv/* path:*Check.swift") == Self.store)
    #expect(try blamed("runtime image:/usr/*") == Self.helper)
    #expect(try blamed("runtime function:*Check* reason:precondition") == Self.store)
    #expect(try blamed("runtime function:*Check* reason:fatal") == Self.helper)
    #expect(try blamed("runtime function:*Check* message:\"failed: [0-9]+ is\"") == Self.store)
    #expect(try blamed("runtime function:*Check* message:^7") == Self.helper)
    #expect(try blamed("boundary function:*Check*") == Self.helper)
    // Nobody from the boundary on: the names that there are, whoever's.
    #expect(try analyze("runtime path:*Check.swift\nboundary path:*Store.swift").key.contains("|"))
  }

  @Test func theFirstRuleThatFitsDecides() throws {
    #expect(try blamed("app function:*Check*\nruntime function:*Check*") == Self.helper)
    #expect(try blamed("runtime function:*Check*\napp function:*Check*") == Self.store)
    let shown = try analyze("runtime function:*Check*").frames[0].frameClass
    #expect(shown.kind == .runtime && shown.rule == "a rule of the rules file")
  }

  @Test func groups() throws {
    let plain = try analyze("")
    let database = try analyze(#"group "database down" message:"is not""#)
    #expect(database.hash != plain.hash && database.group == "database down")
    #expect(try database.hash == analyze(#"group "database down" reason:precondition"#).hash)
    #expect(try analyze(#"group "database down" reason:fatal"#).hash == plain.hash)
    // Whatever the crash, with a text of its own; what the algorithm says, within one.
    let inner = try analyze(#"group "eu {default}" function:*Check*"#)
    #expect(inner.group == "eu \(plain.hash.digits)")
    #expect(
      try analyze(#"group "{reason} {function} {x}" function:*Check*"#).group == "precondition \(Self.helper) {x}")
    // By the blamed function, which is the helper's caller here.
    let rules = "helper function:*Check*\ngroup \"store\" function:\(Self.store)"
    #expect(try analyze(rules).group == "store")
    #expect(database.callPath().isEmpty && database.siteLine == nil)

    var tagged = Self.report()
    tagged.tags = [Tag(key: "fingerprint", value: "mine")]
    #expect(StackHasher().analyze(tagged).group == "mine")
    #expect(try analyze(#"group "database down" reason:precondition"#, tagged).group == "mine")
  }

  @Test func placesCanBeIgnored() throws {
    #expect(try analyze("").siteLine == 2)
    #expect(try analyze("ignore-site function:*Check*").siteLine == nil)
    #expect(try analyze("ignore-site function:*Store*").siteLine == 2)
    #expect(try analyze("ignore-site function:*Check*").hash == analyze("").hash)
  }

  @Test func commentsQuotesAndEmptyLines() throws {
    let rules = try GroupingRules(
      "# ours\r\n\n  \t# more\nhelper function:\"orderd.Check.equal(_:_:)\" # the check\nmerge "
        + String(repeating: "A", count: 32) + " " + String(repeating: "b", count: 32))
    #expect(rules.merges == [[String(repeating: "a", count: 32), String(repeating: "b", count: 32)]])
    #expect(!rules.isEmpty && StackHasher(rules: rules).analyze(Self.report()).blame?.function == Self.store)
    #expect(try GroupingRules("# nothing\n").isEmpty)
  }

  @Test(arguments: [
    ("apps function:x", "unknown action 'apps'; one of app, lib, runtime, helper, boundary, group, ignore-site"),
    ("app", "'app' needs function, module"), ("app reason:fatal", "'app' needs function, module"),
    ("app funktion:x", "unknown key 'funktion'; one of function"), ("app function", "expected KEY:PATTERN"),
    ("app function:", "expected KEY:PATTERN"), ("group text module:x", "'group' needs a text in quotes first"),
    ("group \"\" module:x", "'group' needs a text in quotes first"),
    ("group \"x\"", "'group' needs something to look for"),
    ("app function:\"x", "a quote is not closed"), ("group \"x\" message:\"(\"", "'(' is no regular expression: "),
    ("group \"x\" message:\"(a{1,200}){1,200}\"", "'(a{1,200}){1,200}' is no regular expression: more than 1000 "),
    ("group \"x\" message:\"a{1,900}{1,900}\"", "'a{1,900}{1,900}' is no regular expression: more than 1000 "),
    ("group \"x\" message:a{1,99999999999999999999}", "'a{1,99999999999999999999}' is no regular expression: "),
    ("group \"x\" message:(a)\\1", "'(a)\\1' is no regular expression: back references are not taken"),
    ("merge 1234", "'merge' takes stack hashes, 32 hex digits each, and '1234' is none"),
    ("merge 0123456789abcdef0123456789abcdef", "'merge' needs two or more"), ("split", "'split' needs a stack hash"),
    ("ignore-site", "'ignore-site' needs something to look for"),
  ]) func errorsNameTheLine(_ line: String, _ expected: String) {
    let error = #expect(throws: RuleError.self) { try GroupingRules("# one\n\n\(line)\napp function:y") }
    #expect(error?.line == 3)
    #expect(error?.description.hasPrefix("line 3: \(expected)") ?? false, "\(String(describing: error))")
  }

  /// Patterns that others need exponential time for.
  @Test func hostilePatternsEnd() throws {
    let many = String(repeating: "*a", count: 2_000)
    #expect(try blamed("runtime function:\(many)b") == Self.helper)
    var report = Self.report(message: String(repeating: "a", count: 100_000))
    #expect(try blamed("runtime function:* message:\"(a*)*b\"", report) == Self.helper)
    let identifier = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    report.message = "order 0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b"
    #expect(try analyze("group \"x\" message:\(identifier)", report).group == "x")
    report.message = "\0\u{301}"
    #expect(try blamed("runtime function:* message:x", report) == Self.helper)
  }
}
