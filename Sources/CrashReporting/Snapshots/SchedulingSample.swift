private import CCrashSupport
private import Glibc

/// How much processor time the threads of the process had, and how long they waited for some: tells a process that hangs
/// from one that the machine does not let run.
struct SchedulingSample {
  private struct Times {
    var running: UInt64
    var waiting: UInt64
  }

  private let time: ContinuousClock.Instant
  private var threads: [String: Times] = [:]

  /// Reads `/proc/self/task/*/schedstat`: nanoseconds on a processor, and nanoseconds ready to run and not running.
  init(at time: ContinuousClock.Instant) {
    self.time = time
    guard let folder = try? Descriptor.open("/proc/self/task", flags: O_RDONLY | O_DIRECTORY),
      let names = try? folder.names()
    else { return }
    let own = String(crash_support_thread_id())
    for name in names.prefix(1_024) where name != own {
      guard let file = try? Descriptor.open(name + "/schedstat", in: folder, flags: O_RDONLY),
        let bytes = try? file.read(count: 64, at: 0)
      else { continue }
      let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
      guard words.count >= 2, let running = UInt64(words[0]), let waiting = UInt64(words[1]) else { continue }
      threads[name] = Times(running: running, waiting: waiting)
    }
  }

  /// Whether a thread was ready to run for more than half of the time and got less than a fifth of it. One that runs in
  /// circles gets its share even of a busy machine.
  func isStarved(since earlier: SchedulingSample) -> Bool {
    let parts = (time - earlier.time).components
    let window =
      UInt64(clamping: parts.seconds) &* 1_000_000_000
      &+ UInt64(
        clamping: parts.attoseconds / 1_000_000_000)
    guard window > 0 else { return false }
    return threads.contains { name, now in
      guard let then = earlier.threads[name] else { return false }
      return now.waiting &- then.waiting > window / 2 && now.running &- then.running < window / 5
    }
  }
}
