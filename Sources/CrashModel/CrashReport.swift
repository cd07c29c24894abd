/// What is known of one crash: the document `crash-report/1`.
///
/// Made from a record, or read from a report or another format. Fields that are nil or empty are unknown and do not
/// appear in the JSON. Keys, types and examples: `docs/crash-report.md`.
public struct CrashReport: Hashable, Sendable {
  /// The value of the JSON key `schema`.
  public static let schema = "crash-report/1"

  /// UUIDv7 of the report, in the usual form with hyphens. Reading the same record twice gives the same id.
  public var id: String
  public var kind: ReportKind
  /// The process ended by it.
  public var fatal: Bool
  /// When it happened: nanoseconds since 1970, UTC.
  public var timestamp: Timestamp?
  /// The signal's name (`SIGSEGV`), or the type of an error or C++ exception.
  public var type: String?
  public var reason: Reason?
  /// The runtime's or program's own words, redacted.
  public var message: String?
  public var stackHash: StackHash?
  /// Hashes that were computed earlier with fewer names.
  public var previousStackHashes: [StackHash]
  /// Index in `threads` of the thread that crashed.
  public var crashedThreadIndex: Int?
  public var signal: SignalInfo?
  /// How the run ended, where that is what the report is about.
  public var ending: Ending?
  /// What did not answer, where that is what the report is about.
  public var hang: HangInfo?
  public var process: ProcessInfo?
  public var service: String?
  public var release: String?
  public var environment: String?
  /// UUIDv7 of the run of the process.
  public var runID: String?
  /// What the program was doing: a route, a job.
  public var operation: String?
  /// The Swift task that crashed.
  public var task: TaskInfo?
  /// The host program's own opaque id of the user.
  public var userID: String?
  /// In the order in which they were set.
  public var tags: [Tag]
  /// Oldest first.
  public var breadcrumbs: [Breadcrumb]
  public var threads: [ThreadInfo]
  public var images: [Image]
  /// How many further crashes with the same stack hash were not stored since the last report of it.
  public var suppressedCount: Int?
  /// What went wrong while the crash was captured or read; a person's sentences.
  public var notes: [String]

  public init(id: String, kind: ReportKind = .crash, fatal: Bool = true) {
    self.id = id
    self.kind = kind
    self.fatal = fatal
    self.previousStackHashes = []
    self.tags = []
    self.breadcrumbs = []
    self.threads = []
    self.images = []
    self.notes = []
  }

  /// The thread that crashed; nil where none is marked.
  public var crashedThread: ThreadInfo? {
    crashedThreadIndex.flatMap { threads.indices.contains($0) ? threads[$0] : nil }
  }
}

/// What a report is about.
public enum ReportKind: String, Hashable, Sendable, CaseIterable {
  case crash, hang, exception, snapshot, termination
}

/// A moment, in nanoseconds since 1970-01-01T00:00:00Z.
public struct Timestamp: RawRepresentable, Hashable, Comparable, Sendable {
  public var rawValue: Int64

  public init(rawValue: Int64) { self.rawValue = rawValue }

  public static func < (left: Timestamp, right: Timestamp) -> Bool { left.rawValue < right.rawValue }
}

/// A key and a value that the program attached.
public struct Tag: Hashable, Sendable {
  public var key: String
  public var value: String

  public init(key: String, value: String) {
    self.key = key
    self.value = value
  }
}

/// Something that the program did before it crashed.
public struct Breadcrumb: Hashable, Sendable {
  public var timestamp: Timestamp
  public var category: String?
  /// Redacted.
  public var message: String

  public init(timestamp: Timestamp, category: String? = nil, message: String) {
    self.timestamp = timestamp
    self.category = category
    self.message = message
  }
}

/// The signal that ended the process.
public struct SignalInfo: Hashable, Sendable {
  public var number: Int32
  /// `SIGSEGV`; `SIG35` for a number without a name.
  public var name: String
  /// `si_code`.
  public var code: Int32?
  /// `SEGV_MAPERR`; nil for a code without a name.
  public var codeName: String?
  /// `si_addr`, only where the signal and its code define it.
  public var address: Address?
  /// Process that sent it, only where one did.
  public var senderPID: Int32?
  /// Real user id of that process.
  public var senderUID: UInt32?

  public init(
    number: Int32, name: String, code: Int32? = nil, codeName: String? = nil, address: Address? = nil,
    senderPID: Int32? = nil, senderUID: UInt32? = nil
  ) {
    self.number = number
    self.name = name
    self.code = code
    self.codeName = codeName
    self.address = address
    self.senderPID = senderPID
    self.senderUID = senderUID
  }
}

/// The process that crashed.
public struct ProcessInfo: Hashable, Sendable {
  public var id: Int32?
  /// Path of the executable.
  public var executable: String?
  public var host: String?
  /// `Debian GNU/Linux 12 (bookworm)`.
  public var system: String?
  /// `x86_64` or `aarch64`.
  public var architecture: String?
  public var startTime: Timestamp?

  public init(
    id: Int32? = nil, executable: String? = nil, host: String? = nil, system: String? = nil,
    architecture: String? = nil, startTime: Timestamp? = nil
  ) {
    self.id = id
    self.executable = executable
    self.host = host
    self.system = system
    self.architecture = architecture
    self.startTime = startTime
  }
}

/// Whether a thread's stack could be read.
public enum ThreadStatus: String, Hashable, Sendable, CaseIterable {
  case captured
  /// The thread did not answer in time.
  case noAnswer = "no_answer"
  /// Something ended the walk; the frames that are there hold.
  case partial
  /// The record had no room for it.
  case overCap = "over_cap"
}

/// A task of Swift's concurrency.
public struct TaskInfo: Hashable, Sendable {
  /// Unique within the run of the process.
  public var id: UInt64
  /// The name that the program gave it, redacted.
  public var name: String?
  /// Values of the task locals that the program registered, redacted.
  public var locals: [Tag]

  public init(id: UInt64, name: String? = nil, locals: [Tag] = []) {
    self.id = id
    self.name = name
    self.locals = locals
  }
}

/// A thread of the process at the time of the crash.
public struct ThreadInfo: Hashable, Sendable {
  /// Kernel thread id.
  public var id: UInt32?
  public var name: String?
  public var crashed: Bool
  /// How many physical frames the stack had, whether they were kept or not.
  public var depth: UInt64?
  public var status: ThreadStatus?
  /// Of a hang: so many of the outermost frames of the stack, callers that await not counted, were the same in every
  /// sample.
  public var stayingFrames: Int?
  /// Name and value, in the architecture's usual order.
  public var registers: [Register]
  /// Innermost first.
  public var frames: [Frame]

  public init(
    id: UInt32? = nil, name: String? = nil, crashed: Bool = false, depth: UInt64? = nil, status: ThreadStatus? = nil,
    registers: [Register] = [], frames: [Frame] = []
  ) {
    self.id = id
    self.name = name
    self.crashed = crashed
    self.depth = depth
    self.status = status
    self.registers = registers
    self.frames = frames
  }

  public struct Register: Hashable, Sendable {
    public var name: String
    public var value: UInt64

    public init(name: String, value: UInt64) {
      self.name = name
      self.value = value
    }
  }
}
