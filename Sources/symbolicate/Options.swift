internal import CrashModel
internal import Symbolication

/// What the command line asks for.
struct Options {
  enum Format: String, CaseIterable {
    case text, json, ndjson
    case swiftJSON = "swift-json"
    case sentry, markdown, otlp, folded, markup
    /// Of groups only.
    case html

    /// Those that every command has; the others are for reports.
    static let own: [Format] = [.text, .json, .ndjson]
    static let ofReports: [Format] = allCases.filter { $0 != .html }
    static let ofGroups: [Format] = own + [.markdown, .html]
  }
  /// Which frames of a stack are shown; nil for what suits the output.
  enum Frames: String, CaseIterable { case app, all }
  enum Color: String, CaseIterable { case auto, always, never }
  enum Threads: String, CaseIterable { case crashed, all }
  enum Verbosity: Comparable { case quiet, normal, verbose }

  /// What comes out.
  enum Mode: String {
    case report = "a report as text"
    case list = "the list of a directory"
    case groups = "the table of groups"
    case answer = "text"
    case json = "--format json"
    case ndjson = "--format ndjson"
    case swiftJSON = "--format swift-json"
    case sentry = "--format sentry"
    case markdown = "--format markdown"
    case otlp = "--format otlp"
    case folded = "--format folded"
    case markup = "--format markup"
    case html = "--format html"
    case state = "the state that --partial writes"

    init(_ options: Options, hasDirectory: Bool) {
      if options.groups.writesState {
        self = .state
        return
      }
      switch options.format {
      case .json: self = .json
      case .ndjson: self = .ndjson
      case .swiftJSON: self = .swiftJSON
      case .sentry: self = .sentry
      case .markdown: self = .markdown
      case .otlp: self = .otlp
      case .folded: self = .folded
      case .markup: self = .markup
      case .html: self = .html
      case .text where options.command.readsELFFiles || options.command == .runs: self = .answer
      case .text where options.command == .group: self = .groups
      // In a directory each report is a file of its own, however many there are.
      case .text: self = hasDirectory && !OutputFolder.isMeant(by: options) ? .list : .report
      }
    }
  }

  var command = Command.symbolicate
  var operands: [FilePath] = []
  var executables: [FilePath] = []
  var debugDirectories: [FilePath] = []
  var sysroot: FilePath?
  var debuginfodURLs: [String] = []
  var usesDebuginfod = true
  var cacheDirectory: FilePath?
  var usesCache = true
  var tables = AddressTables.Use.whenWorthIt
  var format = Format.text
  var pretty = false
  var output: FilePath?
  var color = Color.auto
  var threads = Threads.crashed
  var frames: Frames?
  var contextLines: Int?
  var sourceRoots: [FilePath] = []
  var redaction = RedactionOptions()
  var inlines = true
  var demangle = true
  var explain = false
  /// A log goes through, instead of reports coming out.
  var isFilter = false
  var limit: Int?
  var verbosity = Verbosity.normal
  var strict = false
  var debugFiles = DebugFileOptions()
  var addr = AddrOptions()
  var grouping = GroupingOptions()
  var groups = GroupOptions()
  var showsHelp = false
  var showsVersion = false
  var completionShell: Completion.Shell?
  var writesManual = false
  /// The flags that were given and are for one mode only, by name: as they were spelled.
  var given: [String: String] = [:]
}

/// What the tool can be told to do.
enum Command: String, CaseIterable {
  case symbolicate, group
  case groupMerge = "group merge"
  case groupResolve = "group resolve"
  case runs, addr, redact, check, store
  case storeAdd = "store add"
  case storeList = "store list"
  case storeCollect = "store gc"
  case help

  var synopsis: [String] {
    switch self {
    case .symbolicate: ["symbolicate [OPTION]... FILE|DIR|-..."]
    case .group: ["symbolicate group [OPTION]... FILE|DIR|-..."]
    case .groupMerge: ["symbolicate group merge [OPTION]... STATE|-..."]
    case .groupResolve: ["symbolicate group resolve --in RELEASE|--reopen STATE HASH..."]
    case .runs: ["symbolicate runs [OPTION]... SPOOL..."]
    case .addr: ["symbolicate addr [OPTION]... [-e FILE] [ADDRESS]..."]
    case .redact: ["symbolicate redact [OPTION]... <FILE"]
    case .check: ["symbolicate check [OPTION]... FILE|DIR..."]
    case .store: ["symbolicate store add|list|gc [OPTION]..."]
    case .storeAdd: ["symbolicate store add --store DIR [OPTION]... FILE|DIR..."]
    case .storeList: ["symbolicate store list --store DIR [OPTION]... [NAME]..."]
    case .storeCollect: ["symbolicate store gc --store DIR [OPTION]..."]
    case .help: ["symbolicate help [COMMAND]"]
    }
  }

  var summary: String {
    switch self {
    case .symbolicate: "name every frame of crash records, reports and logs"
    case .group: "count crashes by bug"
    case .groupMerge: "join what was counted apart"
    case .groupResolve: "note that a bug was mended, and in which release"
    case .runs: "say how the runs of a service ended, by release"
    case .addr: "name addresses of a file, as addr2line does"
    case .redact: "take personal data and secrets out of a text"
    case .check: "say what debug files are good for"
    case .store: "keep debug files by build id"
    case .storeAdd: "add files to a symbol store"
    case .storeList: "list a symbol store"
    case .storeCollect: "remove from a symbol store what is not needed any more"
    case .help: "explain a command"
    }
  }

  var discussion: String {
    switch self {
    case .symbolicate:
      """
      Reads crash records (*.crashrecord), crash-report/1 JSON, core files (also .zst), crash logs of the Swift runtime (text
      and JSON), backtraces of gdb, lldb, systemd-coredump and sanitizers, and Sentry events, alone or in any log; what a
      file is, its content says. A directory stands for every crash in the files below it, newest first, and is listed a
      line each with its groups; '-' is standard input. Debug files are found by build id. What is for a report as text
      (--threads, --frames, --no-inlines, --no-demangle, --explain, --color always) is refused with a directory and with
      every other format.
      """
    case .group, .groupMerge, .groupResolve: groupDiscussion
    case .runs:
      """
      Reads the history that a service keeps in SPOOL, the directory of its crash reports: for each release how many runs
      have ended, in which way, and how many of them without a crash; and how the last one ended.
      """
    case .addr:
      """
      Prints for each ADDRESS (hexadecimal, with or without 0x) file and line, as addr2line does, and takes its options.
      Without ADDRESS they are read from standard input, one a line, and answered as they come. Without -e each line has the
      file as well: IMAGE ADDRESS, a name with spaces in quotes or not, 'CODE ' before it allowed. An address is that of the
      file, not of a process, and is looked up as it is: of a return address subtract 1 first. Unknown is ??, and ??:0.
      Debug files are found as for reports.
      """
    case .redact:
      """
      Passes standard input on, line by line, without e-mail addresses, long numbers, queries of URLs, names of users' folders,
      passwords, keys, tokens, numbers of cards, accounts and telephones, and addresses of machines. What is read as a
      report goes through the same rules without this command. A line goes on as soon as it is read.
      """
    case .check, .store, .storeAdd, .storeList, .storeCollect: debugFileDiscussion
    case .help: "Without COMMAND: the overview."
    }
  }
}
