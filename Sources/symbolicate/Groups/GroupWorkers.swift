internal import CrashFormats
internal import CrashGrouping
internal import CrashModel
private import Glibc

/// The processes of `--jobs N`.
///
/// Processes and not threads: debug files are read in a process that each forks for itself, which a program with several
/// threads must not do. They get files by number, or pieces of a file of lines; each adds up what it gets and leaves a
/// state, and a log of what it had to say. The logs are told in the order of the input afterwards, so that nothing shows
/// how many there were.
final class GroupWorkers {
  /// What a worker is to do next.
  enum Task {
    case file(Int)
    /// Whole lines of a file.
    case piece(file: Int, firstLine: Int, UnsafeRawBufferPointer)
  }

  private struct Worker {
    var pid: pid_t
    var input: CInt
    var log: CInt
    var state: CInt
  }

  /// F_SETPIPE_SZ of <linux/fcntl.h>, which the module of the C library leaves out.
  private static let setPipeSize: CInt = 1_031

  private var workers: [Worker] = []
  private var sequence = 0
  private var isBroken = false

  /// Forks them. There must be no other thread.
  ///
  /// - Parameter work: what a worker does; gets where its tasks come from, and where its log and its state go.
  /// - Returns: nil where the system gives no process, pipe or temporary file; then there is none.
  init?(count: Int, work: (_ tasks: CInt, _ log: CInt, _ state: CInt) -> Void) {
    for _ in 0..<count {
      var ends: [CInt] = [-1, -1]
      let log = Self.temporaryFile()
      let state = Self.temporaryFile()
      guard log >= 0, state >= 0, pipe(&ends) == 0 else {
        for descriptor in [log, state] where descriptor >= 0 { close(descriptor) }
        stop()
        return nil
      }
      // Room for the next piece while one is worked on. The default does, only slower.
      _ = fcntl(ends[1], Self.setPipeSize, 1 << 20)
      let pid = fork()
      if pid == 0 {
        close(ends[1])
        for worker in workers { close(worker.input) }
        work(ends[0], log, state)
        // Not `exit`: what the parent had begun is the parent's to end.
        _exit(0)
      }
      close(ends[0])
      guard pid > 0 else {
        for descriptor in [ends[1], log, state] { close(descriptor) }
        stop()
        return nil
      }
      workers.append(Worker(pid: pid, input: ends[1], log: log, state: state))
    }
  }

  /// Without a name from the beginning, so that no end of the process leaves it behind.
  private static func temporaryFile() -> CInt {
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? ""
    var template = Array(((folder.isEmpty ? "/tmp" : folder) + "/symbolicate.XXXXXX").utf8CString)
    let descriptor = mkstemp(&template)
    if descriptor >= 0 { unlink(template) }
    return descriptor
  }

  /// Hands a task to whichever worker is ready for one.
  ///
  /// - Returns: its number in the order of the input; nil where a worker is gone.
  func give(_ task: Task) -> Int? {
    sequence += 1
    var polls = workers.map { pollfd(fd: $0.input, events: Int16(POLLOUT), revents: 0) }
    while poll(&polls, nfds_t(polls.count), -1) < 0 { guard errno == EINTR else { return nil } }
    guard let ready = polls.firstIndex(where: { $0.revents != 0 }) else { return nil }
    var header: [UInt64]
    var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
    switch task {
    case .file(let index): header = [1, UInt64(sequence), UInt64(index), 0, 0]
    case .piece(let index, let line, let piece):
      header = [2, UInt64(sequence), UInt64(index), UInt64(line), UInt64(piece.count)]
      bytes = piece
    }
    // In turn from there on, so that all have something to do.
    workers.append(workers.remove(at: ready))
    guard let worker = workers.last,
      header.withUnsafeBytes({ Self.write($0, to: worker.input) }), Self.write(bytes, to: worker.input)
    else {
      isBroken = true
      return nil
    }
    return sequence
  }

  /// Waits until all is done.
  ///
  /// - Returns: logs and states; nil where a worker did not come to its end.
  func finish() -> [(log: CInt, state: CInt)]? {
    let end: [UInt64] = [0, 0, 0, 0, 0]
    for worker in workers { if !end.withUnsafeBytes({ Self.write($0, to: worker.input) }) { isBroken = true } }
    for worker in workers {
      close(worker.input)
      var status: CInt = 0
      while waitpid(worker.pid, &status, 0) < 0, errno == EINTR {}
      if status != 0 { isBroken = true }
      lseek(worker.log, 0, SEEK_SET)
      lseek(worker.state, 0, SEEK_SET)
    }
    return isBroken ? nil : workers.map { ($0.log, $0.state) }
  }

  private func stop() {
    _ = finish()
    for worker in workers {
      close(worker.log)
      close(worker.state)
    }
    workers = []
  }

  static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Bool {
    var written = 0
    while written < bytes.count {
      let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
      if count < 0, errno != EINTR { return false }
      written += max(count, 0)
    }
    return true
  }
}

/// The worker's end of the pipe.
struct GroupTasks {
  private let descriptor: CInt
  private var piece: [UInt8] = []

  init(_ descriptor: CInt) { self.descriptor = descriptor }

  /// - Returns: the task and its number; nil at the end.
  mutating func next<Failure>(
    _ body: (_ sequence: Int, GroupWorkers.Task) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    var header = [UInt64](repeating: 0, count: 5)
    guard header.withUnsafeMutableBytes(fill), header[0] != 0 else { return false }
    let (sequence, file) = (Int(clamping: header[1]), Int(clamping: header[2]))
    guard header[0] == 2 else {
      try body(sequence, .file(file))
      return true
    }
    piece = [UInt8](unsafeUninitializedCapacity: Int(clamping: header[4])) { memory, count in
      count = fill(UnsafeMutableRawBufferPointer(memory)) ? memory.count : 0
    }
    // An array of exactly so many bytes may have room for more.
    guard piece.count == Int(clamping: header[4]) else { return false }
    let bytes = piece
    let line = Int(clamping: header[3])
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(Failure) in try body(sequence, .piece(file: file, firstLine: line, buffer)) }
    }
    try result.get()
    return true
  }

  private func fill(_ memory: UnsafeMutableRawBufferPointer) -> Bool {
    var filled = 0
    while filled < memory.count {
      let count = read(descriptor, memory.baseAddress?.advanced(by: filled), memory.count - filled)
      if count == 0 { return false }
      if count < 0, errno != EINTR { return false }
      filled += max(count, 0)
    }
    return true
  }
}
