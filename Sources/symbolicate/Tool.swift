private import CrashFormats
internal import CrashModel
private import Glibc

/// The program: parse, run, exit code.
enum Tool {
  static var version: String { Product.version }

  static func run() -> Never {
    // A closed pipe is an answer of `write`, not the end of the process: what is half done gets tidied up.
    signal(SIGPIPE, SIG_IGN)
    exit(status(arguments: Argument.ofProcess()).rawValue)
  }

  private static func status(arguments: [Argument]) -> ExitStatus {
    var options: Options
    do throws(UsageError) { options = try ArgumentParser.parse(arguments) } catch {
      return usage(error.message)
    }
    let diagnostics = Diagnostics(verbosity: options.verbosity)
    let output: Output
    do throws(Output.Failure) {
      if options.showsHelp || options.showsVersion || options.command == .help || options.writesManual
        || options.completionShell != nil
      {
        return try describe(options)
      }
      if let problem = problem(of: options) { return usage(problem) }
      // Before the inputs are read, which may take long.
      do throws(UsageError) {
        try options.readRedactionRules()
        if options.command == .addr { try AddrCommand.check(options) } else { try checkInputs(options) }
      } catch {
        return usage(error.message)
      }
      if let path = options.grouping.rulesFile {
        do throws(RulesFile.Failure) { options.grouping.rules = try RulesFile.read(path) } catch {
          diagnostics.fatal(error.message)
          return .usage
        }
      }
      // Where each report becomes a file, nothing goes to standard output.
      let isState = options.command == .groupMerge || options.groups.writesState
      let path = isState ? options.output.map(Output.target) : options.output
      output = try Output(path: OutputFolder.isMeant(by: options) ? nil : path)
    } catch {
      return failure(error, diagnostics)
    }
    do throws(Output.Failure) {
      var status: ExitStatus
      switch options.command {
      case .group where options.grouping.isDiff:
        status = try DiffCommand(options: options, diagnostics: diagnostics, output: output).run()
      case .group:
        var command = GroupCommand(options: options, diagnostics: diagnostics, output: output)
        status = try command.run()
      case .groupMerge:
        status = try GroupMergeCommand(options: options, diagnostics: diagnostics, output: output).run()
      case .groupResolve:
        status = try GroupResolveCommand(options: options, diagnostics: diagnostics, output: output).run()
      case .runs:
        status = try RunsCommand(options: options, diagnostics: diagnostics, output: output).run()
      case .addr:
        var command = AddrCommand(options: options, diagnostics: diagnostics, output: output)
        status = try command.run()
      case .redact:
        var command = RedactCommand(options: options, diagnostics: diagnostics, output: output)
        status = try command.run()
      case .check:
        var command = CheckCommand(options: options, diagnostics: diagnostics, output: output)
        status = try command.run()
      case .store, .storeAdd, .storeList, .storeCollect:
        status = try keepStore(options, diagnostics, output)
      case .symbolicate where options.isFilter:
        guard var command = FilterCommand(options: options, diagnostics: diagnostics, output: output) else {
          diagnostics.fatal("no memory")
          return .nothing
        }
        status = try command.run()
      case .symbolicate, .help:
        var command = SymbolicateCommand(options: options, diagnostics: diagnostics, output: output)
        status = try command.run()
      }
      if status == .nothing { try output.finishWithoutResult() } else { try output.finish() }
      if status == .incomplete, options.strict { status = .nothing }
      return status
    } catch {
      output.abandon()
      return failure(error, diagnostics)
    }
  }

  private static func checkInputs(_ options: Options) throws(UsageError) {
    let hasDirectory = options.operands.contains(where: Inputs.isDirectory)
    try ArgumentParser.check(options, hasDirectory: hasDirectory)
    if options.command == .symbolicate { try OutputFolder.check(options, hasDirectory: hasDirectory) }
  }

  private static func describe(_ options: Options) throws(Output.Failure) -> ExitStatus {
    let isDocument = options.writesManual || options.completionShell != nil
    let output = try Output(path: isDocument ? options.output : nil)
    if options.showsVersion {
      try output.write("symbolicate \(version)\n")
    } else if let shell = options.completionShell {
      try output.write(Completion.script(for: shell))
    } else if options.writesManual {
      try output.write(ManualPage.text())
    } else if options.command == .help, !options.operands.isEmpty {
      let name = options.operands.map(\.description).joined(separator: " ")
      guard let command = Command(rawValue: name) else { return usage("no command '\(name)'") }
      try output.write(Help.text(for: command))
    } else {
      try output.write(Help.text(for: options.command == .help && !options.showsHelp ? .symbolicate : options.command))
    }
    try output.finish()
    return .complete
  }

  /// What a command misses of what it needs; nil where it has all.
  private static func problem(of options: Options) -> String? {
    let command = options.command
    if command == .store { return "'store' is one of 'store add', 'store list' and 'store gc'" }
    if command.needsStore, options.debugFiles.store == nil {
      return "no store; name its directory with --store DIR"
    }
    if !command.takesOperands, let operand = options.operands.first {
      return "'\(command.rawValue)' takes no files: '\(operand)'"
    }
    if options.isFilter { return problemOfFilter(options) }
    if let problem = options.groupProblem { return problem }
    guard command.needsOperands, options.operands.isEmpty else { return nil }
    if command == .runs { return "no spool; name the directory of a service's crash reports" }
    return command.readsELFFiles
      ? "no input; name a program, a library, a debug file or a directory of them"
      : "no input; name a crash file, a directory, or - for standard input"
  }

  private static func problemOfFilter(_ options: Options) -> String? {
    if let operand = options.operands.first(where: { $0 != FilePath("-") }) {
      return "--filter reads standard input, and no files: '\(operand)'"
    }
    if options.format != .text { return "--filter writes the log that it reads, and takes no --format" }
    if options.redaction.marks == .kinds || !options.redaction.ruleFiles.isEmpty {
      return "--filter takes nothing out of a log; pipe it through 'symbolicate redact'"
    }
    if let spelling = options.given.values.sorted().first { return "\(spelling) has no effect with --filter" }
    return options.limit == nil ? nil : "--limit has no effect with --filter"
  }

  private static func keepStore(_ options: Options, _ diagnostics: Diagnostics, _ output: Output)
    throws(Output.Failure) -> ExitStatus
  {
    guard let store = options.debugFiles.store else { return .usage }
    switch options.command {
    case .storeAdd:
      return try StoreAddCommand(options: options, store: store, diagnostics: diagnostics, output: output).run()
    case .storeList:
      return try StoreListCommand(options: options, store: store, diagnostics: diagnostics, output: output).run()
    default:
      return try StoreCollectCommand(options: options, store: store, diagnostics: diagnostics, output: output).run()
    }
  }

  private static func usage(_ message: String) -> ExitStatus {
    Diagnostics(verbosity: .normal).fatal("\(message); see symbolicate --help")
    return .usage
  }

  private static func failure(_ failure: Output.Failure, _ diagnostics: Diagnostics) -> ExitStatus {
    switch failure {
    // As for `head`: the reader has what it wanted.
    case .closed: return .complete
    case .failed(let message):
      diagnostics.fatal(message)
      return .nothing
    }
  }
}

/// What the tool tells the shell: the numbers of `eu-stack`, and of `sysexits.h` for the command line.
enum ExitStatus: Int32 {
  /// Every frame has its name, or can have none.
  case complete = 0
  /// There is output, and something is missing in it.
  case incomplete = 1
  /// There is no output.
  case nothing = 2
  /// What `--fail-on` names was found.
  case failed = 3
  case usage = 64
}
