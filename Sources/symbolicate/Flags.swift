internal import CrashModel
private import Symbolication

/// One flag of the command line. Parser, help, completion and manual page all come from `Flag.all`.
///
/// A name or a letter may mean different things to different commands (`-f`, which is `addr2line`'s for functions), to one
/// command only one.
struct Flag: Sendable {
  /// Without the two hyphens.
  var name: String
  var short: Character?
  var value: Value
  var summary: String
  /// The commands that take it.
  var commands: [Command]
  /// The only outputs that it changes; nil where it always says something.
  var use: [Options.Mode]?
  /// - Returns: false for a value that the flag does not take.
  var apply: @Sendable (inout Options, Argument) -> Bool

  enum Value: Sendable {
    case none
    /// A file's name, not empty; what it is called in the help.
    case path(String)
    /// - Parameter range: what the message about another value says that it should be.
    case number(String, range: String = "a number above 0")
    case choice([String])

    var isNone: Bool { if case .none = self { true } else { false } }

    /// `FILE`, `text|json`; nil for none.
    var placeholder: String? {
      switch self {
      case .none: nil
      case .path(let name), .number(let name, _): name
      case .choice(let values): values.joined(separator: "|")
      }
    }
  }

  private static let both: [Command] = [.symbolicate, .group]
  private static let everywhere = both + [.groupMerge, .groupResolve] + debugFileCommands

  private static let withAddr = both + [.addr]
  private static let everywhereWithAddr = everywhere + [.runs, .addr]

  static let all: [Flag] = ofAddr + debugFileFlags + ofRedaction + ofGroups + ofReports + ofGrouping

  /// The flag that a command knows by a word or a letter; one of another command where it knows none.
  static func first(for command: Command, where isMeant: (Flag) -> Bool) -> Flag? {
    all.first { isMeant($0) && $0.commands.contains(command) } ?? all.first(where: isMeant)
  }

