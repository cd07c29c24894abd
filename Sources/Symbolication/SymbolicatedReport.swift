public import CrashModel

/// A report with names, and what was learnt on the way.
public struct SymbolicatedReport: Sendable {
  /// The report; its frames are symbolicated, inlined functions included.
  public var report: CrashReport
  /// Checks of the Swift runtime that failed, for each frame that stands in one.
  public var runtimeFailures: [RuntimeFailure]
  /// The images that frames lie in, in the report's order.
  public var images: [ImageSummary]

  /// A failed check, as optimized code names it.
  public struct RuntimeFailure: Hashable, Sendable {
    /// Index in `CrashReport.threads`.
    public var threadIndex: Int
    /// Index in the thread's `frames`, of the innermost function that is shown.
    public var frameIndex: Int
    /// `arithmetic overflow`, `Index out of range`, …
    public var text: String
  }

  /// Of the innermost frame of the thread that crashed: the report's reason, where the runtime printed nothing.
  public var runtimeFailure: String? {
    guard let crashed = report.crashedThreadIndex else { return nil }
    return runtimeFailures.first { $0.threadIndex == crashed && $0.frameIndex == 0 }?.text
  }
}
