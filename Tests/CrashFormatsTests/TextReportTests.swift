import CrashFormats
import CrashModel
import Testing

struct TextReportTests {
  @Test func goldenText() {
    let symbols = [ImageSymbols(imageIndex: 0, status: "symbols only", problem: "no debug information for orderd")]
    let expected = #"""
      *** Program crashed: Illegal instruction (SIGILL, ILL_ILLOPN, sent by process 7) at 0x00007f816e16df7f ***

      Reason:      bounds
      Message:     Fatal error: Index out of range "x" \ \u{1b}[31m
                   second line é 🚀 \u{85}
      Service:     orderd 1.4.0
      Environment: production
      Time:        2026-11-30T05:12:33.042Z
      Run:         0192a3b4-0000-7e8f-9a0b-1c2d3e4f5a6b
      Host:        web-3
      Process:     4711 /usr/bin/orderd (started 2026-11-29T00:00:00.000Z)
      Operation:   POST /checkout
      User:        usr_7c1e
      Tags:        region=eu-west, a b"c=
      Stack hash:  0123456789abcdef0123456789abcdef (dwarf)
      Report:      0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b
      Not stored:  3 more of the same before it
      Platform:    x86_64 Linux (Debian GNU/Linux 12 (bookworm))

      Before it (1):

      2026-11-30T00:53:20.000Z  [db] cache miss

      Thread 0 (4711) "orderd" crashed:

        0 [inlined] 0x00005599f587b9e0 inlinedLeaf(_:_:) in orderd at /src/orderd/main.swift:7:68 (nearest line)
        0           0x00005599f587b9e0 middle(_:_:) in orderd (0x59e0)
      ...           (347 frames not kept)
      348 [ra]      0x00005599f587b3f5 in orderd + 0x53f5
      349 [async]   0x0000000000000001 (in no image)

      Registers:

      rip 0x00005599f587b9e0
      rsp 0xffffffffffffffff

      Images:

      0x00005599f5876000–0x00005599f587ce00 a4b7e00e1409a2223c02df7c20e92919 orderd /usr/bin/orderd  (symbols only)

      Notes:

      - the record was cut

      1 image without full names:

      - no debug information for orderd


      """#
    #expect(TextReportWriter().text(of: sampleReport(), symbols: symbols) == expected)
  }

  /// Whatever text the report brings, no byte reaches the terminal that it would act on.
  @Test func hostileText() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}\u{2028}\u{0}"
    var report = sampleReport()
    (report.message, report.service, report.type, report.operation, report.userID) = (evil, evil, evil, evil, evil)
    report.process?.host = evil
    report.process?.executable = evil
    report.notes = [evil]
    report.tags = [Tag(key: evil, value: evil)]
    report.threads[0].name = evil
    report.threads[0].registers = [.init(name: evil, value: 1)]
    report.images[0].path = evil
    report.signal?.name = evil
    report.breadcrumbs[0].message = evil
    if case .symbolicated(var frame) = report.threads[0].frames[0] {
      (frame.function, frame.file) = (evil, evil)
      report.threads[0].frames[0] = .symbolicated(frame)
    }
    for scalar in TextReportWriter().text(of: report).unicodeScalars where scalar != "\n" {
      #expect(!(scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value || 0x2028...0x202E ~= scalar.value))
    }
  }

  @Test func threadsAndInlines() {
    var writer = TextReportWriter()
    #expect(!writer.text(of: sampleReport()).contains("Thread 1"))
    writer.showsAllThreads = true
    writer.showsInlined = false
    writer.showsRawNames = true
    let text = writer.text(of: sampleReport())
    #expect(text.contains("Thread 1:\n  (did not answer in time)"))
    #expect(!text.contains("[inlined]"))
  }

  @Test func runtimeFramesAreFolded() {
    var report = sampleReport()
    func frame(_ name: String, _ inApp: Bool?) -> Frame {
      .symbolicated(
        SymbolicatedFrame(
          captured: CapturedFrame(kind: .programCounter, address: Address(rawValue: 1)), status: .resolved,
          function: name,
          inApp: inApp))
    }
    var writer = TextReportWriter()
    writer.foldsRuntimeFrames = true
    func numbers(_ frames: [Frame]) -> [String] {
      report.threads[0].frames = frames
      let lines = writer.text(of: report).split(separator: "\n", omittingEmptySubsequences: false)
      return lines.drop { !$0.hasPrefix("Thread 0") }.dropFirst(2).prefix { !$0.isEmpty }
        .map { $0.split(separator: " ").filter { !$0.hasPrefix("0x") }.prefix(3).joined(separator: " ") }
    }
    #expect(
      numbers([frame("a", false), frame("b", false), frame("c", true), frame("d", false), frame("e", true)])
        == ["... (2 runtime", "2 c", "3 d", "4 e"])
    // Frames that were not kept are not the runtime's, nor is what nobody decided.
    #expect(
      numbers([frame("a", true), frame("b", false), .omitted(count: 3), frame("c", false), frame("d", nil)])
        == ["0 a", "1 b", "... (3 frames", "5 c", "6 d"])
    // Of a stack without the application's code nothing would be left.
    #expect(numbers([frame("a", false), frame("b", false)]) == ["0 a", "1 b"])
    writer.foldsRuntimeFrames = false
    #expect(numbers([frame("a", false), frame("b", false), frame("c", true)]) == ["0 a", "1 b", "2 c"])
  }

  @Test func tableFitsTheTerminal() {
    var table = TextTable(columns: [.init("N", isRightAligned: true), .init("NAME", minimumWidth: 4), .init("HASH")])
    table.add(["1", "日本語のなまえ", "ab"])
    table.add(["1000", "short\u{1b}", "cd"])
    #expect(table.text(width: nil) == "   N  NAME            HASH\n   1  日本語のなまえ  ab\n1000  short\\u{1b}     cd\n")
    for line in table.text(width: 20).split(separator: "\n") { #expect(Printable.width(of: line) <= 20) }
  }

  @Test func stackTextIsBounded() throws {
    var report = sampleReport()
    let long = String(repeating: "é", count: 3_000)
    report.threads[0].frames = (0..<100).map { index in
      .symbolicated(
        SymbolicatedFrame(
          captured: CapturedFrame(kind: .returnAddress, address: Address(rawValue: 0x1000)), status: .resolved,
          function: index == 0 ? long : "function\(index)"))
    }
    let text = try #require(report.stackText)
    #expect(text.utf8.count <= 4_000)
    #expect(text.hasPrefix("0 ééé"))
    report.threads[0].frames.removeFirst()
    let next = try #require(report.stackText)
    #expect(next.hasPrefix("0 function1\n1 function2\n"))
    #expect(!next.contains("0x"))
  }
}
