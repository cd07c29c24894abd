private import CrashFormats
internal import CrashModel

/// `symbolicate group --diff A B`
struct DiffCommand {
  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output

  init(options: Options, diagnostics: Diagnostics, output: Output) {
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
  }

  func run() throws(Output.Failure) -> ExitStatus {
    let pipeline = ReportPipeline(options: options)
    var source = ReportSource(options: options, diagnostics: diagnostics, symbolicator: pipeline.symbolicator)
    var sides: [ReportDiff.Side] = []
    var isIncomplete = false
    var hasMore = false
    for problem in pipeline.problemsBefore { diagnostics.errorOnce(problem.message) }
    try source.forEach { report, place throws(Output.Failure) in
      guard sides.count < 2 else {
        hasMore = true
        return false
      }
      let processed = pipeline.process(report)
      for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
      isIncomplete = isIncomplete || processed.isIncomplete
      sides.append(ReportDiff.Side(place: place, report: processed.report, analysis: processed.analysis))
      return true
    } onError: { _, _, _ in
    }
    guard sides.count == 2, !hasMore else {
      let found = hasMore ? "more than two" : sides.count == 1 ? "one" : "none"
      diagnostics.fatal("--diff compares two reports, and found \(found); name two files with one report each")
      return .nothing
    }
    try output.write(ReportDiff(left: sides[0], right: sides[1]).text(width: output.width))
    return isIncomplete || source.errorCount > 0 ? .incomplete : .complete
  }
}
