private import CCrashSupport
private import CrashModel

extension CrashReporter {
  /// Whether capture would still work, as far as that can be told.
  public struct Verification: Hashable, Sendable {
    /// Signals that somebody else handles since the start, by name (`SIGSEGV`). A crash by one of these is only captured
    /// where that handler calls the one that it replaced.
    public var replacedSignals: [String]
    /// Whether the calling thread has an alternate signal stack, without which its own stack overflow leaves no report.
    public var hasSignalStack: Bool
    /// Whether reporting was started in this process.
    public var isStarted: Bool

    /// Nothing stands in the way of a report.
    public var isIntact: Bool { isStarted && hasSignalStack && replacedSignals.isEmpty }
  }

  /// Looks whether the handlers are still in place: a library that is loaded later may install its own.
  ///
  /// Worth a call when the daemon is up, and in a health check. What it finds is also noted in the next report. Costs
  /// eight system calls; may be called from any thread.
  ///
  /// ```swift
  /// let capture = CrashReporter.verify()
  /// if !capture.isIntact { logger.warning("crashes by \(capture.replacedSignals) are not reported") }
  /// ```
  public static func verify() -> Verification {
    let replaced = crash_support_replaced_handlers()
    return Verification(
      replacedSignals: (1...64).filter { replaced >> UInt64($0 - 1) & 1 == 1 }.map { SignalNames.name(Int32($0)) },
      hasSignalStack: crash_support_has_signal_stack() != 0, isStarted: runID != nil)
  }
}
