public import Glibc
private import Synchronization

/// Runs programs as a shell would see them: with their exact exit status, signal and core flag.
///
/// Not Foundation's `Process`, which folds signal and status into one number on Linux and reaps children for the whole
/// process, so that tests that run in parallel get in each other's way.
public struct ChildProcess: Sendable {
  public var arguments: [String]
  public var environment: [String: String]
  /// Working directory; nil for the caller's.
  public var directory: String?
  /// Given on standard input.
  public var input: [UInt8]
  /// Bytes of a core file that the child may leave; 0 for none.
  public var coreLimit: UInt
  /// How long it may run, in seconds, from its start to the end of its output. Then it is ended and the test fails.
  ///
  /// Generous, as no test waits for it. `TEST_TIME_SCALE` in the environment multiplies it.
  public var limit: Double

  public init(_ arguments: [String], environment: [String: String] = [:], directory: String? = nil) {
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
    self.input = []
    self.coreLimit = 0
    self.limit = 300
  }

  public enum Status: Equatable, Sendable, CustomStringConvertible {
    case exited(Int32)
    case signaled(Int32)

    public var description: String {
      switch self {
      case .exited(let code): "exit \(code)"
      case .signaled(let signal): "signal \(signal)"
      }
    }
  }

  public struct Outcome: Sendable {
    public var status: Status
    public var dumpedCore: Bool
    public var processID: pid_t
    public var output: [UInt8]
    public var errors: [UInt8]

    public var text: String { String(decoding: output, as: UTF8.self) }
    public var errorText: String { String(decoding: errors, as: UTF8.self) }
  }

  public struct LaunchFailure: Error, CustomStringConvertible {
    public var description: String

    public init(description: String) { self.description = description }
  }

  /// A program that did not come to its end within its limit. It was ended.
  public struct Hang: Error, CustomStringConvertible {
    /// The program, and what each of its threads was doing.
    public var description: String
  }

  /// Runs the program to its end.
  ///
  /// - Throws: `LaunchFailure`; `Hang` when it does not come to its end within `limit`.
  public func run() throws -> Outcome {
    let running = try start()
    return try running.finish(input: input)
  }

  /// Starts the program and returns at once.
  public func start() throws -> Running {
    try Self.spawning.withLock { _ in try spawn() }
  }

  // One at a time: a child that is spawned between `pipe` and `fcntl` of another would hold that one's pipe open.
  // (`pipe2` is not imported.)
  private static let spawning = Mutex(())

