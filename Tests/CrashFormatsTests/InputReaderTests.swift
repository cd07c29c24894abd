import CrashFormats
import CrashModel
import Foundation
import Testing

struct InputReaderTests {
  /// What a reader finds in a file: `report ID LINE`, `skipped LINE`, `problem LINE`.
  private func events(_ text: String) throws -> [String] {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("input-reader-\(UUID().uuidString)")
    try Data(text.utf8).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    var events: [String] = []
    try #require(InputReader()).read(path: url.path) { event in
      switch event {
      case .report(let report, let line): events.append("report \(report.id) \(line ?? 0)")
      case .skipped(_, let line): events.append("skipped \(line ?? 0)")
      case .problem(_, let line): events.append("problem \(line ?? 0)")
      }
      return true
    }
    return events
  }

  private func line(_ id: String) -> String {
    #"{"schema":"crash-report/1","id":"\#(id)","kind":"crash","fatal":true}"#
  }
  /// As tools write it that sort keys.
  private func sorted(_ id: String) -> String {
    #"{"breadcrumbs":[],"fatal":true,"id":"\#(id)","kind":"crash","schema":"crash-report/1"}"#
  }
  private func pretty(_ id: String, indentation: String = "  ") -> String {
    #"{|"schema": "crash-report/1",|"id": "\#(id)",|"kind": "crash",|"tags": {|},|"threads": [|{|"frames": []|},|{|"frames": []|}|]}"#
      .replacingOccurrences(of: "|", with: "\n" + indentation)
  }

  /// What looks like a crash and is none does not leave a file without an answer.
  @Test func brokenJSONIsNeverSilent() throws {
    #expect(try events(#"{"c\u+#{"Current stack trace:"#) == ["problem 1"])
    #expect(try events("  {x Received signal 4. Backtrace: ~\n") == ["problem 1"])
  }

  /// What `symbolicate -f json` writes of several reports, and what `jq -s` makes of lines.
  @Test func arrays() throws {
    #expect(try events("[\(line("a")),\(sorted("b"))]") == ["report a 1", "report b 1"])
    #expect(try events("[\n  \(line("a")),\n  \(line("b"))\n]\n") == ["report a 1", "report b 1"])
    #expect(
      try events("[\n\(line("a")),\n\(line("b"))\n]\n" + line("c")) == ["report a 1", "report b 1", "report c 5"])
    #expect(try events(#"[{"a":1}]"#) == ["skipped 1"])
    #expect(try events(#"[{"a":1}"#) == ["problem 1"])
  }

  /// A line may break anywhere; whatever it leaves open, the lines behind it are read.
  @Test func everyCutOfALineCostsThatLine() throws {
    let whole = String(decoding: sampleReport().json(), as: UTF8.self)
    let cuts = stride(from: 1, to: whole.utf8.count, by: 19).map {
      String(decoding: whole.utf8.prefix($0), as: UTF8.self)
    }
    for next in [line("b"), sorted("b")] {
      for cut in cuts {
        let found = try events([line("a"), cut, next, line("c")].joined(separator: "\n"))
        #expect(found == ["report a 1", "problem 2", "report b 3", "report c 4"], "behind \(cut.suffix(20))")
      }
    }
  }

  @Test func severalBrokenLines() throws {
    let text = [
      #"{"id":"x","threads":["#, #"{"id":"y","threads":[{"#, "garbage", sorted("a"),
      #"{"schema":"crash-report/1","id":"#,
      "not json", "[1,", #"{"a":{"b":1},"c":"open"#, line("b"), "}", sorted("c"),
    ].joined(separator: "\n")
    #expect(
      try events(text) == [
        "problem 1", "problem 2", "problem 3", "report a 4", "problem 5", "problem 6", "problem 7", "problem 8",
        "report b 9", "problem 10", "report c 11",
      ])
  }

  /// A log that was rotated begins anywhere.
  @Test func brokenFirstLine() throws {
    for first in [#"x":1}]}"#, #"garbage {"schema""#, "}", "\"", "{", "{\"a\":"] {
      #expect(
        try events([first, line("a"), sorted("b")].joined(separator: "\n")) == [
          "problem 1", "report a 2", "report b 3",
        ])
    }
    #expect(try events("[\n" + line("a") + "\n]") == ["report a 1"])
    #expect(throws: InputError.self) { try events("\u{7f}ELF\0\n" + line("a")) }
    #expect(throws: InputError.self) { try events("some text\n{ and no report\n") }
  }

  @Test func documentsOverManyLines() throws {
    #expect(try events(pretty("a")) == ["report a 1"])
    // Without indentation objects begin lines inside of a document, too.
    #expect(try events(pretty("a", indentation: "")) == ["report a 1"])
    #expect(
      try events([pretty("a"), line("b"), pretty("c"), ""].joined(separator: "\n")) == [
        "report a 1", "report b 15", "report c 16",
      ])
    let byElement = #"{"schema":"crash-report/1","id":"a","threads":[\#n{"frames":[]},\#n{"frames":[]}\#n]}"#
    #expect(try events(byElement + "\n" + line("b")) == ["report a 1", "report b 5"])
    // Cut: one problem, and what comes next is read, whatever it looks like.
    for length in [1, 30, 60, 100, 130] {
      let cut = String(pretty("a").prefix(length))
      let lines = cut.split(separator: "\n", omittingEmptySubsequences: false).count
      for next in [line("b"), sorted("b"), pretty("b"), pretty("b", indentation: "")] {
        #expect(try events(cut + "\n" + next) == ["problem 1", "report b \(lines + 1)"], "\(cut)\n\(next.prefix(20))")
      }
    }
    #expect(try events("\u{feff}" + pretty("a") + "\n\u{feff}" + line("b")) == ["report a 1", "report b 15"])
  }

  /// Made to be read again and again: linear all the same.
  @Test func doubtfulLines() throws {
    let count = 20_000
    let found = try events(String(repeating: "{\"a\":[\n", count: count) + line("b"))
    #expect(found.count == count + 1)
    #expect(found.last == "report b \(count + 1)")
    #expect(found.first == "problem 1")
  }

  @Test func hiddenCharactersAreEscaped() throws {
    let hidden: [ClosedRange<UInt32>] = [
      0x00...0x1F, 0x7F...0x9F, 0xAD...0xAD, 0x61C...0x61C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F,
      0xFEFF...0xFEFF, 0xE0000...0xE007F,
    ]
    for range in hidden {
      for value in range {
        let text = "a" + String(try #require(Unicode.Scalar(value))) + "é🚀\u{fe0f}"
        var report = CrashReport(id: "x", kind: .crash, fatal: true)
        report.message = text
        report.tags = [Tag(key: text, value: text)]
        let bytes = report.json()
        let written = String(decoding: bytes, as: UTF8.self)
        #expect(!written.unicodeScalars.contains { $0.value == value }, "U+\(String(value, radix: 16))")
        #expect(written.contains("é🚀\u{fe0f}"))
        #expect(try #require(ReportReader()).report(from: bytes) == report)
        let object = try #require(JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        #expect((object["message"] as? String)?.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
        #expect(Printable.line(text) != text && Printable.quoted(text) != "\"\(text)\"")
        #expect(!Printable.line(text).unicodeScalars.contains { $0.value == value })
      }
    }
    #expect(Printable.line("é🚀\u{fe0f} ok") == "é🚀\u{fe0f} ok")
    #expect(Printable.line("a\u{202e}b\u{200b}") == "a\\u{202e}b\\u{200b}")
  }
}
