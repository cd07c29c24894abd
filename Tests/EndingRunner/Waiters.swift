import CrashReporting
import Dispatch
import Glibc

/// Threads that wait in the calls that a signal interrupts, and count what they should not see.
// `@unchecked`: counters are reached under the semaphore only.
final class Waiters: @unchecked Sendable {
  private let lock = DispatchSemaphore(value: 1)
  private var seen: [String: Int] = [:]
  private var rounds: [String: Int] = [:]
  private var isDone = false
  private var threads: [Thread] = []
  private var semaphoreSet: Int32?

  private var isFinished: Bool {
    lock.wait()
    defer { lock.signal() }
    return isDone
  }

  private func note(_ name: String, _ wasDisturbed: Bool) {
    lock.wait()
    rounds[name, default: 0] += 1
    if wasDisturbed { seen[name, default: 0] += 1 }
    lock.signal()
  }

  private func add(_ name: String, _ call: @escaping @Sendable () -> Int) {
    threads.append(
      Thread { [self] in
        // Once at least, however late the thread gets a processor.
        repeat {
          errno = 0
          let result = call()
          note(name, result < 0 && errno == EINTR)
        } while !isFinished
      })
  }

  init() {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let reading = ends[0]
    add("poll") {
      var entry = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
      return Int(poll(&entry, 1, 20))
    }
    // Swift's view of glibc does not have these.
    typealias Create = @convention(c) (Int32) -> Int32
    typealias Wait = @convention(c) (Int32, UnsafeMutableRawPointer?, Int32, Int32) -> Int32
    if let create = dlsym(nil, "epoll_create1"), let wait = dlsym(nil, "epoll_wait") {
      let epoll = unsafeBitCast(create, to: Create.self)(0)
      let epollWait = unsafeBitCast(wait, to: Wait.self)
      add("epoll_wait") {
        var event: (UInt64, UInt64) = (0, 0)
        return withUnsafeMutableBytes(of: &event) { Int(epollWait(epoll, $0.baseAddress, 1, 20)) }
      }
    }
    add("select") {
      var time = timeval(tv_sec: 0, tv_usec: 20_000)
      return Int(select(0, nil, nil, nil, &time))
    }
    add("nanosleep") {
      var time = timespec(tv_sec: 0, tv_nsec: 20_000_000)
      return Int(nanosleep(&time, nil))
    }
    add("usleep") { Int(usleep(20_000)) }
    add("clock_nanosleep") {
      var time = timespec(tv_sec: 0, tv_nsec: 20_000_000)
      let result = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
      errno = result
      return result == 0 ? 0 : -1
    }
    add("sem_timedwait") {
      var semaphore = sem_t()
      sem_init(&semaphore, 0, 0)
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      time.tv_nsec += 20_000_000
      if time.tv_nsec >= 1_000_000_000 {
        time.tv_nsec -= 1_000_000_000
        time.tv_sec += 1
      }
      let result = sem_timedwait(&semaphore, &time)
      return errno == EINTR ? Int(result) : 0
    }
    let pair = UnsafeMutablePointer<Int32>.allocate(capacity: 2)
    socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, pair)
    let socket = pair[0]
    var limit = timeval(tv_sec: 0, tv_usec: 20_000)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    add("recv") {
      var byte: UInt8 = 0
      let result = recv(socket, &byte, 1, 0)
      return result
    }
    // Through the wrappers that load an argument behind the number of the call, or have the number 0.
    add("recvfrom") {
      var byte: UInt8 = 0
      return recvfrom(socket, &byte, 1, 0, nil, nil)
    }
    add("read") {
      var byte: UInt8 = 0
      return read(socket, &byte, 1)
    }
    add("readv") {
      var byte: UInt8 = 0
      return withUnsafeMutablePointer(to: &byte) { pointer in
        var part = iovec(iov_base: pointer, iov_len: 1)
        return readv(socket, &part, 1)
      }
    }
    add("pselect") {
      var time = timespec(tv_sec: 0, tv_nsec: 20_000_000)
      var set = sigset_t()
      sigemptyset(&set)
      return Int(pselect(0, nil, nil, nil, &time, &set))
    }
    typealias Poll =
      @convention(c) (
        UnsafeMutablePointer<pollfd>, UInt, UnsafePointer<timespec>, UnsafePointer<sigset_t>
      ) -> Int32
    if let symbol = dlsym(nil, "ppoll") {
      let pollWithMask = unsafeBitCast(symbol, to: Poll.self)
      add("ppoll") {
        var time = timespec(tv_sec: 0, tv_nsec: 20_000_000)
        var set = sigset_t()
        sigemptyset(&set)
        var entry = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
        return Int(pollWithMask(&entry, 1, &time, &set))
      }
    }
    add("sleep") { sleep(1) == 0 ? 0 : -1 }
    typealias Epoll = @convention(c) (Int32, UnsafeMutableRawPointer?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
    if let create = dlsym(nil, "epoll_create1"), let wait = dlsym(nil, "epoll_pwait") {
      let epoll = unsafeBitCast(create, to: Create.self)(0)
      let epollWait = unsafeBitCast(wait, to: Epoll.self)
      add("epoll_pwait") {
        var event: (UInt64, UInt64) = (0, 0)
        var set = sigset_t()
        sigemptyset(&set)
        return withUnsafeMutableBytes(of: &event) { Int(epollWait(epoll, $0.baseAddress, 1, 20, &set)) }
      }
    }
    // System V's semaphores and message queues, which a signal interrupts whatever its flags are.
    typealias Get = @convention(c) (Int32, Int32, Int32) -> Int32
    typealias Operate = @convention(c) (Int32, UnsafeMutableRawPointer?, Int, UnsafeMutablePointer<timespec>?) -> Int32
    if let get = dlsym(nil, "semget"), let operate = dlsym(nil, "semtimedop") {
      let set = unsafeBitCast(get, to: Get.self)(0, 1, 0o600)
      let operateTimed = unsafeBitCast(operate, to: Operate.self)
      semaphoreSet = set
      add("semtimedop") {
        // sembuf: number, what to take, flags.
        var operation: (UInt16, Int16, Int16) = (0, -1, 0)
        var time = timespec(tv_sec: 0, tv_nsec: 20_000_000)
        return withUnsafeMutableBytes(of: &operation) { Int(operateTimed(set, $0.baseAddress, 1, &time)) }
      }
    }
    add("sigtimedwait") {
      var set = sigset_t()
      sigemptyset(&set)
      sigaddset(&set, SIGWINCH)
      var time = timespec(tv_sec: 0, tv_nsec: 20_000_000)
      return Int(sigtimedwait(&set, nil, &time))
    }
    // Computes, and sees at once when somebody touches its errno.
    threads.append(
      Thread { [self] in
        repeat {
          errno = 4_711
          var sum = 0
          for index in 0..<20_000 { sum = sum &* 31 &+ index }
          note("errno", errno != 4_711 || sum == 1)
        } while !isFinished
      })
    // A mask of its own.
    threads.append(
      Thread { [self] in
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGUSR1)
        pthread_sigmask(SIG_SETMASK, &set, nil)
        repeat {
          var now = sigset_t()
          usleep(1_000)
          pthread_sigmask(SIG_SETMASK, nil, &now)
          note("mask", sigismember(&now, SIGUSR1) != 1 || sigismember(&now, SIGUSR2) != 0)
        } while !isFinished
      })
  }

  func finish() {
    lock.wait()
    isDone = true
    lock.signal()
    for thread in threads { thread.join() }
    typealias Control = @convention(c) (Int32, Int32, Int32) -> Int32
    if let semaphoreSet, let control = dlsym(nil, "semctl") {
      _ = unsafeBitCast(control, to: Control.self)(semaphoreSet, 0, 0)  // IPC_RMID
    }
    for (name, count) in rounds.sorted(by: { $0.key < $1.key }) {
      say("waited \(name) \(count) disturbed \(seen[name] ?? 0)")
    }
  }
}

