internal import CrashFormats
internal import CrashGrouping
internal import CrashModel

/// `symbolicate group DIR…|-`
struct GroupCommand {
  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output

  init(options: Options, diagnostics: Diagnostics, output: Output) {
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
  }

  mutating func run() throws(Output.Failure) -> ExitStatus {
    let progress = Progress(verbosity: options.verbosity)
    (diagnostics.progress, output.progress) = (progress, progress)
    defer { progress?.erase() }
    // Before the reports, whose reading may take hours.
    var baseline: GroupBaseline?
    var baselineSettings: HashSettings?
    if let path = options.groups.baseline {
      do throws(GroupStateError) {
        guard let reader = GroupStateReader() else { throw GroupStateError("no memory") }
        let rules = options.grouping.rules
        let earlier = try reader.groups(of: path == FilePath("-") ? nil : path, rules: rules)
        baseline = GroupBaseline(earlier.groups)
        baselineSettings = earlier.settings
      } catch {
        diagnostics.fatal("\(path): \(error.message)")
        return .nothing
      }
    }
    var collector = GroupCollector(options: options, diagnostics: diagnostics, progress: progress)
    try collector.collect(output)
    let hasAnswer = collector.totals.reports > 0 || collector.totals.errors == 0
    if options.groups.writesState {
      try collector.table.writeState { piece throws(Output.Failure) in try output.write(piece) }
      return collector.totals.status(hasAnswer: hasAnswer)
    }
    var groups = collector.table.groups(rules: options.grouping.rules)
    if let baseline {
      groups = baseline.compare(groups)
      // No reason to stop: whoever changes a rule must be able to see what became of the groups.
      if let found = baselineSettings, let settings = collector.table.settings, found != settings {
        diagnostics.error(
          options.groups.baseline?.description ?? "--baseline",
          "made with \(found.description), and these groups with \(settings.description): some are new or gone by that "
            + "alone")
      }
    }
    groups = ordered(groups)
    try GroupWriter(options: options, output: output, diagnostics: diagnostics).write(groups, collector.totals)
    let failures = failures(among: groups)
    guard hasAnswer, !failures.isEmpty else { return collector.totals.status(hasAnswer: hasAnswer) }
    diagnostics.error("--fail-on", failures)
    return .failed
  }

  /// What is gone stands behind what is there, whatever the order.
  private func ordered(_ groups: [CrashGroup]) -> [CrashGroup] {
    var present: [CrashGroup] = []
    var gone: [CrashGroup] = []
    for group in options.groups.order.sorted(groups) {
      if group.status == .gone { gone.append(group) } else { present.append(group) }
    }
    return present + gone
  }

  /// `2 new, 1 regressed`; empty where there are none of those that `--fail-on` names.
  private func failures(among groups: [CrashGroup]) -> String {
    var counts: [GroupStatus: Int] = [:]
    for group in groups { if let status = group.status { counts[status, default: 0] += 1 } }
    let wanted = GroupStatus.allCases.filter(options.groups.failsOn.contains)
    guard wanted.contains(where: { counts[$0] != nil }) else { return "" }
    return wanted.map { "\(counts[$0] ?? 0) \($0.rawValue)" }.joined(separator: ", ")
  }
}

/// Goes through the inputs and adds their reports up.
struct GroupCollector {
  var table: GroupTable
  var totals = Totals()
  let options: Options
  let diagnostics: Diagnostics
  let progress: Progress?
  let pipeline: ReportPipeline
  /// Of reports that need no file and no rule, in the place of the pipeline.
  private let named: NamedReports?

  /// Remembers what it saw, whoever copies the collector.
  private final class NamedReports {
    var reader = NamedReportReader()
    var analyzer: NamedStackAnalyzer

    init(_ analyzer: NamedStackAnalyzer) { self.analyzer = analyzer }
  }

  /// Of a group's stack, in bytes: what shows where it crashed. There is one for each bug, build and line.
  private static let stackLimit = 1_000
  /// A table of rows has no room for one, and in a stream each report is the newest of its group.
  private let showsStacks: Bool

  init(options: Options, diagnostics: Diagnostics, progress: Progress?) {
    self.options = options
    self.diagnostics = diagnostics
    self.progress = progress
    table = GroupTable(keepsMembers: options.groups.showsMembers)
    showsStacks = options.groups.writesState || options.format != .text
    pipeline = ReportPipeline(options: options, for: .groups, progress: progress)
    named = pipeline.makeAnalyzer().map { NamedReports($0) }
  }

