public import CrashModel

/// What was found for one image of a report.
public struct ImageSummary: Hashable, Sendable {
  /// Index in `CrashReport.images`.
  public var imageIndex: Int
  public var path: String
  public var buildID: BuildID?
  public var status: Status
  /// The file that the names come from.
  public var file: String?
  /// The image has no build id, so that nothing proves that the file is the one that ran.
  public var isUnverified: Bool
  /// How many physical frames of the report lie in the image.
  public var frameCount: Int
  /// How many of them have no name.
  public var namelessFrameCount: Int
  /// Files that were found and not used.
  public var refusals: [FoundDebugFiles.Refusal]
  /// What the names lack because a file that the debug file refers to (split units, what `dwz` moved) was not found, and
  /// where it was looked for; in words.
  public var companionProblems: [String] = []

  public enum Status: Hashable, Sendable {
    /// Functions, inlined ones included, files and lines.
    case debugInformation
    /// Functions only, from the full symbol table or the one in `.gnu_debugdata`; `reason` says why, where debug information is there and cannot be
    /// read.
    case symbolsOnly(reason: String?)
    /// Only the functions that other files may call (`.dynsym`), as `strip` leaves them: those that the program calls
    /// itself have no name. `reason` as above, and of compressed symbols that cannot be read.
    case dynamicSymbolsOnly(reason: String?)
    /// No file; where was looked.
    case notFound(places: [String])
    /// The only file has another build id.
    case buildIDMismatch(path: String, found: BuildID?)
    /// The only file cannot be read.
    case unreadable(path: String, reason: String)
    /// The file was found and has neither debug information nor symbols.
    case noNames(path: String)

    /// There is a file that names addresses.
    var hasNames: Bool {
      switch self {
      case .debugInformation, .symbolsOnly, .dynamicSymbolsOnly: true
      case .notFound, .buildIDMismatch, .unreadable, .noNames: false
      }
    }
  }
}

extension FoundDebugFiles {
  /// The result in one word for a message.
  var status: ImageSummary.Status {
    if debugInformation != nil { return .debugInformation }
    var problem: String?
    var symbolProblem: String?
    var unreadable: (path: String, reason: String)?
    var mismatch: (path: String, found: BuildID?)?
    for refusal in refusals {
      switch refusal.reason {
      case .debugInformation(let text): problem = problem ?? "\(refusal.path): \(text)"
      case .unreadable(let error):
        unreadable = unreadable ?? (refusal.path, error.reason)
        // What would otherwise have been read: where other files serve, too, whoever waits for lines must know.
        if case .endedReader = error { problem = problem ?? error.description }
      case .buildID(_, let found): mismatch = mismatch ?? (refusal.path, found)
      case .symbols(let text): symbolProblem = symbolProblem ?? "\(refusal.path): \(text)"
      case .checksum: break
      }
    }
    if let symbols {
      return symbols.symbolCompleteness >= .mini
        ? .symbolsOnly(reason: problem) : .dynamicSymbolsOnly(reason: problem ?? symbolProblem)
    }
    if let mismatch { return .buildIDMismatch(path: mismatch.path, found: mismatch.found) }
    if let unreadable { return .unreadable(path: unreadable.path, reason: unreadable.reason) }
    if let nameless { return .noNames(path: nameless) }
    return .notFound(places: searched)
  }
}