// `unsafe`: one word, counted up by a handler.
private nonisolated(unsafe) var signalsSeen = 0

/// Waits for signals as many a service does, in a call that returns EINTR when a handler has run, while snapshots are taken
/// without a pause. Says which signal it has seen.
func waitForSignals(_ count: Int) {
  signal(SIGUSR1) { _ in signalsSeen += 1 }
  let flag = StopFlag()
  let taker = Thread {
    while !flag.isSet {
      CrashReporter.captureSnapshot()
      usleep(1_000)
    }
  }
  for number in 1...max(count, 1) {
    say("waiting \(number)")
    while signalsSeen < number {
      var entry = pollfd(fd: -1, events: 0, revents: 0)
      let result = poll(&entry, 1, -1)
      // It may end before the handler has run in another thread.
      if result >= 0 || errno != EINTR { fail("poll ended by itself") }
    }
  }
  flag.set()
  taker.join()
  say("done")
}

// `@unchecked`: the flag is reached under the semaphore only.
private final class StopFlag: @unchecked Sendable {
  private let lock = DispatchSemaphore(value: 1)
  private var flag = false
  var isSet: Bool {
    lock.wait()
    defer { lock.signal() }
    return flag
  }
  func set() {
    lock.wait()
    flag = true
    lock.signal()
  }
}