  /// - Parameter output: gets errors as lines, with `--format ndjson`.
  mutating func collect(_ output: Output) throws(Output.Failure) {
    let (options, diagnostics) = (options, diagnostics)
    func tell(_ file: String, _ line: Int?, _ message: String) throws(Output.Failure) {
      guard options.format == .ndjson, !options.groups.writesState else { return }
      try output.write(StreamLines.error(file: file, line: line, message: message))
    }
    var source = ReportSource(options: options, diagnostics: diagnostics, symbolicator: pipeline.symbolicator)
    let states = source.takeStates()
    let before = pipeline.problemsBefore
    for problem in before {
      diagnostics.error(problem.path, problem.message)
      try tell(problem.path, nil, problem.message)
    }
    // Without reports, groups are shown as the states have them.
    if states.isEmpty || !source.inputs.files.isEmpty || options.grouping.settings != HashSettings() {
      table.settings = options.grouping.settings
    }
    for path in states {
      if let message = add(stateOf: path) {
        totals.errors += 1
        diagnostics.error(path.description, message)
        try tell(path.description, nil, message)
      }
    }
    if options.groups.jobs > 1 {
      try collectWithWorkers(&source, tell)
    } else {
      var collector = self
      try source.forEach {
        collector.take($0, $1, $2)
      } _: { report, place throws(Output.Failure) in
        collector.add(report, place)
        return true
      } onError: { file, line, message throws(Output.Failure) in
        try tell(file, line, message)
      }
      self = collector
    }
    let after = pipeline.problemsAfter
    for problem in after {
      diagnostics.error(problem.path, problem.message)
      try tell(problem.path, nil, problem.message)
    }
    totals.errors += source.errorCount + before.count + after.count
    totals.skipped += source.skippedCount
    if totals.undated > 0 {
      let count = totals.undated == 1 ? "1 report" : "\(totals.undated) reports"
      diagnostics.error("--since", "\(count) without a time left out")
    }
  }

  /// Adds a report whose frames all have their names, without making a `CrashReport` of it.
  ///
  /// - Returns: false where it is left to `add`.
  mutating func take(_ parsed: ParsedReport, _ file: String, _ line: Int?) -> Bool {
    guard let named, named.reader.read(parsed) else { return false }
    let report = named.reader.report
    if let since = options.groups.since {
      // What is to be said of the others is said elsewhere.
      guard let moment = report.timestamp, moment >= since else { return false }
    }
    let stackLimit = showsStacks ? Self.stackLimit : nil
    guard table.add(report, with: &named.analyzer, stackLimit: stackLimit, whole: parsed.report) else { return false }
    if let progress { progress.step(line.map { $0 > 1 ? "\(file):\($0)" : file } ?? file) }
    totals.reports += 1
    totals.frames += report.frames.count
    return true
  }

  mutating func add(_ report: CrashReport, _ place: String) {
    progress?.step(place)
    if let since = options.groups.since {
      guard let moment = report.timestamp else {
        totals.undated += 1
        return
      }
      guard moment >= since else {
        totals.older += 1
        return
      }
    }
    let processed = pipeline.process(report)
    totals.add(processed)
    for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
    if let member = GroupMember(processed.report, analysis: processed.analysis) {
      if showsStacks {
        table.add(member) { processed.report.stackText(limit: Self.stackLimit) }
      } else {
        table.add(member)
      }
    } else {
      totals.incomplete += 1
      diagnostics.error(place, "no stack was captured, so that it belongs to no group")
    }
  }

  /// - Returns: why nothing was added; nil where all was.
  private mutating func add(stateOf path: FilePath) -> String? {
    guard options.groups.since == nil else {
      return "a state has no single reports, from which --since could choose"
    }
    guard let reader = GroupStateReader() else { return "no memory" }
    do throws(GroupStateError) {
      let other = try reader.table(of: path)
      try table.adoptSettings(of: other)
      totals.reports = totals.reports.addingClamped(other.reportCount)
      table.formUnion(other)
      return nil
    } catch {
      return error.message
    }
  }
}

extension Int {
  /// Numbers from outside may be as large as numbers can be.
  fileprivate func addingClamped(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}
