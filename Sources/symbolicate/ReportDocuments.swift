internal import CrashFormats
internal import CrashModel

/// A report as a document of the format that the command line asks for.
final class ReportDocuments {
  private let options: Options
  private let textWriter: TextReportWriter
  private var folded = FoldedStackWriter()
  private let source: SourceReader?
  private var told = 0

  init(options: Options, textWriter: TextReportWriter) {
    self.options = options
    self.textWriter = textWriter
    // Sources that were named are to be seen.
    let lines = options.contextLines ?? (options.sourceRoots.isEmpty ? nil : 3)
    source = lines.map { SourceReader(contextLines: $0, rootPaths: options.sourceRoots) }
  }

  /// Puts the lines of source code that were asked for into a report that is written as JSON.
  func addSource(to report: inout CrashReport) { source?.addLines(to: &report) }

  /// - Returns: nil for a report that the format has nothing to say of.
  func document(of processed: ProcessedReport) -> [UInt8]? {
    let (report, symbols) = (processed.report, processed.symbols)
    switch options.format {
    case .text:
      let text = textWriter.text(of: report, symbols: symbols, source: source)
      return Array((text + (options.explain ? Explanation.text(of: processed.analysis) : "")).utf8)
    case .json, .ndjson: return report.json(pretty: options.pretty) + [UInt8(ascii: "\n")]
    case .swiftJSON:
      var writer = SwiftCrashLogWriter()
      writer.pretty = options.pretty
      return writer.json(of: report) + [UInt8(ascii: "\n")]
    case .sentry: return SentryEventWriter().envelope(of: report, symbols: symbols, source: source)
    case .markdown: return Array(MarkdownReportWriter().text(of: report, symbols: symbols, source: source).utf8)
    case .otlp:
      var writer = OTLPLogWriter()
      writer.pretty = options.pretty
      return writer.json(of: report) + [UInt8(ascii: "\n")]
    case .folded:
      var one = FoldedStackWriter()
      guard one.add(report) else { return nil }
      folded.add(report)
      return Array(one.text().utf8)
    case .markup: return Array(SymbolizerMarkupWriter().text(of: report).utf8)
    case .html: return nil
    }
  }

  /// The stacks of all reports, added up.
  var foldedText: String { folded.text() }

  /// Why lines of source code are missing, since the last call.
  func takeProblems() -> ArraySlice<String> {
    let problems = source?.problems ?? []
    defer { told = problems.count }
    return problems.dropFirst(told)
  }
}

/// Where documents go: one behind the other, or each into a file of its own.
struct DocumentOutput {
  private let options: Options
  private let output: Output
  private var folder: OutputFolder?
  private var count = 0
  /// Reports that the output has no place for.
  private(set) var refusedCount = 0

  init(options: Options, output: Output, folder: OutputFolder?) {
    self.options = options
    self.output = output
    self.folder = folder
  }

  mutating func add(_ document: [UInt8]?, of report: CrashReport, place: String, _ diagnostics: Diagnostics)
    throws(Output.Failure)
  {
    guard let document else {
      refusedCount += 1
      diagnostics.error(place, "no stack was captured, so that there is no line of it")
      return
    }
    count += 1
    if folder != nil {
      try folder?.write(document, named: report.id)
      return
    }
    switch options.format {
    case .folded: break  // Added up until the end.
    case .sentry where count > 1:
      refusedCount += 1
      diagnostics.error(
        place, "not written: an envelope holds one event, and one is written already; -o DIR gives each a file")
    case .markdown where count > 1: try output.write(Array("\n---\n\n".utf8) + document)
    default: try output.write(document)
    }
  }

  func end(_ documents: ReportDocuments) throws(Output.Failure) {
    if options.format == .folded, folder == nil { try output.write(documents.foldedText) }
  }
}
