internal import CrashFormats
private import CrashGrouping
internal import CrashModel
internal import Symbolication

/// What is known of a crash after the work.
struct ProcessedReport {
  var report: CrashReport
  var analysis: StackAnalysis
  var symbols: [ImageSymbols]
  /// A frame lacks a name that it could have.
  var isIncomplete: Bool
}

/// The way of every report: redaction, names, reason, stack hash.
final class ReportPipeline {
  let symbolicator: Symbolicator
  private let hasher: StackHasher
  /// nil to leave what reports say as it is.
  private let redactor: Redactor?

  /// Where several processes share the work, what they found is put together.
  var given: GivenFiles
  /// Files were named to take names from, which may be better ones than those that a report comes with.
  private let hasFiles: Bool
  private let purpose: Purpose

  /// What the reports are wanted for.
  enum Purpose {
    /// To be shown or written, with all that is in them.
    case reports
    /// To be added up. Only what a `GroupMember` takes is fit to leave the program, and no frame says whose it is.
    case groups
  }

  /// - Parameter progress: shown while debug files are read.
  init(options: Options, for purpose: Purpose = .reports, progress: Progress? = nil) {
    self.purpose = purpose
    let rules = options.grouping.rules
    hasher = StackHasher(leavesBuildOut: options.grouping.acrossBuilds, rules: rules.isEmpty ? nil : rules)
    symbolicator = options.symbolicator(files: options.executables)
    redactor = options.redaction.isOn ? options.redactor : nil
    if let progress { symbolicator.whileWaiting = { progress.wait("reading debug files") } }
    let isGiven = !options.executables.isEmpty || !options.debugDirectories.isEmpty || options.sysroot != nil
    given = isGiven ? GivenFiles(symbolicator) : GivenFiles()
    hasFiles = isGiven
  }

  /// What was given with `--exe` and `--debug-dir` and cannot be used, whatever the reports are.
  var problemsBefore: [GivenFiles.Problem] { given.unusable }

  /// The files of `--exe` that no report so far has an image for.
  var problemsAfter: [GivenFiles.Problem] { given.unwanted }

  /// What does the same for reports that need no file: nil where files were named, or rules, which look at more than it
  /// does.
  func makeAnalyzer() -> NamedStackAnalyzer? {
    guard !hasFiles, purpose == .groups else { return nil }
    return NamedStackAnalyzer(hasher: hasher, redactor: redactor)
  }

  func process(_ original: consuming CrashReport) -> ProcessedReport {
    given.note(original)
    // Whoever wrote it: what our own library wrote stays as it is.
    switch purpose {
    case .reports: redactor?.redact(&original)
    case .groups:
      redactor?.redactSummary(of: &original)
      if let processed = processNamed(&original) { return processed }
    }
    // Changed in its place from here on: a copy of a report that both own would be made frame by frame.
    var result = symbolicator.symbolicate(original)
    let analysis = hasher.analyze(result.report, runtimeFailure: result.runtimeFailure)
    if result.report.kind == .crash || result.report.reason == nil { result.report.reason = analysis.reason }
    if purpose == .reports { analysis.decideOwnership(in: &result.report) }
    let hasFrames = !(result.report.crashedThread?.frames.isEmpty ?? true)
    if hasFrames { update(&result.report, with: analysis.hash) }
    let executable = result.report.executableImageIndex
    let symbols = result.images.map { summary in
      ImageSymbols(
        summary, isApplication: result.report.isApplicationImage(summary.imageIndex, executable: executable))
    }
    return ProcessedReport(
      report: result.report, analysis: analysis, symbols: symbols,
      isIncomplete: symbols.contains { $0.problem != nil } || Self.lacksImages(result.report))
  }

  /// A report whose names can get no better is grouped by them: no file of it is looked for.
  ///
  /// That is so where the function to blame has debug information, and so has every function on the way to it but those of
  /// the runtime: what is inlined into one without could be the one to blame.
  ///
  /// - Returns: nil for any other report. In that too, only the frames are left that say where it crashed.
  private func processNamed(_ report: inout CrashReport) -> ProcessedReport? {
    for index in report.threads.indices where index != report.crashedThreadIndex {
      report.threads[index].frames = []
    }
    guard !hasFiles, let frames = report.crashedThread?.frames, !frames.isEmpty else { return nil }
    let isNamed = frames.allSatisfy { frame in
      switch frame {
      case .symbolicated(let frame): frame.status == .resolved && frame.function != nil
      case .omitted: true
      case .captured: false
      }
    }
    guard isNamed else { return nil }
    let analysis = hasher.analyze(report)
    guard analysis.hash.quality == .dwarf else { return nil }
    for entry in analysis.frames {
      if entry.isBlamed { break }
      guard entry.frame.hasDebugInformation || entry.frameClass.kind == .runtime || entry.frameClass.kind == .trap
      else {
        return nil
      }
    }
    if report.kind == .crash || report.reason == nil { report.reason = analysis.reason }
    update(&report, with: analysis.hash)
    return ProcessedReport(report: report, analysis: analysis, symbols: [], isIncomplete: false)
  }

