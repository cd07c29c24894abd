private import CCrashSupport
internal import CrashModel
private import Glibc

// Errors that the program handled, and that somebody should still look at.
extension CrashReporter {
  /// Reports an error that the program handled, with the stack of this call.
  ///
  /// At most 10 a minute; further ones are counted, and the count is in the next report. The error's description is
  /// redacted. The call walks the stack and hands the rest to a thread of its own: it takes microseconds, waits for
  /// nothing and never traps. The callers that await it are part of the stack. Before `start` and after `stop` the error is dropped and logged.
  ///
  /// ```swift
  /// do { try sync() } catch { CrashReporter.capture(error, tags: ["job": "sync"]) }
  /// ```
  ///
  /// - Parameter tags: set on this report in addition to those of the process; 50 in all are kept, these first.
  @inline(never)
  public static func capture(_ error: any Error, tags: [String: String] = [:]) {
    guard let run = ActiveRun.current, isStarted else {
      return drop("nothing was started")
    }
    guard let dropped = ErrorRate.shared.take() else { return }
    // The first address is the return into this function, which is not of interest. No closure around the call: it would
    // be a frame of its own where the optimiser leaves it.
    let capacity = 128
    let addresses = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity)
    defer { addresses.deallocate() }
    var thread: UInt32 = 0
    let awaits = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    defer { awaits.deallocate() }
    let count = crash_support_capture_stack(addresses, awaits, capacity, &thread)
    let stack = (0..<count).dropFirst().map { index in
      CapturedFrame(
        kind: awaits[index] != 0 ? .asyncResume : .returnAddress, trust: awaits[index] != 0 ? .async : .cfi,
        address: Address(rawValue: addresses[index]))
    }
    // Its type and description are asked for on the other thread: a description may be anything and take any time, and an
    // `Error` may be handed to another thread.
    let event = HandledError(
      error: error, tags: tags, stack: stack, time: Timestamp.now, threadID: thread, droppedBefore: dropped)
    BackgroundWork.shared.begin()
    if !ErrorQueue.shared.add(event, run) {
      BackgroundWork.shared.end()
      drop("no thread could be made")
    }
  }

  private static func drop(_ why: String) {
    DiagnosticSink.shared.send(Diagnostic(.errorDropped, "a handled error was not reported: \(why)"))
  }
}

/// Handled errors on their way to the thread that stores them. It is made for the first one and kept: making a thread takes
/// as long as all else that is done for an error.
// `@unchecked`: everything is reached under the lock; the semaphore is made for many threads.
private final class ErrorQueue: @unchecked Sendable {
  static let shared = ErrorQueue()

  private let lock = BareLock()
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
  private var waiting: [(error: HandledError, run: ActiveRun)] = []
  /// The process that has the thread: a child made by `fork` has none.
  private var processID: pid_t = 0

  private init() { sem_init(semaphore, 0, 0) }

  /// - Returns: false where there is no thread for it; it was not taken then.
  func add(_ error: HandledError, _ run: ActiveRun) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    if processID != getpid() {
      guard BackgroundThread.run(.reports, { self.serve() }) else { return false }
      processID = getpid()
    }
    waiting.append((error, run))
    sem_post(semaphore)
    return true
  }

  private func serve() {
    while true {
      while sem_wait(semaphore) != 0 {}
      lock.lock()
      let next = waiting.isEmpty ? nil : waiting.removeFirst()
      lock.unlock()
      guard let next else { continue }
      next.error.store(for: next.run)
      BackgroundWork.shared.end()
    }
  }
}

/// What the reports of this run need to know of its start.
struct ActiveRun: Sendable {
  var directory: String
  var limits: SpoolLimits
  var redactor: Redactor

  private static let lock = BareLock()
  // `unsafe`: both are reached under the lock only.
  private nonisolated(unsafe) static var stored: ActiveRun?
  private nonisolated(unsafe) static var handler: DiagnosticSink.Handler?

  static var current: ActiveRun? {
    lock.lock()
    defer { lock.unlock() }
    return stored
  }

  /// The hook of the last run that was begun: work that goes on behind its end has something to say, too.
  static var diagnostics: DiagnosticSink.Handler? {
    lock.lock()
    defer { lock.unlock() }
    return handler
  }

