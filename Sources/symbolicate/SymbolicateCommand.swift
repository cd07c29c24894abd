internal import CrashFormats
internal import CrashGrouping
internal import CrashModel
private import Glibc

/// `symbolicate FILE…|DIR|-`
struct SymbolicateCommand {
  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output
  private var totals = Totals()
  private var textWriter = TextReportWriter()

  init(options: Options, diagnostics: Diagnostics, output: Output) {
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
    textWriter.showsAllThreads = options.threads == .all
    textWriter.showsInlined = options.inlines
    textWriter.showsRawNames = !options.demangle
    let isTerminal = output.isTerminal && !OutputFolder.isMeant(by: options)
    textWriter.usesColor = Terminal.usesColor(options.color, isTerminal: isTerminal)
    textWriter.foldsRuntimeFrames = options.frames.map { $0 == .app } ?? isTerminal
  }

  mutating func run() throws(Output.Failure) -> ExitStatus {
    let progress = Progress(verbosity: options.verbosity)
    (diagnostics.progress, output.progress) = (progress, progress)
    defer { progress?.erase() }
    let pipeline = ReportPipeline(options: options, progress: progress)
    var source = ReportSource(options: options, diagnostics: diagnostics, symbolicator: pipeline.symbolicator)
    let hasDirectory = source.inputs.hasDirectory
    var array = JSONArray(isAlwaysArray: hasDirectory || source.inputs.files.count > 1, pretty: options.pretty)
    var groups = GroupTable()
    var totals = Totals()
    var writer = JSONWriter()
    let (options, output, diagnostics) = (options, output, diagnostics)
    let folder =
      OutputFolder.isMeant(by: options) ? options.output.map { OutputFolder($0, format: options.format) } : nil
    let isList = hasDirectory && options.format == .text && folder == nil
    let documents = ReportDocuments(options: options, textWriter: textWriter)
    var stream = DocumentOutput(options: options, output: output, folder: folder)
    func show(_ report: CrashReport, _ place: String) throws(Output.Failure) {
      var processed = pipeline.process(report)
      totals.add(processed)
      if options.format == .json || options.format == .ndjson {
        documents.addSource(to: &processed.report)
        for problem in documents.takeProblems() { diagnostics.errorOnce(problem) }
      }
      switch options.format {
      case .text where isList:
        try output.write(Self.line(for: processed, place: place))
        if let member = GroupMember(processed.report, analysis: processed.analysis) { groups.add(member) }
        for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
      case .json where folder == nil:
        try array.add(processed.report.json(pretty: options.pretty), to: output)
        for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
      case .ndjson:
        writer.removeAll()
        processed.report.write(to: &writer)
        writer.newline()
        try writer.withBytes { bytes throws(Output.Failure) in try output.write(bytes) }
        for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
      default:
        try stream.add(documents.document(of: processed), of: processed.report, place: place, diagnostics)
        for problem in documents.takeProblems() { diagnostics.errorOnce(problem) }
        guard options.format != .text, options.format != .markdown else { break }
        for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
      }
    }
    var latest = options.limit.map(LatestReports.init)
    let before = pipeline.problemsBefore
    for problem in before { try problem.tell(diagnostics, options.format, output) }
    try source.forEach { report, place throws(Output.Failure) in
      progress?.step(place)
      if latest == nil { try show(report, place) } else { latest?.add(report, place: place) }
      return true
    } onError: { file, line, message throws(Output.Failure) in
      if options.format == .ndjson { try output.write(StreamLines.error(file: file, line: line, message: message)) }
    }
    for (report, place) in latest?.take() ?? [] { try show(report, place) }
    let after = pipeline.problemsAfter
    for problem in after { try problem.tell(diagnostics, options.format, output) }
    totals.errors = source.errorCount + before.count + after.count + stream.refusedCount
    totals.skipped = source.skippedCount
    switch options.format {
    case .text where isList:
      if totals.reports > 0 {
        try output.write(
          "\n"
            + GroupListing.text(
              of: groups.groups(rules: options.grouping.rules), limit: nil, width: output.width))
      } else if source.errorCount == 0 {
        try output.write("No crashes.\n")
      }
    case .json where folder == nil: try array.end(output)
    case .ndjson: try output.write(StreamLines.summary(totals))
    default: try stream.end(documents)
    }
    // Never an empty answer. Lists and NDJSON have given theirs; no error, so that a spool in which all is well is none.
    let hasSaidNothing = totals.reports == 0 && source.errorCount == 0 && !isList && options.format != .ndjson
    if hasSaidNothing, let first = source.firstSkipped {
      let others = source.skippedCount > 1 ? ", nor in \(source.skippedCount - 1) others" : ""
      diagnostics.error(first.name, "no crash in it\(others); it is \(first.why)")
    }
    return totals.status(hasAnswer: totals.reports > 0 || source.errorCount == 0)
  }

  /// `2026-11-30T05:12:33.042Z  orderd 1.4.0  bounds in orderd.Store.load(id:)  9f3c…  FILE`
  private static func line(for processed: ProcessedReport, place: String) -> String {
    let report = processed.report
    let service = [report.service, report.release].compactMap { $0 }.joined(separator: " ")
    let what = (report.reason?.rawValue ?? report.type ?? "crash")
    let blame = processed.analysis.blame.map { " in \($0.function)" } ?? ""
    let parts = [
      report.timestamp?.rfc3339 ?? "-", service.isEmpty ? "-" : service, what + blame,
      report.stackHash?.digits ?? "-", place,
    ]
    return parts.map(Printable.line).joined(separator: "  ") + "\n"
  }
}

/// What was read and what came of it.
struct Totals {
  var reports = 0
  var incomplete = 0
  var errors = 0
  var skipped = 0
  var frames = 0
  var unresolvedFrames = 0
  /// Left out by `--since`.
  var older = 0
  /// Left out by `--since`, as they have no time.
  var undated = 0

  mutating func add(_ processed: ProcessedReport) {
    reports += 1
    if processed.isIncomplete { incomplete += 1 }
    for thread in processed.report.threads {
      // By index: an iterator hands out copies.
      for index in thread.frames.indices {
        switch thread.frames[index] {
        case .captured:
          frames += 1
          unresolvedFrames += 1
        case .symbolicated(let frame):
          frames += 1
          if frame.status != .resolved { unresolvedFrames += 1 }
        case .omitted: break
        }
      }
    }
  }

  func status(hasAnswer: Bool) -> ExitStatus {
    guard hasAnswer else { return .nothing }
    return errors > 0 || incomplete > 0 ? .incomplete : .complete
  }
}

/// Whether to use what only terminals understand.
enum Terminal {
  static func usesColor(_ color: Options.Color, isTerminal: Bool) -> Bool {
    switch color {
    case .always: return true
    case .never: return false
    case .auto:
      if isSet("NO_COLOR") { return false }
      if isSet("CLICOLOR_FORCE") { return true }
      return isTerminal && value("TERM") != "dumb"
    }
  }

  private static func isSet(_ name: String) -> Bool { value(name).map { !$0.isEmpty } ?? false }

  private static func value(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
