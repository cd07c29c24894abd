internal import Glibc

enum ProcessorTime {
  /// Of this thread, in microseconds.
  static func ofThread() -> Int { now(CLOCK_THREAD_CPUTIME_ID) }

  /// Of another process, in microseconds; nil where it is gone.
  static func of(process: pid_t) -> Int? {
    var clock = clockid_t()
    return clock_getcpuclockid(process, &clock) == 0 ? now(clock) : nil
  }

  fileprivate static func now(_ clock: clockid_t) -> Int {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
  }
}
