import CrashModel
import Testing

/// No text of a report is forgotten: every `String` there is gets an e-mail address, and what still holds it after the
/// redaction must be on the list.
@Suite struct RedactedReportTests {
  /// Fields that are not redacted. Why: `docs/redaction.md`, "What is not redacted".
  static let kept: Set<String> = [
    // Made by the library and taken by the reader only as 32 hex digits.
    "stackHash.digits", "previousStackHashes.digits",
    // The program's own words, chosen before there is a user.
    "service", "release", "environment",
    // The system's.
    "process.system",
    // By these the debug files are found and the bug is told.
    "images.path", "threads.frames.symbolicated.names.function", "threads.frames.symbolicated.names.rawFunction",
    "threads.frames.symbolicated.names.file",
    // Code.
    "threads.frames.symbolicated.source.lines",
  ]

  static let host = "example.com"

  /// `message` becomes `message@example.com`, put together so that nobody takes it for somebody's.
  static func address(_ field: String) -> String { field + "@" + host }

  static func filled() -> CrashReport {
    var report = CrashReport(id: address("id"))
    report.timestamp = Timestamp(rawValue: 0)
    report.type = address("type")
    report.reason = Reason(rawValue: "trap:" + address("reason"))
    report.message = address("message")
    report.stackHash = StackHash(digits: address("digits"), quality: .dwarf)
    report.previousStackHashes = [StackHash(digits: address("digits"), quality: .symtab)]
    report.crashedThreadIndex = 0
    report.signal = SignalInfo(
      number: 4, name: address("signal"), code: 1, codeName: address("code"), address: Address(rawValue: 0),
      senderPID: 1, senderUID: 1)
    report.ending = Ending(
      kind: .killed, exitStatus: 1, evidence: [address("evidence")], couldAlsoBe: [address("could also be")])
    report.hang = HangInfo(
      watch: address("watch"), silentMilliseconds: 5_000, samples: 5, durationMilliseconds: 7_000)
    report.process = ProcessInfo(
      id: 1, executable: "/home/" + address("ay") + "/orderd", host: address("host"), system: address("system"),
      architecture: address("architecture"), startTime: Timestamp(rawValue: 0))
    report.service = address("service")
    report.release = address("release")
    report.environment = address("environment")
    report.runID = address("run")
    report.operation = address("operation")
    report.userID = address("user")
    report.tags = [Tag(key: address("key"), value: address("value"))]
    report.breadcrumbs = [
      Breadcrumb(timestamp: Timestamp(rawValue: 0), category: address("category"), message: address("breadcrumb"))
    ]
    report.suppressedCount = 1
    report.notes = [address("note")]
    let captured = CapturedFrame(
      kind: .programCounter, trust: .context, address: Address(rawValue: 0), imageIndex: 0,
      imageOffset: ImageOffset(rawValue: 0))
    report.threads = [
      ThreadInfo(
        id: 1, name: address("thread"), crashed: true, depth: 1, status: .captured,
        registers: [.init(name: address("register"), value: 0)],
        frames: [
          .symbolicated(
            SymbolicatedFrame(
              captured: captured, status: .resolved, function: address("function"), rawFunction: address("raw"),
              file: address("file"), line: 1, column: 1, declarationLine: 1, inApp: true))
        ])
    ]
    report.threads[0].stayingFrames = 1
    if case .symbolicated(var frame) = report.threads[0].frames[0] {
      frame.source = SourceLines(firstLine: 1, lines: [address("source")])
      report.threads[0].frames[0] = .symbolicated(frame)
    }
    report.task = TaskInfo(id: 1, name: address("task"), locals: [Tag(key: address("local"), value: address("value"))])
    report.images = [
      Image(path: address("path"), buildID: BuildID("aa"), address: Address(rawValue: 0), size: 1)
    ]
    return report
  }

  /// The texts of a value by the way to them; what is nil or empty, and so was not filled, in `missing`.
  static func texts(of value: Any, at path: [String] = [], missing: inout [String]) -> [(path: String, text: String)] {
    if let text = value as? String { return [(path.joined(separator: "."), text)] }
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional || mirror.displayStyle == .collection, mirror.children.isEmpty {
      missing.append(path.joined(separator: "."))
    }
    let isTransparent = mirror.displayStyle == .optional || mirror.displayStyle == .collection
    return mirror.children.flatMap { child in
      texts(of: child.value, at: isTransparent ? path : path + [child.label ?? "?"], missing: &missing)
    }
  }

  @Test func everyTextIsRedactedOrOnTheList() {
    var report = Self.filled()
    var missing: [String] = []
    let before = Self.texts(of: report, missing: &missing)
    #expect(missing.isEmpty, "a field is new; let filled() fill it: \(missing)")
    #expect(before.count >= 29 && before.allSatisfy { $0.text.contains(Self.host) }, "filled() left out a text")

    Redactor().redact(&report)
    let after = Self.texts(of: report, missing: &missing).filter { $0.text.contains(Self.host) }
    #expect(Set(after.map(\.path)) == Self.kept)
  }

  /// The document, not only the value: keys of objects and texts made from several fields included.
  @Test func theDocumentHoldsNone() {
    var report = Self.filled()
    Redactor().redact(&report)
    report.stackHash = nil
    report.previousStackHashes = []
    report.service = nil
    report.release = nil
    report.environment = nil
    report.process?.system = nil
    report.images[0].path = "/srv/orderd"
    report.threads[0].frames = []
    let text = String(decoding: report.json(), as: UTF8.self)
    #expect(!text.contains(Self.host), "\(text)")
    #expect(text.contains("\"executable\":\"~/orderd\"") && text.contains("\"[redacted]\":\"[redacted]\""))
  }

  /// What the library writes comes out as it went in, twice over: ids, names of types, hosts, registers.
  @Test func ordinaryReportsStayAsTheyAre() {
    var report = CrashReport(id: "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b")
    report.runID = "01929999-8888-7777-9666-555544443333"
    report.type = "Auth::Token::Expired<std::basic_string<char>>"
    report.reason = .bounds
    report.signal = SignalInfo(number: 4, name: "SIGILL", codeName: "ILL_ILLOPN")
    report.process = ProcessInfo(
      executable: "/usr/bin/orderd", host: "orderd-7d4b9c6f5-x2x7k", system: "Amazon Linux 2023.6.20241031",
      architecture: "x86_64")
    report.service = "orderd"
    report.release = "20261130.1"
    report.userID = "usr_7c1e"
    report.tags = [Tag(key: "region", value: "eu-west")]
    report.threads = [
      ThreadInfo(name: "pool-1-thread-12", registers: [.init(name: "rip", value: 1), .init(name: "x28", value: 2)])
    ]
    let original = report
    Redactor().redact(&report)
    #expect(report == original)
    for type in ["AuthError.password", "Store.Secret", "Swift.DecodingError", "App.Token", "std::runtime_error"] {
      report.type = type
      Redactor().redact(&report)
      #expect(report.type == type)
    }
    var filled = Self.filled()
    Redactor().redact(&filled)
    let once = filled
    Redactor().redact(&filled)
    #expect(filled == once)
  }

  /// Of a tag and a pair alike.
  @Test func aKeyCanMakeItsValueASecret() {
    var report = CrashReport(id: "r")
    report.tags = [Tag(key: "password", value: "hunter2"), Tag(key: "count", value: "2")]
    Redactor().redact(&report)
    #expect(report.tags == [Tag(key: "password", value: Redactor.token), Tag(key: "count", value: "2")])
  }
}
