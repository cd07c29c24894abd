private import Glibc

/// Runs work on a thread of its own that is in nobody's way.
///
/// Not libdispatch and not the cooperative pool: a daemon may have both exhausted, or may not have started them.
enum BackgroundThread {
  private final class Work {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Room for demangling, which goes deep into nested types. A main thread has 8 MiB, musl's default is 128 KiB.
  private static let stackSize = 1 << 20

  /// - Returns: false where no thread can be made; the work was not done then.
  static func run(_ body: @escaping @Sendable () -> Void) -> Bool {
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0 else { return false }
    defer { pthread_attr_destroy(&attributes) }
    // Nobody joins it: at exit it ends with the process, and the next start goes on.
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, stackSize)

    // The host's signals go to the host's threads. A new thread inherits the mask, so that it is set around the creation
    // rather than in the thread, where a signal could come first. Faults stay open: one in here has to end the process as
    // anywhere else, with a report.
    var blocked = sigset_t()
    sigfillset(&blocked)
    for signal in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS] { sigdelset(&blocked, signal) }
    var before = sigset_t()
    pthread_sigmask(SIG_SETMASK, &blocked, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }

    let work = Unmanaged.passRetained(Work(body))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, &attributes,
      { argument in
        // On Linux this is the thread's own priority, not the process's.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
        // What `pthread_setname_np` does, which Swift's view of glibc does not have.
        if let name = try? Descriptor.open("/proc/thread-self/comm", flags: O_WRONLY) {
          try? name.write(Array("crash-reports".utf8))
        }
        guard let argument else { return nil }
        Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      }, work.toOpaque())
    if result != 0 { work.release() }
    return result == 0
  }
}
