import CrashReporting
import Dispatch
import Glibc

/// Ends the process. Returns for the ways in which the main function returns.
func end(_ how: String) {
  switch how {
  case "return": say("ready \(getpid())")
  case "exit": exit(0)
  case "exit_3": exit(3)
  case "quick_exit": quick_exit(0)
  case "_exit": _exit(0)
  case "stop":
    CrashReporter.stop()
    _exit(0)
  case "pipe":
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    close(ends[0])
    write(ends[1], "x", 1)
  case "alarm":
    alarm(1)
    wait()
  case "cpu":
    var limit = rlimit(rlim_cur: 1, rlim_max: 5)
    setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
    while true {}
  case "file_size":
    var limit = rlimit(rlim_cur: 64, rlim_max: 64)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    let file = open("too-large", O_WRONLY | O_CREAT, 0o600)
    for _ in 0..<10 { write(file, String(repeating: "x", count: 64), 64) }
    fail("a file is larger than it may be")
  case "handler_exit":
    signal(SIGTERM) { _ in exit(0) }
    wait()
  case "handler_silent":
    signal(SIGTERM) { _ in _exit(0) }
    wait()
  case "handler_before":
    // As a library would that calls whoever was there before.
    former = signal(SIGTERM) { number in former?(number) }
    wait()
  case "ignored":
    signal(SIGTERM, SIG_IGN)
    kill(getpid(), SIGTERM)
    exit(0)
  case "wait": wait()
  case "sigwait", "signalfd":
    // A service that takes its signals when it wants to: no handler runs for what is blocked.
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    say("ready \(getpid())")
    var number: Int32 = 0
    if how == "sigwait" {
      sigwait(&set, &number)
    } else {
      typealias Create = @convention(c) (Int32, UnsafePointer<sigset_t>, Int32) -> Int32
      guard let symbol = dlsym(nil, "signalfd") else { fail("no signalfd") }
      var information = [UInt32](repeating: 0, count: 32)  // signalfd_siginfo, whose first field is the number
      let length = read(unsafeBitCast(symbol, to: Create.self)(-1, &set, 0), &information, 128)
      number = length == 128 ? Int32(information[0]) : 0
    }
    if number != SIGTERM { fail("signal \(number)") }
    exit(0)
  case "dispatch_source":
    signal(SIGTERM, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: SIGTERM, queue: .global())
    source?.setEventHandler { exit(0) }
    source?.setRegistrationHandler { say("ready \(getpid())") }
    source?.resume()
    while true { pause() }
  case "child":
    // What a program that this one starts finds: of its own signals, and when it sends itself one.
    for script in ["exec cat /proc/self/status", "kill -TERM $$"] {
      var child: pid_t = 0
      let words: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(script), nil]
      guard posix_spawn(&child, "/bin/sh", nil, nil, words, environ) == 0 else { fail("no child") }
      var status: Int32 = 0
      waitpid(child, &status, 0)
      say("child \(status)")
    }
    exit(0)
  case "query":
    for number in [SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGWINCH] {
      var action = sigaction()
      sigaction(number, nil, &action)
      let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
      say("action \(number) \(handler == 0 ? "default" : handler == 1 ? "ignored" : "handler")")
    }
    // As libraries do that put an action away and back again.
    var former = sigaction()
    sigaction(SIGTERM, nil, &former)
    var ignore = former
    ignore.__sigaction_handler.sa_handler = SIG_IGN
    sigaction(SIGTERM, &ignore, nil)
    kill(getpid(), SIGTERM)
    sigaction(SIGTERM, &former, nil)
    wait()
  case "raise": raise(SIGTERM)
  case "blocked_segv":
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGSEGV)
    sigprocmask(SIG_BLOCK, &set, nil)
    UnsafeMutablePointer<Int>(bitPattern: 16)?.pointee = 1
  case "abort": abort()
  case "exec":
    let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("cat"), nil]
    say("ready \(getpid())")
    execv("/bin/cat", arguments)
    fail("no exec")
  case "memory":
    // Joins the cgroup that the test made, and takes all that it may have.
    if readLine() == nil { fail("nobody said go") }
    var blocks: [UnsafeMutableRawPointer] = []
    while let block = malloc(1 << 20) {
      memset(block, Int32(blocks.count & 0xff | 1), 1 << 20)
      blocks.append(block)
    }
    fail("no memory, and alive")
  case "fork":
    // The child ends in every way that there is; the parent lives, and ends in good order.
    for way in 0..<3 {
      let child = forkProcess()
      if child == 0 {
        switch way {
        case 0: _exit(0)
        case 1: exit(3)
        default:
          kill(getpid(), SIGTERM)
          while true { pause() }
        }
      }
      var status: Int32 = 0
      waitpid(child, &status, 0)
      say("child \(status)")
    }
    exit(0)
  default: fail("no such end: \(how)")
  }
}

// `unsafe`: set before the signal can come.
nonisolated(unsafe) private var former: sighandler_t?

// `unsafe`: set once, and kept for as long as the process lives.
nonisolated(unsafe) private var source: (any DispatchSourceSignal)?

private func wait() {
  say("ready \(getpid())")
  while true { pause() }
}

/// Swift's view of glibc does not have `fork`, because a child must not run Swift's runtime; this one only ends.
private func forkProcess() -> pid_t {
  typealias Fork = @convention(c) () -> pid_t
  guard let symbol = dlsym(nil, "fork") else { fail("no fork") }
  return unsafeBitCast(symbol, to: Fork.self)()
}
