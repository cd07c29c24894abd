private import Glibc

/// Runs work on a thread of its own that is in nobody's way.
///
/// Not libdispatch and not the cooperative pool: a daemon may have both exhausted, or may not have started them.
enum BackgroundThread {
  /// What a thread is for. The value is its name, at most 15 bytes.
  enum Role: String {
    case reports = "crash-reports"
    case watch = "crash-watch"
    case snapshot = "crash-snapshot"
    case quit = "crash-quit"

    /// Keeps the priority of the host's threads, which wait for this one or are measured against it.
    fileprivate var isUrgent: Bool { self != .reports }
  }

  private final class Work: Sendable {
    let role: Role
    let body: @Sendable () -> Void

    init(_ role: Role, _ body: @escaping @Sendable () -> Void) {
      self.role = role
      self.body = body
    }
  }

  /// Room for demangling, which goes deep into nested types. A main thread has 8 MiB, musl's default is 128 KiB.
  private static let stackSize = 1 << 20

  /// - Returns: false where no thread can be made; the work was not done then.
  static func run(_ role: Role = .reports, _ body: @escaping @Sendable () -> Void) -> Bool {
    // The host's signals go to the host's threads. A new thread inherits the mask, so that it is set around the creation
    // rather than in the thread, where a signal could come first. Faults stay open: one in here has to end the process as
    // anywhere else, with a report.
    var blocked = sigset_t()
    sigfillset(&blocked)
    for signal in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS] { sigdelset(&blocked, signal) }
    var before = sigset_t()
    pthread_sigmask(SIG_SETMASK, &blocked, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return create(Work(role, body))
  }

  private static func create(_ work: Work) -> Bool {
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0 else { return false }
    defer { pthread_attr_destroy(&attributes) }
    // Nobody joins it: at exit it ends with the process, and the next start goes on.
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, stackSize)
    var thread = pthread_t()
    let argument = Unmanaged.passRetained(work)
    let result = pthread_create(
      &thread, &attributes,
      { argument in
        beginBackgroundWork(argument)
        return nil
      }, argument.toOpaque())
    if result != 0 { argument.release() }
    return result == 0
  }

  /// Lets the host's threads go before the calling one, from here on.
  static func lowerPriority() {
    // On Linux this is the thread's own priority, not the process's.
    setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
  }

  fileprivate static func begin(_ argument: UnsafeMutableRawPointer) {
    let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
    // What `pthread_setname_np` does, which Swift's view of glibc does not have.
    if let name = try? Descriptor.open("/proc/thread-self/comm", flags: O_WRONLY) {
      try? name.write(Array(work.role.rawValue.utf8))
    }
    if !work.role.isUrgent { lowerPriority() }
    work.body()
  }
}

// A function of the file: the compiler (6.3.1) does not come to the end of its check of what is sent between threads where a
// closure for C calls one of the type.
private func beginBackgroundWork(_ argument: UnsafeMutableRawPointer?) {
  if let argument { BackgroundThread.begin(argument) }
}
