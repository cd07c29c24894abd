private import CCrashSupport
internal import CrashModel
private import Glibc

/// Something whose answers are waited for. Made by `CrashReporter.watch`.
public struct HangWatch: Sendable {
  let subject: HangSubject

  /// Ends the watch. What was reported stays.
  public func cancel() { HangWatcher.shared.remove(subject) }
}

extension CrashReporter {
  /// Reports it when something does not answer any more: a queue, an actor, an event loop.
  ///
  /// Every `interval` the watch asks by `ping`, which hands `answer` to what is watched and returns at once. Where no answer
  /// comes for `limit`, all threads are looked at five times within half a second, and a report of the kind `hang` is
  /// written: the frame that stays is to blame. Once for each hang; when the answer comes, a diagnostic and a breadcrumb
  /// say how long it took. Time in which the process was stopped, traced by a debugger or got no processor does not count.
  ///
  /// ```swift
  /// CrashReporter.watch(name: "main queue") { answer in DispatchQueue.main.async(execute: answer) }
  /// CrashReporter.watch(name: "baskets") { answer in Task { await baskets.ping(answer) } }
  /// CrashReporter.watch(name: "loop 0") { answer in eventLoop.execute(answer) }
  /// ```
  ///
  /// - Parameters:
  ///   - name: at most 60 bytes, redacted.
  ///   - limit: how long to wait for an answer. At least 50 ms.
  ///   - ping: runs on the watch's thread, for which all others wait; must not wait for anything.
  @discardableResult
  public static func watch(
    name: String, interval: Duration = .seconds(1), limit: Duration = .seconds(5),
    ping: @escaping @Sendable (_ answer: @escaping @Sendable () -> Void) -> Void
  ) -> HangWatch {
    let subject = HangSubject(
      name: name, interval: max(interval, .milliseconds(10)), limit: max(limit, .milliseconds(50)), ping: ping)
    HangWatcher.shared.add(subject)
    return HangWatch(subject: subject)
  }

  /// The same for the threads that run Swift's tasks. All of them blocked, by a semaphore, a lock or a call that waits, is
  /// how a service that uses `async` stops to serve.
  ///
  /// ```swift
  /// try CrashReporter.start(configuration)
  /// CrashReporter.watchCooperativePool()
  /// ```
  @discardableResult
  public static func watchCooperativePool(
    interval: Duration = .seconds(1), limit: Duration = .seconds(5)
  ) -> HangWatch {
    watch(name: "cooperative pool", interval: interval, limit: limit) { answer in
      Task.detached { answer() }
    }
  }
}

/// What is watched, and what is known of its answers.
final class HangSubject: Sendable {
  let name: String
  let interval: Duration
  let limit: Duration
  let ping: @Sendable (@escaping @Sendable () -> Void) -> Void

  private struct State: Sendable {
    /// When the ping was sent that was not answered; nil where all were.
    var askedAt: ContinuousClock.Instant?
    var answeredAt: ContinuousClock.Instant?
    /// When a hang that was reported began.
    var hangSince: ContinuousClock.Instant?
    /// File name of its record, once that was written.
    var hangRecord: String?
    /// How long it lasted, where it ended before.
    var unrecorded: Duration?
    var number: UInt64 = 0
    var threadID: UInt32 = 0
    /// How many answers in a row came from that thread.
    var sameThread = 0
  }
  private let state = Lock(State())

  init(
    name: String, interval: Duration, limit: Duration,
    ping: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) {
    self.name = name
    self.interval = interval
    self.limit = limit
    self.ping = ping
  }

  /// Asks, where it is time to.
  func pingIfDue(_ now: ContinuousClock.Instant) {
    let number: UInt64? = state.withLock { state in
      guard state.askedAt == nil, state.answeredAt.map({ now - $0 >= interval }) ?? true else { return nil }
      state.askedAt = now
      state.number &+= 1
      return state.number
    }
    guard let number else { return }
    ping { [self] in answer(number) }
  }

  private func answer(_ number: UInt64) {
    let now = ContinuousClock.now
    let thread = crash_support_thread_id()
    let hang: (duration: Duration, record: String?)? = state.withLock { state in
      guard state.number == number, state.askedAt != nil else { return nil }
      state.askedAt = nil
      state.answeredAt = now
      state.sameThread = thread == state.threadID ? min(state.sameThread + 1, 1_000) : 1
      state.threadID = thread
      guard let since = state.hangSince else { return nil }
      let record = state.hangRecord
      state.hangSince = nil
      state.hangRecord = nil
      state.unrecorded = record == nil ? now - since : nil
      return (now - since, record)
    }
    guard let hang else { return }
    HangWatcher.ended(name, hang.duration)
    if let record = hang.record { HangEnds.shared.ended(record, milliseconds: hang.duration.wholeMilliseconds) }
  }

  /// The hang that was begun is in this record.
  func setHangRecord(_ record: String) {
    let ended: Duration? = state.withLock { state in
      if state.hangSince != nil { state.hangRecord = record }
      defer { state.unrecorded = nil }
      return state.unrecorded
    }
    if let ended { HangEnds.shared.ended(record, milliseconds: ended.wholeMilliseconds) }
  }

  /// For how long there has been no answer; nil where there is none to come, or the hang was reported.
  func silence(_ now: ContinuousClock.Instant) -> Duration? {
    state.withLock { state in state.hangSince == nil ? state.askedAt.map { now - $0 } : nil }
  }

  /// Time that does not count.
  func forgive(_ time: Duration) {
    state.withLock { state in state.askedAt = state.askedAt.map { $0.advanced(by: time) } }
  }

  /// - Returns: false where the answer has come meanwhile.
  func beginHang() -> Bool {
    state.withLock { state in
      guard let asked = state.askedAt, state.hangSince == nil else { return false }
      state.hangSince = asked
      state.unrecorded = nil
      return true
    }
  }