/// Threads that wait as those of a service do: in a call, some frames deep.
func measureStops(threads count: Int, count snapshots: Int) {
  var ends: [Int32] = [0, 0]
  pipe(&ends)
  let reading = ends[0]
  let threads = (0..<count).map { _ in Thread { deeper(20, reading) } }
  usleep(200_000)
  for _ in 0..<snapshots { if !CrashReporter.captureSnapshot() { say("no snapshot") } }
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
  close(ends[1])
  for thread in threads { thread.join() }
}

@inline(never) private func deeper(_ depth: Int, _ file: Int32) {
  if depth > 0 {
    deeper(depth - 1, file)
  } else {
    var byte: UInt8 = 0
    _ = read(file, &byte, 1)
  }
  _ = getppid()  // not a tail call
}

enum LoadFailure: Error { case refused(Int) }

/// All at once, so that the rate is asked for by 32 threads at the same time.
func reportFromManyThreads() {
  let gate = DispatchSemaphore(value: 0)
  let threads = (0..<32).map { number in
    Thread {
      gate.wait()
      for _ in 0..<100 { CrashReporter.capture(LoadFailure.refused(number), tags: manyTags) }
    }
  }
  for _ in threads { gate.signal() }
  for thread in threads { thread.join() }
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
}

private let manyTags = Dictionary(uniqueKeysWithValues: (100..<180).map { ("tag\($0)", "value") })

func measureCapture() {
  for number in 0..<10 {
    let before = ContinuousClock.now
    CrashReporter.capture(LoadFailure.refused(number))
    say(nanoseconds(ContinuousClock.now - before))
    usleep(50_000)
  }
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
}

func measurePing(_ count: Int) {
  let subject = PingMeasurement()
  say(subject.run(count))
}

/// What the watch does for one ping of an event loop that answers at once.
private final class PingMeasurement: Sendable {
  func run(_ count: Int) -> Int {
    let before = ContinuousClock.now
    CrashReporter.measurePings(count)
    return nanoseconds(ContinuousClock.now - before) / max(1, count)
  }
}

private func nanoseconds(_ duration: Duration) -> Int {
  Int(duration.components.seconds) * 1_000_000_000 + Int(duration.components.attoseconds / 1_000_000_000)
}
