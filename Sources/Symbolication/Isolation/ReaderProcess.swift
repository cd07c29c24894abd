internal import CrashModel
private import Glibc

/// A process that reads debug files for this one, started anew whenever a file has ended it.
///
/// libelf and libdw are C and read files that anybody may have made; what crashes, never ends or takes all memory does so
/// there. It is forked and not executed: there is nothing to find and nothing to load, it takes a fraction of a millisecond,
/// and it knows what this process was told.
///
/// A fork copies only the thread that forks; a lock that another one held would stay locked in the reader. So a process that
/// has other threads gets no reader, and no answers.
final class ReaderProcess {
  private let limits: ReaderLimits
  private let makeSearch: () -> DebugFileSearch
  private let note: ReadingNote?
  /// What ended readers, and how.
  private var endings: [ReadingWatch.Subject: String] = [:]
  private var running: (process: pid_t, channel: MessageChannel)?
  /// Counts readers that ended: what one was told, the next does not know.
  private(set) var generation = 0

  /// Why there is no answer.
  enum Failure: Error, Equatable {
    /// Reading something ended the reader. It is not read again, so that asking once more leads further.
    case ended(String)
    /// As often as it is asked.
    case unusable(String)

    var text: String {
      switch self {
      case .ended(let text), .unusable(let text): text
      }
    }
  }

  /// Called while an answer is waited for, in the process that waits.
  var whileWaiting: (() -> Void)?

  init(limits: ReaderLimits, makeSearch: @escaping () -> DebugFileSearch) {
    self.limits = limits
    self.makeSearch = makeSearch
    note = ReadingNote()
  }

  deinit { stop() }

  func ask(_ request: ReaderRequest) throws(Failure) -> ReaderReply {
    let (process, channel) = try reader()
    let message: [UInt8]
    do throws(MessageChannel.Failure) {
      try channel.send(request.bytes)
      var watcher = IdleWatcher(process: process, limit: limits.silence)
      message = try channel.receive(interval: IdleWatcher.interval, whileWaiting: whileWaiting) { watcher.isAtWork() }
    } catch {
      throw bury(because: error)
    }
    guard let reply = message.withUnsafeBytes({ ReaderReply($0) }) else { throw bury(because: .malformed) }
    return reply
  }

  /// Without an answer, and without a new process only for it.
  func tell(_ request: ReaderRequest) {
    // Where it is gone, so is what it should forget.
    try? running?.channel.send(request.bytes)
  }

  // MARK: The process

  private func reader() throws(Failure) -> (pid_t, MessageChannel) {
    if let running { return running }
    guard let note else { throw .unusable("there is no memory to read it in another process") }
    guard Self.hasOneThread else { throw .unusable("a process with several threads cannot read it in another one") }
    guard let (own, other) = MessageChannel.pair() else {
      throw .unusable("no process to read it in can be started: \(errnoText(errno))")
    }
    note.clear()
    let process = fork()
    if process == 0 {
      close(own.descriptor)
      let watch = ReadingWatch(note: note, limits: limits, endings: endings)
      ReaderService.run(on: other, watch: watch, limits: limits, makeSearch: makeSearch)
    }
    guard process > 0 else { throw .unusable("no process to read it in can be started: \(errnoText(errno))") }
    running = (process, own)
    return (process, own)
  }

  private static var hasOneThread: Bool {
    // Without /proc nobody can say, and a program that asks for this has been told.
    let threads = DirectoryListing(of: FilePath("/proc/self/task"), limit: 2)
    return threads.failure != nil || threads.names.count < 2
  }

  /// Ends the reader, takes down why, and what it must not read again.
  private func bury(because failure: MessageChannel.Failure) -> Failure {
    guard let (process, _) = running else { return .unusable("the process that read it is gone") }
    running = nil
    generation += 1
    if failure != .closed { kill(process, SIGKILL) }
    let end = Self.wait(for: process)
    var text: String
    switch failure {
    case .gaveUp: text = "reading it came to a standstill"
    case .malformed: text = "reading it gave an answer that cannot be understood"
    case .closed: text = reason(end)
    }
    if let subject = note?.subject, endings[subject] == nil {
      endings[subject] = text
      return .ended(text)
    }
    text += ", whatever it was that was read"
    return .unusable(text)
  }

  private struct End {
    var status: CInt
    /// In bytes, at its highest.
    var memory: UInt64
  }

  private static func wait(for process: pid_t) -> End {
    var status: CInt = 0
    var usage = rusage()
    while wait4(process, &status, 0, &usage) < 0, errno == EINTR {}
    return End(status: status, memory: UInt64(clamping: usage.ru_maxrss) &* 1024)
  }

  private func reason(_ end: End) -> String {
    let signal = end.status & 0x7f
    let code = end.status >> 8 & 0xff
    if signal == SIGPROF { return "reading it took more than \(note?.seconds ?? 0) s of processor time" }
    // What cannot be allocated ends Swift by an abort and libdw by an exit. An array that grows asks for twice as much as it
    // has, so that it fails long before all of it is used.
    if signal == 0 && code == ReaderService.noMemoryCode || signal == SIGABRT && end.memory >= limits.memory / 3 {
      return "reading it took more memory than the \(Self.size(limits.memory)) that it may"
    }
    return signal == 0 ? "reading it ended with exit status \(code)" : "reading it ended in \(Self.name(of: signal))"
  }

  private static func size(_ bytes: UInt64) -> String {
    bytes.isMultiple(of: 1 << 30) ? "\(bytes >> 30) GiB" : "\(bytes >> 20) MiB"
  }

  private static func name(of signal: CInt) -> String {
    switch signal {
    case SIGSEGV: "SIGSEGV"
    case SIGBUS: "SIGBUS"
    case SIGILL: "SIGILL"
    case SIGFPE: "SIGFPE"
    case SIGABRT: "SIGABRT"
    case SIGTRAP: "SIGTRAP"
    case SIGKILL: "SIGKILL, as when the machine has no memory left"
    case SIGSYS: "SIGSYS"
    default: "signal \(signal)"
    }
  }

  private func stop() {
    guard let (process, _) = running else { return }
    running = nil
    // It has nothing to write, and nobody waits for what it reads.
    kill(process, SIGKILL)
    _ = Self.wait(for: process)
  }
}

/// Whether a process that does not answer is still at work.
private struct IdleWatcher {
  /// Seconds between two looks.
  static let interval = 5

  private let process: pid_t
  private let limit: Int
  private var used: Int?
  private var idle = 0

  init(process: pid_t, limit: Int) {
    self.process = process
    self.limit = limit
  }

  /// To be asked at every look. One that waits for a slow disk uses a little between two reads.
  mutating func isAtWork() -> Bool {
    let now = ProcessorTime.of(process: process)
    idle = now == used ? idle + Self.interval : 0
    used = now
    return idle < limit
  }
}
