internal import CrashModel
internal import Glibc

/// The file that output goes to until it is complete: gone when a signal ends the process, as if it had never begun.
///
/// There is one at most.
enum UnfinishedFile {
  /// Read by the signal handler, which may allocate nothing; set before the handler is there.
  // The handler runs on a thread that is stopped at any place, so no lock can guard it. It is written while the signals
  // are blocked, by the only thread there is.
  private nonisolated(unsafe) static var name: UnsafeMutablePointer<CChar>?

  /// What ends a process by default, can be caught, and comes from outside: terminal, service manager, limits.
  private static let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ]

  /// Creates the file, which must not exist.
  ///
  /// - Returns: the descriptor; negative, with `errno`, where it cannot be made.
  static func create(_ path: FilePath, mode: mode_t) -> CInt {
    withSignalsBlocked {
      let descriptor = path.withCString { open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode) }
      guard descriptor >= 0 else { return descriptor }
      name = path.withCString { strdup($0) }
      for number in signals { handle(number) }
      return descriptor
    }
  }

  /// The file has its name, or is removed: a signal has nothing to tidy up.
  static func forget() {
    withSignalsBlocked {
      free(name)
      name = nil
    }
  }

  private static func handle(_ number: CInt) {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return }
    // `nohup` and shells without job control ignore some for their children; that stays so.
    guard unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 0 else { return }
    action = sigaction()
    action.__sigaction_handler.sa_handler = { number in
      if let name = UnfinishedFile.name { unlink(name) }
      // The parent sees the signal and no exit status. It is blocked until this returns, and then ends the process.
      signal(number, SIG_DFL)
      raise(number)
    }
    sigaction(number, &action, nil)
  }

  private static func withSignalsBlocked<Result>(_ body: () -> Result) -> Result {
    var blocked = sigset_t()
    sigemptyset(&blocked)
    for number in signals { sigaddset(&blocked, number) }
    var before = sigset_t()
    pthread_sigmask(SIG_BLOCK, &blocked, &before)
    defer {
      let number = errno
      pthread_sigmask(SIG_SETMASK, &before, nil)
      errno = number
    }
    return body()
  }
}
