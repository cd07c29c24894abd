internal import CrashModel

/// Reads one crash in one format, line by line.
///
/// The lines come without what log systems put before them and without escape sequences. A reader takes what it knows and
/// leaves everything else: other threads of the process, and other processes, go on writing into the same stream.
protocol TraceReader: Sendable {
  /// For messages: `Swift crash log`.
  static var name: String { get }
  /// Lines of other making after which the crash counts as ended.
  static var patience: Int { get }

  /// What was read so far.
  var draft: ReportDraft { get }

  /// Its frames lie in images that it lists only behind them.
  static var listsImagesLast: Bool { get }

  /// - Returns: nil for a line that no crash in this format begins with.
  init?(beginning line: ArraySlice<UInt8>)

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine

  /// What was read; nil where it came to nothing: the beginning looked like one, and no frame followed.
  mutating func finish() -> CrashReport?
}

extension TraceReader {
  static var listsImagesLast: Bool { false }
}

/// What a reader says of a line.
enum TraceLine {
  /// It belongs to the crash.
  case taken
  /// It does not.
  case foreign
  /// It is the last one.
  case last
  /// The crash ended before it; it may begin another.
  case behind
  /// It ended before a heading that was taken for its own: the line behind the heading shows that another began there.
  case behindHeading([UInt8])
}

enum TraceReaders {
  /// In this order: the first that knows a line's beginning reads it.
  static let all: [any TraceReader.Type] = [
    SwiftTextLog.self, CurrentStackTrace.self, SwiftServerBacktrace.self, SystemdStackTrace.self, SanitizerReport.self,
    GDBBacktrace.self, LLDBBacktrace.self, SymbolizerMarkup.self, BacktraceSymbols.self,
  ]

  /// What a beginning looks like behind a prefix that nobody knows: where to cut.
  static let anchors: [StaticString] = [
    "*** Program crashed: ", "*** Signal ", "*** Swift runtime failure: ", "\u{1F4A3} ", "Program crashed: ",
    "Current stack trace:", "Received signal ", "Stack trace of thread ", "==", "WARNING: ThreadSanitizer",
    "* thread #", "* frame #0: ", "frame #0: ", "#0 ", "{{{", "Thread ", "Process ",
  ]
}
