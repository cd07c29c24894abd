private import CCrashSupport
internal import CrashModel
private import Glibc

// Errors that the program handled, and that somebody should still look at.
extension CrashReporter {
  /// Reports an error that the program handled, with the stack of this call.
  ///
  /// At most 10 a minute; further ones are counted, and the count is in the next report. The error's description is
  /// redacted. The call walks the stack and hands the rest to a thread of its own: it takes microseconds, waits for
  /// nothing and never traps. The callers that await it are part of the stack. Before `start` and after `stop` the error is
  /// dropped and logged.
  ///
  /// The report is there some milliseconds later. A process that exits before waits for it, half a second at most. One that
  /// crashes or is killed before has the error's type among the breadcrumbs of its last report.
  ///
  /// ```swift
  /// do { try sync() } catch { CrashReporter.capture(error, tags: ["job": "sync"]) }
  /// ```
  ///
  /// Any thread; not in a signal handler.
  ///
  /// - Parameter tags: set on this report in addition to those of the process; 50 in all are kept, these first.
  @inline(never)
  public static func capture(_ error: any Error, tags: [String: String] = [:]) {
    var runID: (UInt64, UInt64) = (0, 0)
    let isStarted = withUnsafeMutableBytes(of: &runID) { bytes in
      crash_support_run_id(bytes.bindMemory(to: UInt8.self).baseAddress) == 0
    }
    guard isStarted else { return drop("nothing was started") }
    guard let dropped = ErrorRate.shared.take() else { return }
    // The first address is the return into this function, which is not of interest. No closure around the call: it would
    // be a frame of its own where the optimiser leaves it.
    let stack = CapturedStack()
    stack.count = crash_support_capture_stack(stack.addresses, stack.awaits, CapturedStack.capacity, &stack.threadID)
    // In the record at once, which outlives whatever ends the process next.
    addBreadcrumb(_typeName(type(of: error)), category: "error")
    // Its type and description are asked for on the other thread: a description may be anything and take any time, and an
    // `Error` may be handed to another thread. So are the frames made, of which each is some allocations.
    let event = HandledError(
      error: error, tags: tags, runID: runID, stack: stack, time: Timestamp.now, droppedBefore: dropped)
    if !ErrorQueue.shared.add(event) { drop("no thread could be made") }
  }

  private static func drop(_ why: String) {
    DiagnosticSink.shared.send(Diagnostic(.errorDropped, "a handled error was not reported: \(why)"))
  }
}

/// Handled errors on their way to the thread that stores them. It is made for the first one and kept: making a thread takes
/// as long as all else that is done for an error.
// `@unchecked`: everything is reached under the lock; the semaphore is made for many threads.
final class ErrorQueue: @unchecked Sendable {
  static let shared = ErrorQueue()

  private let lock = BareLock()
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
  private var waiting: [HandledError] = []
  /// Those that wait, and the one that is being stored.
  private var unfinished = 0
  /// The process that has the thread: a child made by `fork` has none.
  private var processID: pid_t = 0
  private var waitsAtExit = false

  private init() {
    sem_init(semaphore, 0, 0)
    waiting.reserveCapacity(ErrorRate.perMinute)
  }

  /// Makes what the first error needs and the others find, on a thread that nobody waits for.
  static func prepare() {
    _ = shared
    _ = ErrorRate.shared
  }

  /// - Returns: false where there is no thread for it; it was not taken then.
  func add(_ error: HandledError) -> Bool {
    guard enqueue(error) else { return false }
    // Behind the lock, which the thread that this wakes takes next.
    sem_post(semaphore)
    return true
  }