  private static let ofReports: [Flag] = [
    Flag(
      name: "exe", short: "e", value: .path("FILE"),
      summary: "a program, library or debug file to use for its build id; may be repeated",
      commands: both
    ) {
      $0.executables.append($1.path)
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "debug-dir", short: "d", value: .path("DIR"),
      summary: "a directory to search for debug files, as a .build-id tree and recursively; may be repeated",
      commands: withAddr
    ) {
      $0.debugDirectories.append($1.path)
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "sysroot", short: nil, value: .path("DIR"),
      summary: "look for images and system debug files below DIR, as of a container's file system, instead of /",
      commands: withAddr
    ) {
      $0.sysroot = $1.path
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "debuginfod", short: nil, value: .path("URL"),
      summary:
        "ask this debuginfod server for what is not found here (default: DEBUGINFOD_URLS); may be repeated",
      commands: withAddr
    ) {
      $0.debuginfodURLs.append($1.text)
      return $1.text.hasPrefix("http://") || $1.text.hasPrefix("https://")
    },
    Flag(
      name: "no-debuginfod", short: nil, value: .none, summary: "ask no server, whatever DEBUGINFOD_URLS says",
      commands: withAddr
    ) { options, _ in
      options.usesDebuginfod = false
      return true
    },
    Flag(
      name: "cache-dir", short: nil, value: .path("DIR"),
      summary: "where tables made from debug information are kept (default: ~/.cache/symbolicate)", commands: withAddr
    ) {
      $0.cacheDirectory = $1.path
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "no-cache", short: nil, value: .none, summary: "keep no tables, and use none that are kept",
      commands: withAddr
    ) { options, _ in
      options.usesCache = false
      return true
    },
    Flag(
      name: "tables", short: nil, value: .choice(["auto", "always", "never"]),
      summary: "when debug information is made into a table: once it pays (default), at first use, or never",
      commands: withAddr
    ) { options, value in
      switch value.text {
      case "always": options.tables = .always
      case "never": options.tables = .never
      default: options.tables = .whenWorthIt
      }
      return true
    },
    Flag(
      name: "format", short: "f", value: .choice(Options.Format.ofReports.map(\.rawValue)),
      summary: "how reports are written (default: text)", commands: [.symbolicate]
    ) { options, value in
      guard let format = Options.Format.ofReports.first(where: { $0.rawValue == value.text }) else { return false }
      options.format = format
      return true
    },
    Flag(
      name: "format", short: "f", value: .choice(Options.Format.own.map(\.rawValue)),
      summary: "how results are written (default: text)", commands: [.runs] + debugFileCommands
    ) { options, value in
      guard let format = Options.Format.own.first(where: { $0.rawValue == value.text }) else { return false }
      options.format = format
      return true
    },
    Flag(
      name: "pretty", short: nil, value: .none,
      summary: "JSON over several lines (with --format json, swift-json and otlp)", commands: [.symbolicate],
      use: [.json, .swiftJSON, .otlp]
    ) { options, _ in
      options.pretty = true
      return true
    },
    Flag(
      name: "pretty", short: nil, value: .none, summary: "JSON over several lines (with --format json)",
      commands: [.group, .runs] + debugFileCommands, use: [.json]
    ) {
      options, _ in
      options.pretty = true
      return true
    },
    Flag(
      name: "output", short: "o", value: .path("FILE|DIR"),
      summary:
        "where reports go (default: standard output); a file is replaced when all is written, and kept if nothing was "
        + "produced; in a directory that exists each report becomes a file",
      commands: [.symbolicate]
    ) {
      $0.output = $1.path
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "output", short: "o", value: .path("FILE"),
      summary:
        "where results go (default: standard output); replaced when all is written, kept if nothing was produced",
      commands: [.group, .groupMerge, .runs, .addr, .redact] + debugFileCommands
    ) {
      $0.output = $1.path
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "color", short: nil, value: .choice(Options.Color.allCases.map(\.rawValue)),
      summary: "colors of a report as text (default: auto, on a terminal unless NO_COLOR is set)", commands: both,
      use: [.report]
    ) { options, value in
      guard let color = Options.Color(rawValue: value.text) else { return false }
      options.color = color
      return true
    },
    Flag(
      name: "context", short: "C", value: .number("N", range: "a number from 0 to 100"),
      summary: "N lines of source code before and behind each place of the application (0: only its own line)",
      commands: [.symbolicate], use: [.report, .json, .ndjson, .markdown, .sentry]
    ) { options, value in
      guard let count = Int(value.text), 0...100 ~= count else { return false }
      options.contextLines = count
      return true
    },
    Flag(
      name: "source-root", short: nil, value: .path("DIR"),
      summary:
        "where the sources are: the end of the compiler's path is looked for below DIR; may be repeated (implies "
        + "--context 3)",
      commands: [.symbolicate], use: [.report, .json, .ndjson, .markdown, .sentry]
    ) {
      $0.sourceRoots.append($1.path)
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "frames", short: nil, value: .choice(Options.Frames.allCases.map(\.rawValue)),
      summary: "in a report as text all frames, or those of the application with the others folded (default: app on a "
        + "terminal, otherwise all)",
      commands: [.symbolicate], use: [.report]
    ) { options, value in
      guard let frames = Options.Frames(rawValue: value.text) else { return false }
      options.frames = frames
      return true
    },
    Flag(
      name: "threads", short: nil, value: .choice(Options.Threads.allCases.map(\.rawValue)),
      summary: "which threads a report as text shows (default: crashed)", commands: [.symbolicate], use: [.report]
    ) { options, value in
      guard let threads = Options.Threads(rawValue: value.text) else { return false }
      options.threads = threads
      return true
    },
    Flag(
      name: "no-inlines", short: nil, value: .none, summary: "leave inlined functions out of a report as text",
      commands: [.symbolicate], use: [.report]
    ) {
      options, _ in
      options.inlines = false
      return true
    },
    Flag(
      name: "no-demangle", short: nil, value: .none, summary: "show linker names in a report as text",
      commands: [.symbolicate], use: [.report]
    ) {
      options, _ in
      options.demangle = false
      return true
    },
    Flag(
      name: "explain", short: nil, value: .none,
      summary: "below a report as text, how its stack hash and the blamed function were found",
      commands: [.symbolicate], use: [.report]
    ) { options, _ in
      options.explain = true
      return true
    },
    Flag(
      name: "filter", short: nil, value: .none,
      summary: "pass the log on standard input on, line by line, with names where its frames have none",
      commands: [.symbolicate]
    ) { options, _ in
      options.isFilter = true
      return true
    },
    Flag(
      name: "limit", short: nil, value: .number("N"),
      summary: "at most N reports, the latest of all inputs; with 'group', at most N groups",
      commands: both
    ) { options, value in
      guard let limit = Int(value.text), limit > 0 else { return false }
      options.limit = limit
      return true
    },
    Flag(
      name: "strict", short: nil, value: .none, summary: "exit with 2 instead of 1 where results are incomplete",
      commands: withAddr + debugFileCommands
    ) {
      options, _ in
      options.strict = true
      return true
    },
    Flag(
      name: "quiet", short: "q", value: .none, summary: "no messages but errors that leave nothing to show",
      commands: everywhereWithAddr + [.redact]
    ) {
      options, _ in
      options.verbosity = .quiet
      return true
    },
    Flag(
      name: "verbose", short: "v", value: .none, summary: "also say what was skipped",
      commands: everywhereWithAddr
    ) {
      options, _ in
      options.verbosity = .verbose
      return true
    },
    Flag(name: "help", short: "h", value: .none, summary: "show this help", commands: Command.allCases) {
      options, _ in
      options.showsHelp = true
      return true
    },
    Flag(name: "version", short: nil, value: .none, summary: "show the version", commands: Command.allCases) {
      options, _ in
      options.showsVersion = true
      return true
    },
    Flag(
      name: "generate-completion-script", short: nil, value: .choice(Completion.Shell.allCases.map(\.rawValue)),
      summary: "write the script by which a shell completes this command", commands: [.symbolicate]
    ) { options, value in
      guard let shell = Completion.Shell(rawValue: value.text) else { return false }
      options.completionShell = shell
      return true
    },
    Flag(
      name: "generate-man", short: nil, value: .none, summary: "write the manual page", commands: [.symbolicate]
    ) { options, _ in
      options.writesManual = true
      return true
    },
  ]
}