  /// The thread that has to answer, where it always was the same one; else 0. The main thread is known at once, any other
  /// only after a while: a queue may be lucky.
  var threadID: UInt32 {
    state.withLock { state in
      state.sameThread >= 8 || (state.sameThread > 0 && state.threadID == UInt32(clamping: getpid()))
        ? state.threadID : 0
    }
  }
}

extension CrashReporter {
  /// Asks and answers so often, as fast as it goes: what a ping costs.
  package static func measurePings(_ count: Int) {
    let subject = HangSubject(name: "", interval: .zero, limit: .seconds(5)) { answer in answer() }
    for _ in 0..<count { subject.pingIfDue(.now) }
  }
}

/// The thread that asks all watches, and looks at the threads of the process when one does not answer.
// `@unchecked`: everything is reached under the lock, but for what only the watch's own thread touches.
final class HangWatcher: @unchecked Sendable {
  static let shared = HangWatcher()

  private let lock = BareLock()
  private var subjects: [HangSubject] = []
  /// The process that has the thread, 0 for none: a child made by `fork` has none.
  private var processID: pid_t = 0

  // MARK: Of the thread only

  private var suspects: [ObjectIdentifier: SchedulingSample] = [:]
  private var postponed: [ObjectIdentifier: Int] = [:]
  /// How often a starved process gets the limit once more.
  private static let postponements = 3
  private static let samples: UInt32 = 5
  private static let pauseMicroseconds: UInt32 = 100_000

  func add(_ subject: HangSubject) {
    lock.lock()
    subjects.append(subject)
    let isFirst = processID != getpid()
    processID = getpid()
    lock.unlock()
    guard isFirst else { return }
    if !BackgroundThread.run(.watch, { self.run() }) {
      lock.lock()
      processID = 0
      lock.unlock()
      DiagnosticSink.shared.send(Diagnostic(.snapshotFailed, "nothing is watched: no thread could be made"))
    }
  }

  func remove(_ subject: HangSubject) {
    lock.lock()
    subjects.removeAll { $0 === subject }
    lock.unlock()
  }

  /// Ends the thread where nothing is left to watch.
  private func current() -> [HangSubject]? {
    lock.lock()
    defer { lock.unlock() }
    if subjects.isEmpty { processID = 0 }
    return subjects.isEmpty ? nil : subjects
  }

  private func run() {
    var last = ContinuousClock.now
    while let subjects = current() {
      let pause = subjects.map { min($0.interval, $0.limit) / 4 }.min() ?? .milliseconds(250)
      let tick = min(max(pause, .milliseconds(5)), .milliseconds(250))
      usleep(UInt32(clamping: tick.components.attoseconds / 1_000_000_000_000))
      let now = ContinuousClock.now
      // What keeps this thread from running keeps the others from answering: a stopped process, a machine that is suspended
      // or has too much to do.
      let lateness = (now - last) - tick
      if lateness > max(tick, .milliseconds(100)) { for subject in subjects { subject.forgive(lateness) } }
      for subject in subjects {
        subject.pingIfDue(now)
        look(at: subject, now)
      }
      // What was spent on a hang is no lateness.
      last = ContinuousClock.now
    }
  }

  private func look(at subject: HangSubject, _ now: ContinuousClock.Instant) {
    let key = ObjectIdentifier(subject)
    guard let silence = subject.silence(now), silence >= subject.limit / 2 else {
      suspects[key] = nil
      postponed[key] = nil
      return
    }
    guard let sample = suspects[key] else {
      if Self.isTraced { return subject.forgive(silence) }
      suspects[key] = SchedulingSample(at: now)
      return
    }
    guard silence >= subject.limit else { return }
    suspects[key] = nil
    if Self.isTraced { return subject.forgive(silence) }
    if SchedulingSample(at: .now).isStarved(since: sample), postponed[key, default: 0] < Self.postponements {
      postponed[key, default: 0] += 1
      return subject.forgive(subject.limit)
    }
    postponed[key] = nil
    report(subject, silence)
  }

  private func report(_ subject: HangSubject, _ silence: Duration) {
    guard subject.beginHang() else { return }
    DiagnosticSink.shared.send(
      Diagnostic(.hangFound, "\(subject.name) has not answered for \(Self.text(silence))"))
    guard CrashReporter.isStarted,
      let record = Snapshots.take(
        watch: subject.name, silent: silence, threadID: subject.threadID, samples: Self.samples,
        pauseMicroseconds: Self.pauseMicroseconds)
    else { return }
    subject.setHangRecord(record)
    BackgroundWork.shared.begin()
    let started = BackgroundThread.run {
      defer { BackgroundWork.shared.end() }
      Snapshots.process()
    }
    if !started { BackgroundWork.shared.end() }
  }

  static func ended(_ name: String, _ duration: Duration) {
    let text = "\(name) answers again after \(text(duration))"
    CrashReporter.addBreadcrumb(text, category: "hang")
    DiagnosticSink.shared.send(Diagnostic(.hangEnded, text))
  }

  private static func text(_ duration: Duration) -> String {
    let milliseconds = duration.wholeMilliseconds
    return "\(milliseconds / 1_000).\(milliseconds / 100 % 10) s"
  }

  /// Whether a debugger has the process: people look at it, and it stands still for as long as they do.
  private static var isTraced: Bool {
    guard let file = try? Descriptor.open("/proc/self/status", flags: O_RDONLY),
      let bytes = try? file.read(count: 4_096, at: 0)
    else { return false }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").contains { line in
      line.hasPrefix("TracerPid:") && !line.hasSuffix("\t0")
    }
  }
}

extension Duration {
  var wholeMilliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
