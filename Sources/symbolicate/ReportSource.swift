internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// Goes through the inputs, one report at a time, and keeps the count of what was there.
struct ReportSource {
  private(set) var reportCount = 0
  private(set) var errorCount = 0
  private(set) var skippedCount = 0
  /// What the first document without a crash is, for whoever else would get no answer at all.
  private(set) var firstSkipped: (name: String, why: String)?
  private(set) var inputs: Inputs
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

  /// The same inputs, once more, for another process.
  init(_ other: ReportSource, diagnostics: Diagnostics, symbolicator: Symbolicator) {
    options = other.options
    self.diagnostics = diagnostics
    cores = CoreInput(symbolicator)
    inputs = other.inputs
  }

  /// Takes the states of groups out of the inputs.
  ///
  /// Only those that were named: one in a directory of reports was most likely made from these, and would count them
  /// again.
  mutating func takeStates() -> [FilePath] {
    var states: [FilePath] = []
    inputs.removeFiles { file in
      guard let path = file.path, GroupStateReader.isState(path) else { return false }
      if file.isFound {
        skippedCount += 1
        diagnostics.detail(path.description, "skipped: a state of groups; name it to add its reports")
      } else {
        states.append(path)
      }
      return true
    }
    return states
  }

  /// Tells what is wrong with the inputs as such.
  ///
  /// - Parameter onError: gets each error, besides its being written to standard error.
  mutating func begin(
    onError: (_ file: String, _ line: Int?, _ message: String) throws(Output.Failure) -> Void
  ) throws(Output.Failure) {
    for skipped in inputs.skipped { diagnostics.detail(skipped.path.description, "skipped: \(skipped.reason)") }
    for failure in inputs.failures {
      let path = failure.path.description
      errorCount += 1
      diagnostics.error(path, failure.reason)
      try onError(path, nil, failure.reason)
    }
  }

  /// - Returns: what reads one file after the other; nil, and said so, without memory.
  mutating func makeReader() -> InputReader? {
    // A group takes nothing else from a report.
    if let reader = InputReader(detail: options.command == .group ? .crash : .all) { return reader }
    diagnostics.fatal("no memory")
    errorCount += 1
    return nil
  }

  /// - Parameters:
  ///   - take: gets each report in JSON first.
  ///   - body: gets each report and the name of its place; false ends the reading.
  ///   - onError: as for `begin`.
  mutating func forEach(
    take: Taker = { _, _, _ in false },
    _ body: (CrashReport, _ place: String) throws(Output.Failure) -> Bool,
    onError: (_ file: String, _ line: Int?, _ message: String) throws(Output.Failure) -> Void
  ) throws(Output.Failure) {
    try begin(onError: onError)
    guard let reader = makeReader() else { return }
    for file in inputs.files {
      guard try read(file, with: reader, take: take, body, onError) else { return }
    }
  }

  /// `InputReader.Taker`, with the name of the file.
  typealias Taker = (ParsedReport, _ file: String, _ line: Int?) -> Bool

  /// What was found in a file, to be told together.
  struct Account {
    fileprivate let file: Inputs.File
    fileprivate var reports = 0
    fileprivate var problems = 0
    fileprivate var skipped: [String: Int] = [:]

    init(_ file: Inputs.File) { self.file = file }

    mutating func add(reports count: Int) { reports += count }
  }

  /// A document that is of no concern here.
  mutating func skip(_ why: String, line: Int?, in account: inout Account) {
    let name = account.file.name
    skippedCount += 1
    if firstSkipped == nil { firstSkipped = (name, why) }
    if account.skipped.count < 16 || account.skipped[why] != nil { account.skipped[why, default: 0] += 1 }
    diagnostics.detail(line.map { "\(name):\($0)" } ?? name, "skipped: \(why)")
  }

  /// A part of the file that should be a report and is not.
  mutating func fail(
    _ why: String, line: Int?, in account: inout Account,
    _ onError: (String, Int?, String) throws(Output.Failure) -> Void
  ) throws(Output.Failure) {
    let name = account.file.name
    account.problems += 1
    errorCount += 1
    if account.problems <= Self.problemLimit { diagnostics.error(line.map { "\(name):\($0)" } ?? name, why) }
    try onError(name, line, why)
  }

  /// The file is read.
  mutating func finish(_ account: Account, _ onError: (String, Int?, String) throws(Output.Failure) -> Void)
    throws(Output.Failure)
  {
    let (file, name) = (account.file, account.file.name)
    reportCount += account.reports
    if account.problems > Self.problemLimit {
      diagnostics.error(name, "\(account.problems - Self.problemLimit) more such lines")
    }
    // Never an empty answer: a file that was named and holds no crash says what it holds. A record without a crash is
    // what a directory of them is full of, and no mistake.
    let isRecord = account.skipped.keys.contains { $0.hasPrefix("the record of a run") }
    guard account.reports == 0, account.problems == 0, !account.skipped.isEmpty, !isRecord else { return }
    let found = account.skipped.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      .map { "\($0.value) times \($0.key)" }
    let why = "no crash report in it; found " + found.joined(separator: ", ")
    if file.isFound {
      diagnostics.detail(name, why)
    } else {
      errorCount += 1
      diagnostics.error(name, why)
      try onError(name, nil, why)
    }
  }

  /// - Parameter beginning: what was read of the file before, from its start.
  mutating func read(
    _ file: Inputs.File, with reader: InputReader, beginning: UnsafeRawBufferPointer = .init(start: nil, count: 0),
    take: Taker = { _, _, _ in false }, _ body: (CrashReport, String) throws(Output.Failure) -> Bool,
    _ onError: (String, Int?, String) throws(Output.Failure) -> Void
  ) throws(Output.Failure) -> Bool {
    var coreFailure: InputError?
    var spooled: SpooledInput?
    if file.path == nil, beginning.isEmpty {
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
    var counters = self
    var account = Account(file)
    let name = file.name
    func perform(_ work: () throws(Output.Failure) -> Void) {
      do throws(Output.Failure) { try work() } catch { failure = error }
    }
    let takenBefore = reader.takenCount
    do throws(InputError) {
      if let coreFailure { throw coreFailure }
      try reader.read(path, requiresMark: file.isFound && !file.isNamedJSON, beginning: beginning) {
        take($0, name, $1)
      } _: { event in
        switch event {
        case .report(let report, let line):
          account.reports += 1
          perform { () throws(Output.Failure) in
            goesOn = try body(report, line.map { $0 > 1 ? "\(name):\($0)" : name } ?? name)
          }
        case .skipped(let why, let line): counters.skip(why, line: line, in: &account)
        case .problem(let why, let line):
          perform { () throws(Output.Failure) in try counters.fail(why, line: line, in: &account, onError) }
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
    account.reports += reader.takenCount - takenBefore
    if failure == nil {
      perform { () throws(Output.Failure) in try counters.finish(account, onError) }
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
