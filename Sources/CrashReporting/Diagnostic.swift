/// Something about crash reporting itself that its operator may want to know.
public struct Diagnostic: Hashable, Sendable, CustomStringConvertible {
  public enum Code: String, Hashable, Sendable, CaseIterable {
    /// `start` was called again; nothing changed.
    case alreadyStarted = "already_started"
    /// A user id, tag or breadcrumb was not taken; the message says why.
    case invalidInput = "invalid_input"
    /// A run of this service ended without a crash; the message says how it stood.
    case runEnded = "run_ended"
    /// A crash of an earlier run became a report.
    case reportStored = "report_stored"
    /// A crash was counted instead of stored, because enough reports of it are there.
    case reportSuppressed = "report_suppressed"
    /// A report was removed to keep the spool inside its limits.
    case reportRemoved = "report_removed"
    /// A record could not be read and was put aside.
    case quarantined
    /// A handled error was not reported; the message says why.
    case errorDropped = "error_dropped"
    /// No snapshot was taken; the message says why.
    case snapshotFailed = "snapshot_failed"
    /// Something did not answer to its watch.
    case hangFound = "hang_found"
    /// It answers again; the message says how long it had not.
    case hangEnded = "hang_ended"
    /// The spool could not be read or written; nothing was lost, the next start tries again.
    case spoolUnavailable = "spool_unavailable"
  }

  public var code: Code
  /// One sentence, for people.
  public var message: String

  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { "crash reporting: \(message) [\(code.rawValue)]" }
}