  /// A log of addresses that lists no images: its frames had names to be found, and nothing to find them by.
  private static func lacksImages(_ report: CrashReport) -> Bool {
    guard UnplacedImages.isNoted(in: report) else { return false }
    return report.threads.contains { thread in
      thread.frames.contains { frame in
        frame.captured.map(\.hasAddress) ?? false && frame.symbolicated?.function == nil
      }
    }
  }

  /// The better hash becomes the report's; what it had before is kept.
  private func update(_ report: inout CrashReport, with hash: StackHash) {
    guard let earlier = report.stackHash, earlier != hash else {
      report.stackHash = hash
      return
    }
    // Without debug files here the names may be worse than those that the report came with.
    let (best, other) = hash.quality >= earlier.quality ? (hash, earlier) : (earlier, hash)
    report.stackHash = best
    if !report.previousStackHashes.contains(other) { report.previousStackHashes.append(other) }
    report.previousStackHashes.removeAll { $0 == best }
  }
}

extension ImageSymbols {
  /// The one place where the search's answers become words.
  ///
  /// - Parameter isApplication: the image is not the system's, whose libraries come without full names everywhere.
  init(_ summary: ImageSummary, isApplication: Bool) {
    // Made for a problem only: a batch has one of these for each image of each report.
    var image: String {
      let id = summary.buildID.map { "build id \($0)" } ?? "no build id"
      return "\(summary.path.isEmpty ? "an image without a path" : summary.path) (\(id))"
    }
    var status: String
    var problem: String?
    switch summary.status {
    case .debugInformation:
      status = "debug information"
      // Named and incomplete: the functions that were inlined are missing, or a name.
      problem = summary.companionProblems.isEmpty ? nil : summary.companionProblems.joined(separator: "; ")
    case .symbolsOnly(let reason):
      status = "symbols only"
      problem = reason.map { "\(image): debug information cannot be read: \($0)" }
    case .dynamicSymbolsOnly(let reason):
      status = "exported symbols only"
      problem = reason.map { "\(image): debug information cannot be read: \($0)" }
      if problem == nil, isApplication, summary.namelessFrameCount > 0 {
        let frames = summary.namelessFrameCount == 1 ? "1 frame" : "\(summary.namelessFrameCount) frames"
        problem =
          "\(image) has no debug information and is stripped, so that \(frames) in it have no name; name the file as it "
          + "was before strip, or its debug file, with --exe FILE or --debug-dir DIR"
      }
    case .notFound(let places):
      status = "not found"
      // The last one too: that is where a server says why it has nothing.
      let shown = places.count > 8 ? places.prefix(7) + places.suffix(1) : places[...]
      let looked = shown.isEmpty ? "" : "; looked in \(shown.joined(separator: ", "))"
      problem = "no file for \(image)\(looked); try --exe FILE or --debug-dir DIR"
    case .buildIDMismatch(let path, let found):
      status = "build id mismatch"
      problem =
        "\(path) is of another build (\(found.map { "build id \($0)" } ?? "no build id")) than \(image) and was not used; "
        + "try --debug-dir DIR with the files of the build that ran"
    case .unreadable(let path, let reason):
      status = "unreadable"
      problem = "\(path), wanted for \(image): \(reason)"
    case .noNames(let path):
      status = "no symbols"
      problem = "\(path) has neither debug information nor symbols for \(image); try --debug-dir DIR"
    }
    // The kernel makes the vdso and gives no file of it; its frames can have no name.
    if summary.path.hasPrefix("linux-vdso") || summary.path == "[vdso]" { problem = nil }
    if summary.isUnverified { status += ", build unverified" }
    self.init(imageIndex: summary.imageIndex, status: status, problem: problem)
  }
}
