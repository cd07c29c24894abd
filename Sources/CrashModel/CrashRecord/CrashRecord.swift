private import CCrashFormat

/// What one process run left behind: the file `crashrecord/1`, decoded.
///
/// Holds copies, none of the file's bytes. A damaged record is read as far as it can be trusted, and `notes` says what
/// is missing. Layout: `docs/crash-record.md`.
public struct CrashRecord: Hashable, Sendable {
  /// How the run stood when the file was last written to.
  public enum RunState: Hashable, Sendable {
    /// The reporter was being set up.
    case starting
    case alive
    /// The process ran its exit handlers.
    case exited
    /// The reporter was stopped on purpose.
    case stopped
    case unknown(UInt32)
  }

  /// How far the crash path came.
  public enum CrashState: Hashable, Sendable {
    case none
    /// A handler started and did not come to its end.
    case capturing
    case complete
    case unknown(UInt32)
  }

  /// A text that the runtime or the C library had ready at the crash, redacted.
  public struct Message: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
      /// The Swift runtime's fatal error text.
      case swiftFatalError
      /// The C library's: a failed assertion, a smashed stack.
      case abort
      /// Mangled name of the type of the C++ exception in flight.
      case cxxExceptionType
      case unknown(UInt32)
    }

    public var kind: Kind
    public var text: String
    public var truncated: Bool
  }

  /// UUIDv7 of the run, 16 bytes.
  public internal(set) var runID: [UInt8]
  /// Random bytes from which the report's id is made, 16 bytes.
  public internal(set) var reportEntropy: [UInt8]
  /// ELF `e_machine`.
  public internal(set) var machine: UInt32
  public internal(set) var kind: Kind
  public internal(set) var runState: RunState
  public internal(set) var crashState: CrashState
  /// Kernel id of the thread whose handler wrote the record; nil where none did.
  public internal(set) var crashThread: UInt32?
  /// What the process noticed of its end.
  public internal(set) var processEnd: ProcessEnd
  /// Its memory cgroup first, then those that contain it.
  public internal(set) var memoryGroups: [MemoryGroup]
  /// Processes of the machine that the kernel had killed for want of memory at the start; nil for unknown.
  public internal(set) var machineKills: UInt64?
  /// Of a snapshot or a hang; nil for a run.
  public internal(set) var snapshot: Snapshot?
  public internal(set) var process: ProcessInfo?
  /// Identifies the boot of the machine in which the process ran, 16 bytes.
  public internal(set) var bootID: [UInt8]?
  /// When the process started, in clock ticks since boot.
  public internal(set) var startTicks: UInt64?
  public internal(set) var service: String?
  public internal(set) var release: String?
  public internal(set) var environment: String?
  public internal(set) var userID: String?
  public internal(set) var operation: String?
  public internal(set) var tags: [Tag]
  /// Oldest first.
  public internal(set) var breadcrumbs: [Breadcrumb]
  public internal(set) var signal: SignalInfo?
  public internal(set) var crashTime: Timestamp?
  /// The crashed one first.
  public internal(set) var threads: [ThreadInfo]
  /// The Swift task that crashed.
  public internal(set) var task: TaskInfo?
  public internal(set) var images: [Image]
  public internal(set) var messages: [Message]
  /// What went wrong while the record was written or read, as sentences.
  public internal(set) var notes: [String]
  /// Nothing of the file was cut off, torn or out of place.
  public internal(set) var isIntact: Bool

  /// Whether the run ended (or is ending) by a crash.
  public var hasCrash: Bool { kind == .run && crashState != .none }

  /// Whether everything that the crash path wanted to say is there.
  public var isComplete: Bool { isIntact && crashState == .complete }

  public static let magic = CRASH_RECORD_MAGIC
  public static let version = CRASH_RECORD_VERSION
  /// In bytes.
  public static let headerSize = Int(CRASH_RECORD_HEADER_SIZE)
  /// In bytes; larger files are refused unread.
  public static let maximumFileSize = CRASH_RECORD_MAX_FILE_BYTES

  /// The run's id in the usual form with hyphens.
  public var runIDText: String { UUIDText.string(runID) }
}