  static func begin(_ run: ActiveRun, diagnostics: DiagnosticSink.Handler?) {
    lock.lock()
    defer { lock.unlock() }
    stored = run
    handler = diagnostics
  }

  static func end() {
    lock.lock()
    defer { lock.unlock() }
    stored = nil
  }
}

/// At most so many handled errors a minute, so that a loop that fails does not fill the disk.
final class ErrorRate: Sendable {
  static let shared = ErrorRate()
  static let perMinute = 10

  private struct State: Sendable {
    var windowStart: ContinuousClock.Instant?
    var taken = 0
    var dropped = 0
  }
  private let state = Lock(State())

  /// - Returns: nil where this one is over the rate; else how many were since the last that was not.
  func take(now: ContinuousClock.Instant = .now) -> Int? {
    state.withLock { state in
      if let start = state.windowStart, now < start.advanced(by: .seconds(60)) {
        guard state.taken < Self.perMinute else {
          state.dropped += 1
          return nil
        }
      } else {
        state.windowStart = now
        state.taken = 0
      }
      state.taken += 1
      defer { state.dropped = 0 }
      return state.dropped
    }
  }
}

/// A handled error on its way to the spool.
struct HandledError: Sendable {
  var error: any Error
  var tags: [String: String]
  /// Innermost first.
  var stack: [CapturedFrame]
  var time: Timestamp
  var threadID: UInt32
  /// Errors over the rate since the last report.
  var droppedBefore: Int

  /// As many as a process may have.
  private static let maximumTags = 50

  /// Completes the report from this run's own record, which holds images and scope, and stores it.
  func store(for run: ActiveRun) {
    crash_support_refresh_images()
    guard let runID = CrashReporter.runIDBytes else {
      return DiagnosticSink.shared.send(Diagnostic(.errorDropped, "a handled error was not reported: stopped since"))
    }
    let name = Hex.string(runID) + ".crashrecord"
    do throws(SystemError) {
      let spool = try Spool(path: run.directory)
      let file = try Descriptor.open(name, in: spool.records, flags: O_RDONLY)
      let size = Int(clamping: try file.status().st_size)
      let bytes = try file.read(count: size, at: 0)
      guard let record = try? CrashRecord.read(bytes: bytes) else {
        return DiagnosticSink.shared.send(Diagnostic(.errorDropped, "this run's own record cannot be read"))
      }
      let builder = ReportBuilder(redactor: run.redactor, maximumBytes: run.limits.reportBytes)
      NextStart.store(
        report(from: record), spool: spool, limits: run.limits, builder: builder,
        report: { DiagnosticSink.shared.send($0) })
    } catch {
      DiagnosticSink.shared.send(Diagnostic(.errorDropped, "a handled error was not reported: \(error)"))
    }
  }

  private func report(from record: CrashRecord) -> CrashReport {
    var report = record.report()
    let entropy = (0..<16).map { _ in UInt8.random(in: 0...255) }
    report.id = UUIDText.string(UUIDText.version7(milliseconds: time.rawValue / 1_000_000, entropy: entropy))
    report.kind = .exception
    report.fatal = false
    report.timestamp = time
    report.type = String(reflecting: type(of: error))
    report.message = String(describing: error)
    report.signal = nil
    let own = tags.sorted { $0.key < $1.key }.prefix(Self.maximumTags)
    let others = report.tags.filter { tags[$0.key] == nil }.prefix(Self.maximumTags - own.count)
    report.tags = others + own.map { Tag(key: $0.key, value: $0.value) }
    let frames = stack.map { captured -> Frame in
      var frame = captured
      frame.imageIndex = report.images.firstIndex { $0.contains(frame.lookupAddress) }
      frame.imageOffset = frame.imageIndex.map { report.images[$0].offset(of: frame.address) }
      return .captured(frame)
    }
    // `crashed` marks the thread that the report is about.
    report.threads = [
      ThreadInfo(id: threadID, crashed: true, depth: UInt64(frames.count), status: .captured, frames: frames)
    ]
    report.crashedThreadIndex = 0
    if droppedBefore > 0 {
      report.notes.append("\(droppedBefore) further errors were over the rate of \(ErrorRate.perMinute) a minute.")
    }
    return report
  }
}

extension Timestamp {
  static var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(rawValue: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }
}
