import CrashFormats
import CrashModel
import TestSupport
import Testing

struct MarkdownReportTests {
  /// What is left of a document without its fenced code and code spans, by the rules of CommonMark 0.31 (4.5, 6.1), and
  /// what stood in them.
  private func withoutCode(_ text: String) -> (rest: String, code: String) {
    var rest = ""
    var code = ""
    var fence: Int?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let ticks = line.prefix { $0 == "`" }.count
      if let open = fence {
        if ticks >= open, line.dropFirst(ticks).allSatisfy({ $0 == " " }) { fence = nil } else { code += line + "\n" }
        continue
      }
      if ticks >= 3, !line.dropFirst(ticks).contains("`") {
        fence = ticks
        continue
      }
      var tail = line
      while let start = tail.firstIndex(of: "`") {
        rest += tail[..<start]
        let run = tail[start...].prefix { $0 == "`" }
        var search = tail[run.endIndex...]
        var end: Substring?
        while let next = search.firstIndex(of: "`") {
          let candidate = search[next...].prefix { $0 == "`" }
          if candidate.count == run.count {
            end = candidate
            break
          }
          search = search[candidate.endIndex...]
        }
        guard let end else {
          rest += run
          tail = tail[run.endIndex...]
          continue
        }
        code += tail[run.endIndex..<end.startIndex]
        tail = tail[end.endIndex...]
      }
      rest += tail + "\n"
    }
    if fence != nil { rest += "UNCLOSED" }
    return (rest, code)
  }

  @Test func hostileTextStaysInCode() {
    var found = 0
    for seed in 0..<200 {
      let text = MarkdownReportWriter().text(of: hostileReport(seed: UInt64(seed)))
      let (rest, code) = withoutCode(text)
      for word in ["EVIL", "owned", "script", "e.example", "@everyone", "UNCLOSED", "$(id)", "]("] {
        #expect(!rest.contains(word), "seed \(seed): \(word)")
      }
      if code.contains("EVIL") { found += 1 }
    }
    // The check sees the texts at all.
    #expect(found > 80)
  }

  @Test func codeSpans() throws {
    var report = CrashReport(id: "x")
    for (message, span) in [
      ("a", "`a`"), ("`", "`` ` ``"), ("``a", "``` ``a ```"), ("a`b``c", "```a`b``c```"), (" a ", "`  a  `"),
    ] {
      report.service = message
      #expect(MarkdownReportWriter().text(of: report).contains("- Service: \(span)\n"), "\(message)")
    }
    report.message = "one\n````\ntwo"
    #expect(MarkdownReportWriter().text(of: report).contains("`````text\none\n````\ntwo\n`````\n"))
  }

  /// A tracker takes 65,536 characters.
  @Test func neverTooLong() {
    var report = sampleReport()
    let long = String(repeating: "日`", count: 20_000)
    (report.message, report.service, report.operation, report.type) = (long, long, long, long)
    report.notes = Array(repeating: long, count: 50)
    report.tags = [Tag(key: long, value: long)]
    report.breadcrumbs = Array(
      repeating: Breadcrumb(timestamp: Timestamp(rawValue: 0), category: long, message: long), count: 100)
    let frames = Array(repeating: report.threads[0].frames[0], count: 1_000)
    report.threads[0].frames = frames
    report.threads += Array(repeating: ThreadInfo(name: long, frames: frames), count: 4)
    report.images = Array(repeating: report.images[0], count: 3_000)
    let symbols = (0..<100).map { ImageSymbols(imageIndex: $0, status: "", problem: long) }
    let text = MarkdownReportWriter().text(of: report, symbols: symbols)
    #expect(text.unicodeScalars.count <= 65_536)
    #expect(text.contains("Left out, as it would be too long for an issue: Other threads (5), "))
    #expect(text.contains("frames not shown"))
  }
}
