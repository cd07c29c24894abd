/// How a run of the process ended, as far as the next start can tell.
public struct Ending: Hashable, Sendable {
  /// What happened. `docs/endings.md` says by what evidence each is known.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// It ran its exit handlers.
    case clean
    /// The reporter was stopped before.
    case stopped
    /// By a crash, which has a report of its own.
    case crashed
    /// By a signal whose default action ends the process: SIGTERM, SIGPIPE.
    case terminated
    /// By the kernel, for want of memory.
    case outOfMemory = "out_of_memory"
    /// Without a word: SIGKILL, or what cannot be told from it.
    case killed
    /// With the machine: a restart, a reset, a loss of power.
    case machineStopped = "machine_stopped"
    /// The process goes on as another program (`execve`).
    case replaced
    /// While the reporter was being set up.
    case startFailed = "start_failed"
    /// The record does not say.
    case unknown

    /// Whether nothing needs to be looked at: the program ended because it decided to.
    public var isOrderly: Bool { self == .clean || self == .stopped || self == .replaced }
  }

  public var kind: Kind
  /// What `exit` was called with; nil where it was not, or is not known.
  public var exitStatus: Int32?
  /// What the verdict rests on, as sentences.
  public var evidence: [String]
  /// What would have left the same evidence.
  public var couldAlsoBe: [String]

  public init(kind: Kind, exitStatus: Int32? = nil, evidence: [String] = [], couldAlsoBe: [String] = []) {
    self.kind = kind
    self.exitStatus = exitStatus
    self.evidence = evidence
    self.couldAlsoBe = couldAlsoBe
  }
}

/// What did not answer, and how that was seen.
public struct HangInfo: Hashable, Sendable {
  /// The name under which the service has it watched, redacted.
  public var watch: String
  /// For how long there had been no answer when the threads were looked at, in milliseconds.
  public var silentMilliseconds: Int64?
  /// How often the threads were looked at.
  public var samples: Int?
  /// How long it lasted in all, in milliseconds; nil where that is not known: it had not ended when the report was taken
  /// from the spool, or the process ended in it.
  public var durationMilliseconds: Int64?

  public init(
    watch: String, silentMilliseconds: Int64? = nil, samples: Int? = nil, durationMilliseconds: Int64? = nil
  ) {
    self.watch = watch
    self.silentMilliseconds = silentMilliseconds
    self.samples = samples
    self.durationMilliseconds = durationMilliseconds
  }
}
