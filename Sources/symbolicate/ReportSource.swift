internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// Goes through the inputs, one report at a time, and keeps the count of what was there.
struct ReportSource {
  private(set) var reportCount = 0
  private(set) var errorCount = 0
  private(set) var skippedCount = 0
  let inputs: Inputs
  private let options: Options
  private let diagnostics: Diagnostics
  private let cores: CoreInput
  /// So many problems of one file are told one by one: a binary file in NDJSON would have one for each line.
  private static let problemLimit = 10

  /// - Parameter symbolicator: finds the files by which the stacks in a core are walked.
  init(options: Options, diagnostics: Diagnostics, symbolicator: Symbolicator) {
    self.options = options
    self.diagnostics = diagnostics
    cores = CoreInput(symbolicator)
    inputs = Inputs(operands: options.operands, output: options.output)
  }

  /// - Parameters:
  ///   - body: gets each report and the name of its place; false ends the reading.
  ///   - onError: gets each error, besides its being written to standard error.
  mutating func forEach(
    _ body: (CrashReport, _ place: String) throws(Output.Failure) -> Bool,
    onError: (_ file: String, _ line: Int?, _ message: String) throws(Output.Failure) -> Void
  ) throws(Output.Failure) {
    for skipped in inputs.skipped { diagnostics.detail(skipped.path.description, "skipped: \(skipped.reason)") }
    for failure in inputs.failures {
      let path = failure.path.description
      errorCount += 1
      diagnostics.error(path, failure.reason)
      try onError(path, nil, failure.reason)
    }
    guard let reader = InputReader() else {
      diagnostics.fatal("no memory")
      errorCount += 1
      return
    }
    for file in inputs.files {
      guard try read(file, with: reader, body, onError) else { return }
    }
  }

  private mutating func read(
    _ file: Inputs.File, with reader: InputReader,
    _ body: (CrashReport, String) throws(Output.Failure) -> Bool,
    _ onError: (String, Int?, String) throws(Output.Failure) -> Void
  ) throws(Output.Failure) -> Bool {
    var coreFailure: InputError?
    var spooled: SpooledInput?
    if file.path == nil {
      do throws(InputError) { spooled = try SpooledInput.ofCore() } catch { coreFailure = error }
    }
    let path = file.path ?? spooled?.path
    if coreFailure == nil, let path {
      switch cores.report(of: path) {
      case .report(let report):
        reportCount += 1
        return try body(report, file.name)
      case .failure(let error): coreFailure = error
      case .other: break
      }
    }
    var goesOn = true
    var failure: Output.Failure?
    var reports = 0
    var problems = 0
    var skipped: [String: Int] = [:]
    var counters = self
    let name = file.name
    func perform(_ work: () throws(Output.Failure) -> Void) {
      do throws(Output.Failure) { try work() } catch { failure = error }
    }
    do throws(InputError) {
      if let coreFailure { throw coreFailure }
      try reader.read(path, requiresMark: file.isFound && !file.isNamedJSON) { event in
        switch event {
        case .report(let report, let line):
          reports += 1
          perform { () throws(Output.Failure) in
            goesOn = try body(report, line.map { $0 > 1 ? "\(name):\($0)" : name } ?? name)
          }
        case .skipped(let why, let line):
          counters.skippedCount += 1
          if skipped.count < 16 || skipped[why] != nil { skipped[why, default: 0] += 1 }
          counters.diagnostics.detail(line.map { "\(name):\($0)" } ?? name, "skipped: \(why)")
        case .problem(let why, let line):
          problems += 1
          counters.errorCount += 1
          if problems <= Self.problemLimit {
            counters.diagnostics.error(line.map { "\(name):\($0)" } ?? name, why)
          }
          perform { () throws(Output.Failure) in try onError(name, line, why) }
        }
        return goesOn && failure == nil
      }
    } catch {
      if Self.isForeign(file, error) {
        counters.diagnostics.detail(name, "skipped: \(error.description)")
      } else {
        counters.errorCount += 1
        counters.diagnostics.error(name, error.description)
        perform { () throws(Output.Failure) in try onError(name, nil, error.description) }
      }
    }
    counters.reportCount += reports
    if problems > Self.problemLimit {
      counters.diagnostics.error(name, "\(problems - Self.problemLimit) more such lines")
    }
    // Never an empty answer: a file that was named and holds no crash says what it holds. A record without a crash is
    // what a directory of them is full of, and no mistake.
    let isRecord = skipped.keys.contains { $0.hasPrefix("the record of a run") }
    if reports == 0, problems == 0, failure == nil, !skipped.isEmpty, !isRecord {
      let found = skipped.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) times \($0.key)" }
      let why = "no crash report in it; found " + found.joined(separator: ", ")
      if file.isFound {
        counters.diagnostics.detail(name, why)
      } else {
        counters.errorCount += 1
        counters.diagnostics.error(name, why)
        perform { () throws(Output.Failure) in try onError(name, nil, why) }
      }
    }
    self = counters
    if let failure { throw failure }
    return goesOn
  }
  /// A directory holds much that is no crash, and that is no mistake. What bears the name of a record or a report and has
  /// lost its content was one.
  private static func isForeign(_ file: Inputs.File, _ error: InputError) -> Bool {
    guard file.isFound else { return false }
    return switch error.code {
    case .unknownFormat: !file.isNamedRecord
    case .empty: !file.isNamedRecord && !file.isNamedJSON
    case .unreadable, .notAFile, .damaged, .tooLarge: false
    }
  }
}
