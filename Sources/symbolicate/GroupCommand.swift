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
    let pipeline = ReportPipeline(options: options, for: .groups, progress: progress)
    var source = ReportSource(options: options, diagnostics: diagnostics, symbolicator: pipeline.symbolicator)
    var table = GroupTable()
    var totals = Totals()
    let (options, output, diagnostics) = (options, output, diagnostics)
    let before = pipeline.problemsBefore
    for problem in before { try problem.tell(diagnostics, options.format, output) }
    try source.forEach { report, place throws(Output.Failure) in
      progress?.step(place)
      let processed = pipeline.process(report)
      totals.add(processed)
      for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
      if let member = GroupMember(processed.report, analysis: processed.analysis) {
        table.add(member)
      } else {
        totals.incomplete += 1
        diagnostics.error(place, "no stack was captured, so that it belongs to no group")
      }
      return true
    } onError: { file, line, message throws(Output.Failure) in
      if options.format == .ndjson { try output.write(StreamLines.error(file: file, line: line, message: message)) }
    }
    let after = pipeline.problemsAfter
    for problem in after { try problem.tell(diagnostics, options.format, output) }
    totals.errors = source.errorCount + before.count + after.count
    totals.skipped = source.skippedCount
    let groups = table.groups(rules: options.grouping.rules)
    let shown = Array(groups.prefix(options.limit ?? groups.count))
    switch options.format {
    case .json:
      var array = JSONArray(isAlwaysArray: true, pretty: options.pretty)
      for group in shown { try array.add(Self.json(group, pretty: options.pretty), to: output) }
      try array.end(output)
    case .ndjson:
      for group in shown { try output.write(Self.json(group, pretty: false) + [UInt8(ascii: "\n")]) }
      try output.write(StreamLines.summary(totals, groups: groups.count))
    default:
      if totals.reports > 0 {
        try output.write(GroupListing.text(of: groups, limit: options.limit, width: output.width))
      } else if source.errorCount == 0 {
        try output.write("No crashes.\n")
      }
    }
    return totals.status(hasAnswer: totals.reports > 0 || source.errorCount == 0)
  }

  private static func json(_ group: CrashGroup, pretty: Bool) -> [UInt8] {
    var writer = JSONWriter(pretty: pretty)
    group.write(to: &writer)
    return writer.bytes
  }
}

/// Groups as a table.
enum GroupListing {
  static func text(of groups: [CrashGroup], limit: Int?, width: Int?) -> String {
    var table = TextTable(columns: [
      .init("COUNT", isRightAligned: true), .init("FIRST SEEN"), .init("LAST SEEN"), .init("RELEASES", minimumWidth: 8),
      .init("REASON"), .init("BLAMED FUNCTION", minimumWidth: 20), .init("PLACE", minimumWidth: 12),
      .init("STACK HASH"),
    ])
    for group in groups.prefix(limit ?? groups.count) {
      let place = group.sample.blame.flatMap { blame in
        blame.file.map { file in
          let name = file.split(separator: "/").last.map(String.init) ?? file
          // Line 0 is what compilers give to code that stands nowhere.
          guard let line = blame.line, line > 0 else { return name }
          return "\(name):\(line)"
        }
      }
      table.add([
        String(group.count), day(group.firstSeen), day(group.lastSeen),
        group.sortedReleases.map { "\($0.name) (\($0.count))" }.joined(separator: ", "),
        group.sample.reason?.rawValue ?? "-", group.sample.blame?.function ?? "-", place ?? "-",
        group.hash.quality == .dwarf ? group.hash.digits : "\(group.hash.digits) (\(group.hash.quality.rawValue))",
      ])
    }
    let omitted = groups.count - min(limit ?? groups.count, groups.count)
    return table.text(width: width) + (omitted > 0 ? "\(omitted) more groups\n" : "")
  }

  /// `2026-11-30 05:12`, UTC.
  private static func day(_ moment: Timestamp?) -> String {
    guard let moment else { return "-" }
    let text = moment.rfc3339
    return text.prefix(10) + " " + text.dropFirst(11).prefix(5)
  }
}
