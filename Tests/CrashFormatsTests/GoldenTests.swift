import CrashFormats
import CrashModel
import TestSupport
import Testing

/// One report with a value in every field, in each format that is written.
struct GoldenTests {
  private let symbols = [
    ImageSymbols(imageIndex: 0, status: "symbols only", problem: "no debug information for orderd")
  ]

  private func sources() throws -> (TemporaryDirectory, SourceReader) {
    let folder = try TemporaryDirectory("sources")
    let lines = (1...9).map { "let line\($0) = \($0)" }
    try write(Array(lines.joined(separator: "\n").utf8), to: folder.path + "/main.swift")
    return (folder, SourceReader(contextLines: 2, roots: [folder.path]))
  }

  @Test func swiftJSON() throws { try Golden.expect(SwiftCrashLogWriter().json(of: sampleReport()), "swift.json") }

  @Test func sentry() throws {
    let (folder, source) = try sources()
    try Golden.expect(
      SentryEventWriter().envelope(of: sampleReport(), symbols: symbols, source: source), "sentry.envelope")
    _ = folder
  }

  @Test func markdown() throws {
    let (folder, source) = try sources()
    let text = MarkdownReportWriter().text(of: sampleReport(), symbols: symbols, source: source)
    try Golden.expect(Array(text.utf8), "issue.md")
    _ = folder
  }

  @Test func otlp() throws {
    var writer = OTLPLogWriter()
    writer.pretty = true
    try Golden.expect(writer.json(of: sampleReport()), "otlp.json")
  }

  @Test func folded() throws {
    var stacks = FoldedStackWriter()
    stacks.add(sampleReport())
    try Golden.expect(Array(stacks.text().utf8), "stacks.folded")
  }

  @Test func markup() throws {
    try Golden.expect(Array(SymbolizerMarkupWriter().text(of: sampleReport()).utf8), "stack.markup")
  }

  @Test func textWithSourceLinesAndColors() throws {
    let (folder, source) = try sources()
    var writer = TextReportWriter()
    writer.usesColor = true
    writer.foldsRuntimeFrames = true
    writer.showsAllThreads = true
    let text = writer.text(of: sampleReport(), symbols: symbols, source: source)
    try Golden.expect(Array(text.utf8), "report.color.txt")
    _ = folder
  }
}