  private func spawn() throws -> Running {
    let (inputRead, inputWrite) = try Self.makePipe()
    let (outputRead, outputWrite) = try Self.makePipe()
    let (errorRead, errorWrite) = try Self.makePipe()
    defer { for end in [inputRead, outputWrite, errorWrite] { close(end) } }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, inputRead, 0)
    posix_spawn_file_actions_adddup2(&actions, outputWrite, 1)
    posix_spawn_file_actions_adddup2(&actions, errorWrite, 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The runner's own handlers and mask are no business of the child's.
    var everything = sigset_t()
    sigfillset(&everything)
    var nothing = sigset_t()
    sigemptyset(&nothing)
    posix_spawnattr_setsigdefault(&attributes, &everything)
    posix_spawnattr_setsigmask(&attributes, &nothing)
    // A group of its own, by which everything that it starts can be ended with it.
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))

    // `sh` sets what posix_spawn cannot: the limit and the directory; then it becomes the program.
    let script = "ulimit -c \"$1\" 2>/dev/null; shift; cd -- \"$1\" || exit 125; shift; exec \"$@\""
    let limit = coreLimit == 0 ? "0" : "unlimited"
    let command = ["/bin/sh", "-c", script, "sh", limit, directory ?? "."] + arguments
    var values = Self.inheritedEnvironment()
    // Tests leave nothing behind, in the user's cache neither.
    values["SYMBOLICATE_CACHE_DIR"] = ""
    // And ask nobody outside.
    values["DEBUGINFOD_URLS"] = ""
    values.merge(environment) { $1 }
    var pid: pid_t = 0
    let result = Self.withCStrings(command) { argv in
      Self.withCStrings(values.map { "\($0)=\($1)" }) { envp in
        posix_spawn(&pid, "/bin/sh", &actions, &attributes, argv, envp)
      }
    }
    guard result == 0 else {
      for end in [inputWrite, outputRead, errorRead] { close(end) }
      throw LaunchFailure(description: "\(arguments): \(String(cString: strerror(result)))")
    }
    // Readable once the process has ended. Not by a signal or a thread that waits: tests run beside each other.
    guard let life = Self.openProcess(pid) else {
      let reason = String(cString: strerror(errno))
      for end in [inputWrite, outputRead, errorRead] { close(end) }
      kill(-pid, SIGKILL)
      throw LaunchFailure(description: "\(arguments): pidfd_open: \(reason)")
    }
    return Running(
      processID: pid, input: inputWrite, output: outputRead, errors: errorRead, life: life,
      deadline: Deadline(seconds: self.limit * Self.timeScale), arguments: arguments)
  }

  /// `pidfd_open`, of Linux 5.3. By `syscall`, as glibc has had a function for it since 2.36 only; and by that one's address,
  /// as Swift imports no variadic functions. Both processors pass these arguments like those of any other function.
  private static func openProcess(_ pid: pid_t) -> Int32? {
    typealias Call = @convention(c) (Int, Int, Int) -> Int
    guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "syscall") else {
      errno = ENOSYS
      return nil
    }
    // 434 on all processors.
    let descriptor = unsafeBitCast(address, to: Call.self)(434, Int(pid), 0)
    return descriptor < 0 ? nil : Int32(truncatingIfNeeded: descriptor)
  }

  private static let timeScale: Double = {
    let scale = getenv("TEST_TIME_SCALE").flatMap { Double(String(cString: $0)) } ?? 1
    return scale > 0 && scale.isFinite ? scale : 1
  }()

  /// A point in time by the monotonic clock.
  struct Deadline: Sendable {
    let seconds: Double
    private let end: Double

    init(seconds: Double) {
      self.seconds = seconds
      end = Self.now() + seconds
    }

    /// As `poll` wants it: 0 once it has passed, and never for ever.
    var milliseconds: Int32 { Int32(clamping: Int64(max(0, min(end - Self.now(), 1e6)) * 1000)) }

    private static func now() -> Double {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
  }

  /// A child that was started.
  public struct Running: Sendable {
    public let processID: pid_t
    let input: Int32
    let output: Int32
    let errors: Int32
    let life: Int32
    let deadline: Deadline
    let arguments: [String]

    /// Reads standard output up to and including the first newline. Ends early at the program's limit; `finish` throws then.
    public func readLine() -> String {
      var line: [UInt8] = []
      var byte: UInt8 = 0
      while Self.wait(for: [pollfd(fd: output, events: Int16(POLLIN), revents: 0)], until: deadline) != nil,
        read(output, &byte, 1) == 1, byte != UInt8(ascii: "\n")
      {
        line.append(byte)
      }
      return String(decoding: line, as: UTF8.self)
    }

    /// The descriptors with something to do; nil once the deadline has passed.
    private static func wait(for descriptors: [pollfd], until deadline: Deadline) -> [pollfd]? {
      var polls = descriptors
      while true {
        let count = poll(&polls, nfds_t(polls.count), deadline.milliseconds)
        if count > 0 { return polls.filter { $0.revents != 0 } }
        if count == 0, deadline.milliseconds == 0 { return nil }
      }
    }

    /// Ends everything that the program started, and says what it was doing.
    private func giveUp(closing descriptors: [Int32]) -> Hang {
      let state = ProcessState.describe(group: processID)
      kill(-processID, SIGKILL)
      // One that left the group; the process itself is not reaped yet, so that its number is still its own.
      kill(processID, SIGKILL)
      for descriptor in descriptors { close(descriptor) }
      var status: Int32 = 0
      while waitpid(processID, &status, 0) < 0 && errno == EINTR {}
      return Hang(
        description: "hung: \(arguments.joined(separator: " ")) did not end within \(deadline.seconds) s\n\(state)")
    }

    /// Gives `input`, reads what comes and waits for the end.
    ///
    /// - Throws: `Hang` when the end does not come within the program's limit.
    public func finish(input bytes: [UInt8] = []) throws -> Outcome {
      signal(SIGPIPE, SIG_IGN)
      var remaining = bytes[...]
      var captured: [Int32: [UInt8]] = [output: [], errors: []]
      var open: Set<Int32> = [output, errors]
      var inputOpen = true
      if remaining.isEmpty {
        close(input)
        inputOpen = false
      }
      var buffer = [UInt8](repeating: 0, count: 65536)
      while !open.isEmpty {
        var polls = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        if inputOpen { polls.append(pollfd(fd: input, events: Int16(POLLOUT), revents: 0)) }
        guard let ready = Self.wait(for: polls, until: deadline) else {
          throw giveUp(closing: [output, errors, life] + (inputOpen ? [input] : []))
        }
        for entry in ready {
          if entry.fd == input {
            let written = remaining.withUnsafeBytes { write(input, $0.baseAddress, min($0.count, 4096)) }
            if written > 0 { remaining = remaining.dropFirst(written) }
            if written < 0 || remaining.isEmpty {
              close(input)
              inputOpen = false
            }
          } else {
            let count = read(entry.fd, &buffer, buffer.count)
            if count > 0 {
              captured[entry.fd, default: []].append(contentsOf: buffer[..<count])
            } else {
              open.remove(entry.fd)
            }
          }
        }
      }
      // A program that closed its output may go on for long.
      guard Self.wait(for: [pollfd(fd: life, events: Int16(POLLIN), revents: 0)], until: deadline) != nil else {
        throw giveUp(closing: [output, errors, life] + (inputOpen ? [input] : []))
      }
      if inputOpen { close(input) }
      close(output)
      close(errors)
      close(life)
      var status: Int32 = 0
      while waitpid(processID, &status, 0) < 0 && errno == EINTR {}
      let signal = status & 0x7f
      return Outcome(
        status: signal == 0 ? .exited(status >> 8 & 0xff) : .signaled(signal), dumpedCore: status & 0x80 != 0,
        processID: processID, output: captured[output] ?? [], errors: captured[errors] ?? [])
    }
  }

  private static func makePipe() throws -> (Int32, Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw LaunchFailure(description: "pipe: \(String(cString: strerror(errno)))")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  private static func inheritedEnvironment() -> [String: String] {
    var values: [String: String] = [:]
    var entry = environ
    while let variable = entry.pointee {
      let text = String(cString: variable)
      if let separator = text.firstIndex(of: "=") {
        values[String(text[..<separator])] = String(text[text.index(after: separator)...])
      }
      entry += 1
    }
    return values
  }

  private static func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { buffer in
      guard let base = buffer.baseAddress else { preconditionFailure("the array ends with nil and so is not empty") }
      return body(base)
    }
  }
}
