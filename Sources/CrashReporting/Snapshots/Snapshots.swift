private import CCrashSupport
private import CrashModel
private import Glibc

extension CrashReporter {
  /// Writes the stacks of all threads into a report (`kind: "snapshot"`) and goes on.
  ///
  /// The threads stand still for some milliseconds; nothing that they wait in fails by it (docs/snapshots.md). The call
  /// returns when the stacks are on the disk; the report is made behind it. Where a snapshot is being taken already, that
  /// one is all there will be.
  ///
  /// ```swift
  /// if queue.depth > 10_000 { CrashReporter.captureSnapshot() }
  /// ```
  ///
  /// - Returns: whether the stacks were captured; a diagnostic says why not.
  @discardableResult
  public static func captureSnapshot() -> Bool {
    guard isStarted else {
      Snapshots.fail("nothing was started")
      return false
    }
    // On a thread of its own, so that the caller's stack is one of the threads' like any other.
    let capture = SnapshotWait()
    BackgroundWork.shared.begin()
    let started = BackgroundThread.run(.snapshot) {
      defer { BackgroundWork.shared.end() }
      let isTaken = Snapshots.take() != nil
      capture.finish(isTaken)
      if isTaken { Snapshots.process() }
    }
    guard started else {
      BackgroundWork.shared.end()
      Snapshots.fail("no thread could be made")
      return false
    }
    return capture.wait()
  }
}

/// Snapshots and what becomes of them. Not for the threads of the host.
enum Snapshots {
  /// Takes one. For a hang: what does not answer, for how long, and which thread should.
  ///
  /// - Returns: the file name of its record; nil where none was taken, which a diagnostic explains.
  static func take(
    watch: String? = nil, silent: Duration = .zero, threadID: UInt32 = 0, samples: UInt32 = 1,
    pauseMicroseconds: UInt32 = 0
  ) -> String? {
    var failure = crash_support_error()
    var taken = crash_support_snapshot()
    let parts = silent.components
    let nanoseconds =
      UInt64(clamping: parts.seconds) &* 1_000_000_000
      &+ UInt64(
        clamping: parts.attoseconds / 1_000_000_000)
    func request(_ watch: UnsafePointer<CChar>?) -> Int32 {
      var values = crash_support_snapshot_request(
        size: MemoryLayout<crash_support_snapshot_request>.size, watch: watch, thread: threadID,
        silent_ns: nanoseconds, samples: samples, pause_us: pauseMicroseconds)
      return crash_support_capture_snapshot(&values, &taken, &failure)
    }
    // A hang is always worth its report.
    guard watch != nil || SnapshotTurn.shared.admit(ActiveRun.current?.limits.snapshots ?? 1) else {
      fail("\(ActiveRun.current?.limits.snapshots ?? 1) of them wait to become reports")
      return nil
    }
    let result = watch.map { $0.withCString { request($0) } } ?? request(nil)
    guard result != 0 else {
      return withUnsafeBytes(of: taken.record) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
    let what = failure.what.map { String(cString: $0) } ?? "unknown step"
    fail(failure.number == 0 ? what : SystemError(number: failure.number, what).description)
    return nil
  }

  static func fail(_ why: String) {
    DiagnosticSink.shared.send(Diagnostic(.snapshotFailed, "no snapshot was taken: \(why)"))
  }

  /// Makes reports of the records that were written. Where this process ends before, the next start does it.
  ///
  /// By one thread: one that comes while another is at work leaves its record to that one, so that a service which asks for
  /// snapshots faster than reports are made does not fill up with threads that wait for their turn.
  static func process() {
    guard SnapshotTurn.shared.begin() else { return }
    // Not before: a thread that has nothing to do but to end should not have to wait for a processor.
    BackgroundThread.lowerPriority()
    repeat { processRecords() } while SnapshotTurn.shared.goesOn()
  }

  private static func processRecords() {
    guard let run = ActiveRun.current else { return }
    do throws(SystemError) {
      NextStart.run(
        spool: try Spool(path: run.directory), limits: run.limits,
        builder: ReportBuilder(redactor: run.redactor, maximumBytes: run.limits.reportBytes),
        ownRunID: CrashReporter.runIDBytes, report: { DiagnosticSink.shared.send($0) })
    } catch { fail("its record waits for the next start: \(error)") }
  }

  /// Waits for SIGQUITs on a thread of its own, for as long as the process lives. Those that come while a snapshot is being
  /// worked on make one more together.
  static func serveQuit() {
    let started = BackgroundThread.run(.quit) {
      while true {
        guard crash_support_wait_for_quit() > 0, CrashReporter.isStarted else { continue }
        BackgroundWork.shared.begin()
        let isTaken = take() != nil
        let begun =
          isTaken
          && BackgroundThread.run {
            process()
            BackgroundWork.shared.end()
          }
        if !begun { BackgroundWork.shared.end() }
      }
    }
    if !started { fail("SIGQUIT is taken for nothing: no thread could be made") }
  }
}

/// Whose turn it is to make reports of snapshots.
// `@unchecked`: everything is reached under the lock.
private final class SnapshotTurn: @unchecked Sendable {
  static let shared = SnapshotTurn()

  private let lock = BareLock()
  /// The process that is at work, 0 for none: a child made by `fork` does not have its parent's thread.
  private var processID: pid_t = 0
  private var isAskedAgain = false
  private var waiting = 0

  /// Counts one that is about to be taken. Each is some hundred kilobytes until its report is made.
  ///
  /// - Returns: false where so many wait that the first ones of them would be removed as soon as they are reports.
  func admit(_ most: Int) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    guard waiting < max(most, 1) else { return false }
    waiting += 1
    return true
  }

  /// - Returns: false where another thread is at work, which will see what there is.
  func begin() -> Bool {
    lock.lock()
    defer { lock.unlock() }
    isAskedAgain = processID == getpid()
    processID = getpid()
    if !isAskedAgain { waiting = 0 }
    return !isAskedAgain
  }

  /// - Returns: whether somebody has asked meanwhile. The turn is over where nobody has.
  func goesOn() -> Bool {
    lock.lock()
    defer { lock.unlock() }
    if isAskedAgain { waiting = 0 } else { processID = 0 }
    defer { isAskedAgain = false }
    return isAskedAgain
  }
}

/// Lets the caller of a snapshot wait for it.
// `@unchecked`: the semaphore is made for many threads; the flag is written before it is raised and read behind that.
private final class SnapshotWait: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
  private var isTaken = false

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func finish(_ isTaken: Bool) {
    self.isTaken = isTaken
    sem_post(semaphore)
  }

  func wait() -> Bool {
    while sem_wait(semaphore) != 0 {}
    return isTaken
  }
}