  private func enqueue(_ error: HandledError) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    // The reporter runs, so that this is the calling process; a call to the kernel is a microsecond of the caller's time.
    let current = crash_support_process_id()
    if processID != current {
      guard BackgroundThread.run(.reports, { self.serve() }) else { return false }
      processID = current
      // What a parent left is the parent's to store.
      waiting.removeAll(keepingCapacity: true)
      unfinished = 0
      if !waitsAtExit { waitsAtExit = atexit { ErrorQueue.shared.waitAtExit() } == 0 }
    }
    waiting.append(error)
    unfinished += 1
    BackgroundWork.shared.begin()
    return true
  }

  private func serve() {
    while true {
      while sem_wait(semaphore) != 0 {}
      lock.lock()
      let next = waiting.isEmpty ? nil : waiting.removeFirst()
      lock.unlock()
      guard let next else { continue }
      next.store()
      lock.lock()
      unfinished -= 1
      lock.unlock()
      BackgroundWork.shared.end()
    }
  }

  /// A process that ends right behind an error is the one whose errors are of interest. Bounded, as their descriptions are
  /// the host's own code, and a look every millisecond as in `BackgroundWork.wait`.
  private func waitAtExit() {
    for _ in 0..<500 {
      lock.lock()
      let isDone = unfinished == 0 || processID != getpid()
      lock.unlock()
      if isDone { return }
      usleep(1_000)
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
// `@unchecked`: everything is reached under the lock. Not `Lock` and `ContinuousClock`, whose generic types and calls into the
// concurrency library were 4 us of the caller's time.
final class ErrorRate: @unchecked Sendable {
  static let shared = ErrorRate()
  static let perMinute = 10

  private let lock = BareLock()
  /// In seconds since the machine was started; nil before the first error.
  private var windowStart: Int?
  private var taken = 0
  private var dropped = 0

  /// - Parameter now: in seconds since the machine was started.
  /// - Returns: nil where this one is over the rate; else how many were since the last that was not.
  func take(now: Int = ErrorRate.seconds()) -> Int? {
    lock.lock()
    defer { lock.unlock() }
    if let start = windowStart, now - start < 60 {
      guard taken < Self.perMinute else {
        dropped += 1
        return nil
      }
    } else {
      windowStart = now
      taken = 0
    }
    taken += 1
    defer { dropped = 0 }
    return dropped
  }

  /// Time in which the machine slept counts too.
  private static func seconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return time.tv_sec
  }
}

/// What `crash_support_capture_stack` fills in, before anything is made of it.
// `@unchecked`: written by the thread that makes it, and handed on once.
final class CapturedStack: @unchecked Sendable {
  /// More than a report keeps of a thread that did not crash.
  static let capacity = 128

  let addresses: UnsafeMutablePointer<UInt64>
  /// 1 where the address is where a caller goes on that awaits.
  let awaits: UnsafeMutablePointer<UInt8>
  var count = 0
  var threadID: UInt32 = 0

  /// One allocation for both.
  init() {
    let bytes = Self.capacity * (MemoryLayout<UInt64>.size + 1)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: MemoryLayout<UInt64>.alignment)
    addresses = memory.bindMemory(to: UInt64.self, capacity: Self.capacity)
    awaits = (memory + Self.capacity * MemoryLayout<UInt64>.size).bindMemory(to: UInt8.self, capacity: Self.capacity)
  }

  deinit { UnsafeMutableRawPointer(addresses).deallocate() }

  /// Innermost first, without the return into the function that had the stack captured.
  var frames: [CapturedFrame] {
    (0..<count).dropFirst().map { index in
      CapturedFrame(
        kind: awaits[index] != 0 ? .asyncResume : .returnAddress, trust: awaits[index] != 0 ? .async : .cfi,
        address: Address(rawValue: addresses[index]))
    }
  }
}

/// A handled error on its way to the spool.
struct HandledError: Sendable {
  var error: any Error
  var tags: [String: String]
  /// The bytes of the run's id, as they are in memory.
  var runID: (UInt64, UInt64)
  var stack: CapturedStack
  var time: Timestamp
  /// Errors over the rate since the last report.
  var droppedBefore: Int

  /// As many as a process may have.
  private static let maximumTags = 50

  /// Completes the report from this run's own record, which holds images and scope, and stores it.
  func store() {
    crash_support_refresh_images()
    // Stopped since, and possibly started anew: another run's record says what another run was.
    guard let run = ActiveRun.current, let current = CrashReporter.runIDBytes,
      withUnsafeBytes(of: runID, { $0.elementsEqual(current) })
    else {
      return DiagnosticSink.shared.send(Diagnostic(.errorDropped, "a handled error was not reported: stopped since"))
    }
    let name = Hex.string(current) + ".crashrecord"
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
    let frames = stack.frames.map { captured -> Frame in
      var frame = captured
      frame.imageIndex = report.images.firstIndex { $0.contains(frame.lookupAddress) }
      frame.imageOffset = frame.imageIndex.map { report.images[$0].offset(of: frame.address) }
      return .captured(frame)
    }
    // `crashed` marks the thread that the report is about.
    report.threads = [
      ThreadInfo(id: stack.threadID, crashed: true, depth: UInt64(frames.count), status: .captured, frames: frames)
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
