import CrashReporting
import Dispatch
import Glibc

private let hangTime: UInt32 = 4_000_000

@inline(never) func blockedByLock(_ microseconds: UInt32) { usleep(microseconds) }

@inline(never) func runsInCircles(until end: ContinuousClock.Instant) -> Int {
  var (sum, steps) = (0, 0)
  // The clock seldom: reading it calls functions of the runtime that have no unwind information, and a look at such a one,
  // in front of its first instruction, misses its caller.
  repeat {
    steps &+= 1
    sum = oneStep(sum)
  } while steps & 1_023 != 0 || ContinuousClock.now < end
  return sum
}

@inline(never) private func oneStep(_ sum: Int) -> Int { sum &* 31 &+ 7 }

actor Till {
  func answer(_ answer: @Sendable () -> Void) { answer() }
  func settle() { blockedByLock(hangTime) }
  func count() { say("counted \(runsInCircles(until: .now.advanced(by: .microseconds(hangTime))) != 1)") }
}

@inline(never) private func first(_ one: DispatchQueue, _ other: DispatchQueue, _ ready: DispatchSemaphore) {
  one.async {
    ready.signal()
    usleep(100_000)
    waitsForOther(other)
  }
}

@inline(never) func waitsForOther(_ other: DispatchQueue) { other.sync {} }

/// Watches, hangs that way, and goes on.
func hang(_ how: String, limit: Duration) {
  let interval = limit / 8
  switch how {
  case "main_queue":
    CrashReporter.watch(name: "main queue", interval: interval, limit: limit) { answer in
      DispatchQueue.main.async(execute: answer)
    }
    DispatchQueue.main.asyncAfter(deadline: .now() + .milliseconds(300)) { blockedByLock(hangTime) }
    finish(after: 2 * hangTime)
    dispatchMain()
  case "main_thread":
    // An event loop of the service's own.
    let loop = EventLoop()
    CrashReporter.watch(name: "main loop", interval: interval, limit: limit) { loop.add($0) }
    loop.add { loop.run(microseconds: 500_000) }
    loop.run(microseconds: 500_000)
    blockedByLock(hangTime)
    loop.run(microseconds: 1_000_000)
    done()
  case "queue":
    let queue = DispatchQueue(label: "orders")
    CrashReporter.watch(name: "orders", interval: interval, limit: limit) { queue.async(execute: $0) }
    queue.asyncAfter(deadline: .now() + .milliseconds(300)) { blockedByLock(hangTime) }
    usleep(2 * hangTime)
    done()
  case "deadlock":
    let one = DispatchQueue(label: "one")
    let other = DispatchQueue(label: "other")
    CrashReporter.watch(name: "one", interval: interval, limit: limit) { one.async(execute: $0) }
    usleep(300_000)
    let ready = DispatchSemaphore(value: 0)
    first(one, other, ready)
    first(other, one, ready)
    ready.wait()
    ready.wait()
    usleep(2 * hangTime)
    done()
  case "actor", "loop":
    let till = Till()
    CrashReporter.watch(name: "till", interval: interval, limit: limit) { answer in Task { await till.answer(answer) } }
    usleep(300_000)
    Task { if how == "actor" { await till.settle() } else { await till.count() } }
    usleep(2 * hangTime)
    done()
  case "pool":
    CrashReporter.watchCooperativePool(interval: interval, limit: limit)
    usleep(300_000)
    for _ in 0..<256 { Task.detached { blockedByLock(hangTime) } }
    usleep(hangTime + hangTime / 2)
    done()
  case "healthy":
    // More threads that run in circles than there are processors, and everything answers.
    let answers = Answers(Int(argument(5)) ?? 500)
    let queue = DispatchQueue(label: "busy")
    CrashReporter.watch(name: "busy queue", interval: .milliseconds(10), limit: limit) { answer in
      queue.async {
        answer()
        answers.count()
      }
    }
    CrashReporter.watch(name: "cooperative pool", interval: .milliseconds(10), limit: limit) { answer in
      Task.detached {
        answer()
        answers.count()
      }
    }
    for _ in 0..<4 {
      _ = Thread { while !answers.areAll { _ = runsInCircles(until: .now.advanced(by: .milliseconds(10))) } }
    }
    while !answers.areAll { usleep(100_000) }
    say("\(answers.sum) pings were answered")
    done()
  default: fail("no such hang: \(how)")
  }
}

private func finish(after microseconds: UInt32) {
  _ = Thread {
    usleep(microseconds)
    done()
  }
}

private func done() {
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
  say("done")
  exit(0)
}

/// Counts the answers of watches.
// `@unchecked`: the number is reached under the semaphore only.
private final class Answers: @unchecked Sendable {
  private let lock = DispatchSemaphore(value: 1)
  private let wanted: Int
  private(set) var sum = 0

  init(_ wanted: Int) { self.wanted = wanted }

  func count() {
    lock.wait()
    sum += 1
    lock.signal()
  }

  var areAll: Bool {
    lock.wait()
    defer { lock.signal() }
    return sum >= wanted
  }
}

/// A thread that does one thing and ends.
final class Thread: Sendable {
  private let body: @Sendable () -> Void
  nonisolated(unsafe) private var thread = pthread_t()

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Thread>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
  }

  func join() { pthread_join(thread, nil) }
}

/// Runs what it is given on the thread that it is called on.
// `@unchecked`: the array is reached under the lock only.
final class EventLoop: @unchecked Sendable {
  private let lock = DispatchSemaphore(value: 1)
  private var waiting: [@Sendable () -> Void] = []

  func add(_ work: @escaping @Sendable () -> Void) {
    lock.wait()
    waiting.append(work)
    lock.signal()
  }

  func run(microseconds: Int) {
    let end = ContinuousClock.now.advanced(by: .microseconds(microseconds))
    while ContinuousClock.now < end {
      lock.wait()
      let work = waiting
      waiting = []
      lock.signal()
      for work in work { work() }
      usleep(1_000)
    }
  }
}
