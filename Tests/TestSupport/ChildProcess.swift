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

  public init(_ arguments: [String], environment: [String: String] = [:], directory: String? = nil) {
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
    self.input = []
    self.coreLimit = 0
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

  /// Runs the program to its end. A test that waits for something that never comes is ended by the test runner, not here.
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
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))

    // `sh` sets what posix_spawn cannot: the limit and the directory; then it becomes the program.
    let script = "ulimit -c \"$1\" 2>/dev/null; shift; cd -- \"$1\" || exit 125; shift; exec \"$@\""
    let limit = coreLimit == 0 ? "0" : "unlimited"
    let command = ["/bin/sh", "-c", script, "sh", limit, directory ?? "."] + arguments
    var values = Self.inheritedEnvironment()
    // Tests leave nothing behind, in the user's cache neither.
    values["SYMBOLICATE_CACHE_DIR"] = ""
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
    return Running(processID: pid, input: inputWrite, output: outputRead, errors: errorRead)
  }

  /// A child that was started.
  public struct Running: Sendable {
    public let processID: pid_t
    let input: Int32
    let output: Int32
    let errors: Int32

    /// Reads standard output up to and including the first newline.
    public func readLine() -> String {
      var line: [UInt8] = []
      var byte: UInt8 = 0
      while read(output, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
      return String(decoding: line, as: UTF8.self)
    }

    /// Gives `input`, reads what comes and waits for the end.
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
        _ = poll(&polls, nfds_t(polls.count), -1)
        for entry in polls where entry.revents != 0 {
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
      if inputOpen { close(input) }
      close(output)
      close(errors)
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
