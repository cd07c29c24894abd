internal import CrashModel

/// What the commands that look at debug files are asked for.
struct DebugFileOptions {
  /// `check --for`
  var reports: [FilePath] = []
  var store: FilePath?
  var release: String?
  var keptReleases: Int?
  var maximumDays: Int?
  /// In bytes.
  var maximumSize: Int?
  var isDryRun = false
}

extension Command {
  /// Works on debug files and programs, not on crashes.
  var readsELFFiles: Bool {
    switch self {
    case .check, .store, .storeAdd, .storeList, .storeCollect: true
    default: false
    }
  }

  var needsStore: Bool { [.storeAdd, .storeList, .storeCollect].contains(self) }
  var takesOperands: Bool { ![.redact, .storeCollect].contains(self) }
  var needsOperands: Bool { ![.addr, .redact, .storeList, .storeCollect].contains(self) }

  /// The command that words begin with, and how many of them it takes: `store add` is one command.
  static func leading(_ words: [String]) -> (command: Command, count: Int)? {
    for count in [2, 1] where words.count >= count {
      if let command = Command(rawValue: words.prefix(count).joined(separator: " ")) { return (command, count) }
    }
    return nil
  }

  /// Of `check`, `store` and what belongs to it.
  var debugFileDiscussion: String {
    switch self {
    case .check:
      """
      Says of each program, library and debug file its build id, what it holds, whether it names the frames of a crash, and
      if not, why and what to do. A directory stands for every ELF file below it. With --for, says of each image of the
      reports that has frames which of the files fits, which is of another build, and what is missing.
      """
    case .store:
      """
      A symbol store keeps programs and debug files by build id, as DIR/.build-id/ab/cdef....debug, and under the paths of
      debuginfod's URLs: --debug-dir DIR, gdb, 'debuginfod -F DIR' and any web server that serves DIR as it is take them
      from there. 'symbolicate help store add' and so on say more.
      """
    case .storeAdd:
      """
      Copies programs, libraries and debug files into the store. A directory stands for every ELF file below it. A file
      without a build id is refused; one that holds less than what the store has of its build changes nothing. Any number
      of processes may add at the same time, and what is there is never half written.
      """
    case .storeList:
      """
      One row for each build, by name and then by time. With NAME, only builds of programs and libraries of that name.
      """
    case .storeCollect:
      """
      Says what goes, and why. Each limit stands for itself: a build goes if one of them says so. Files that were put there
      by something else stay and are named. What is being added meanwhile is not touched.
      """
    default: ""
    }
  }

  /// The meaning of the exit status, a line for each number.
  var exitStatusLines: [String] {
    switch self {
    case .check:
      [
        "0  every file is usable, by itself or with another one given; with --for: every image of the application",
        "   that has frames in the reports is covered", "1  not so, or inputs that could not be read",
        "2  nothing was checked",
      ]
    case .runs: ["0  complete", "1  incomplete: some could not be read", "2  nothing was read"]
    case .store, .storeAdd, .storeList, .storeCollect:
      ["0  all was done", "1  some of it could not be done", "2  nothing was done"]
    case .group, .groupMerge, .groupResolve: groupExitStatusLines
    case .redact:
      ["0  all was passed on", "1  standard input could not be read to its end", "2  nothing was passed on"]
    default:
      [
        "0  complete: every frame has its name, or can have none",
        "1  incomplete: missing symbols, or inputs that could not be read", "2  nothing was produced",
      ]
    }
  }
}

extension Flag {
  private static let stores: [Command] = [.storeAdd, .storeList, .storeCollect]

  /// Commands whose results have the formats of all others.
  static let debugFileCommands: [Command] = [.check] + stores

  static let debugFileFlags: [Flag] = [
    Flag(
      name: "for", short: nil, value: .path("REPORT"),
      summary: "crash reports or records, or a directory of them, to check the files for; may be repeated",
      commands: [.check]
    ) {
      $0.debugFiles.reports.append($1.path)
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "store", short: nil, value: .path("DIR"), summary: "the directory of the symbol store", commands: stores
    ) {
      $0.debugFiles.store = $1.path
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "release", short: nil, value: .path("NAME"),
      summary: "the release of the files, of at most 200 bytes; with 'list', only the builds of that release",
      commands: [.storeAdd, .storeList]
    ) { options, value in
      guard !value.bytes.isEmpty, value.bytes.count <= 200, let text = String(validating: value.bytes, as: UTF8.self)
      else { return false }
      options.debugFiles.release = text
      return true
    },
    Flag(
      name: "keep-releases", short: nil, value: .number("N"),
      summary: "the latest N releases of each name stay; what belongs to older ones only goes",
      commands: [.storeCollect]
    ) { options, value in
      guard let count = Int(value.text), count > 0 else { return false }
      options.debugFiles.keptReleases = count
      return true
    },
    Flag(
      name: "older-than", short: nil, value: .number("DAYS"),
      summary: "what was last added DAYS days ago or earlier goes", commands: [.storeCollect]
    ) { options, value in
      guard let days = Int(value.text), days > 0 else { return false }
      options.debugFiles.maximumDays = days
      return true
    },
    Flag(
      name: "max-size", short: nil, value: .number("BYTES"),
      summary: "what was added longest ago goes until the store has at most BYTES (500M, 20G)",
      commands: [.storeCollect]
    ) { options, value in
      guard let size = ByteCount.parse(value.text) else { return false }
      options.debugFiles.maximumSize = size
      return true
    },
    Flag(
      name: "dry-run", short: nil, value: .none, summary: "only say what would go", commands: [.storeCollect]
    ) { options, _ in
      options.debugFiles.isDryRun = true
      return true
    },
  ]
}
