import CrashReporting
import Dispatch
import Glibc

// A service that ends, hangs or is looked at in one of many ways, in a process of its own.
//
// `EndingRunner end HOW DIR`: starts, says `ready PID`, and ends that way.
// `EndingRunner hang HOW DIR LIMIT`: starts, watches, hangs that way for a while, and ends in good order. LIMIT in ms.
// `EndingRunner hang healthy DIR LIMIT PINGS`: the same without a hang, until so many pings were answered.
// `EndingRunner snapshot DIR COUNT`: has threads that wait in every call that a signal interrupts, takes so many snapshots
// by itself, and says what the threads saw of it.
// `EndingRunner quit DIR`: the same, and the snapshots are asked for by SIGQUIT until standard input ends.
// `EndingRunner signals DIR COUNT`: its main thread waits for so many SIGUSR1 while snapshots are taken.
// `EndingRunner stopped DIR THREADS COUNT`: how long threads that wait stood still, in nanoseconds.
// `EndingRunner errors DIR`: 32 threads report errors, all at once.
// `EndingRunner error HOW DIR`: reports one error and exits (`exit`) or is killed (`kill`) right behind it.
// `EndingRunner previous DIR`: starts and says how the runs before ended.
// `EndingRunner ping COUNT`: what a ping and its answer cost, in nanoseconds.
// `EndingRunner capture DIR`: what reporting an error costs, in nanoseconds.
let arguments = CommandLine.arguments

@Sendable func say(_ message: some CustomStringConvertible) {
  let bytes = Array((message.description + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}

func fail(_ message: String) -> Never {
  say(message)
  exit(1)
}

func argument(_ index: Int) -> String { index < arguments.count ? arguments[index] : "" }

func start(_ directory: String, _ change: (inout CrashReporter.Configuration) -> Void = { _ in }) {
  var configuration = CrashReporter.Configuration(service: "ending", directory: directory)
  configuration.release = "1.0.0"
  configuration.diagnostics = { say($0) }
  change(&configuration)
  do { try CrashReporter.start(configuration) } catch { fail("\(error)") }
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not done in time") }
}

switch argument(1) {
case "end":
  start(argument(3))
  CrashReporter.addBreadcrumb("about to end", category: "test")
  end(argument(2))
case "hang":
  start(argument(3))
  hang(argument(2), limit: .milliseconds(Int(argument(4)) ?? 400))
case "snapshot":
  start(argument(2))
  let waiters = Waiters()
  for _ in 0..<(Int(argument(3)) ?? 1) {
    // Refused where ten wait to become reports.
    if !CrashReporter.captureSnapshot() {
      if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
      if !CrashReporter.captureSnapshot() { say("no snapshot") }
    }
    usleep(2_000)
  }
  waiters.finish()
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
case "quit":
  start(argument(2)) { $0.snapshotsOnQuit = true }
  let waiters = Waiters()
  say("ready \(getpid())")
  _ = readLine()
  waiters.finish()
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
case "signals":
  start(argument(2)) { $0.diagnostics = { _ in } }
  waitForSignals(Int(argument(3)) ?? 1)
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
case "stopped":
  start(argument(2))
  measureStops(threads: Int(argument(3)) ?? 64, count: Int(argument(4)) ?? 20)
case "errors":
  start(argument(2))
  reportFromManyThreads()
case "error":
  start(argument(3))
  CrashReporter.capture(LoadFailure.refused(1))
  if argument(2) == "kill" { kill(getpid(), SIGKILL) }
  exit(0)
case "previous":
  var configuration = CrashReporter.Configuration(service: "ending", directory: argument(2))
  configuration.diagnostics = { _ in }
  do { try CrashReporter.start(configuration) } catch { fail("\(error)") }
  let previous = CrashReporter.previousRuns(timeout: .seconds(60))
  say("complete \(previous.isComplete) in a row \(previous.sameCrashesInARow)")
  for run in previous.runs { say("\(run.ending) \(run.signal ?? "-") \(run.release ?? "-")") }
case "ping": measurePing(Int(argument(2)) ?? 100_000)
case "capture":
  start(argument(2))
  measureCapture()
default: fail("usage: EndingRunner end|hang|snapshot|quit|signals|stopped|errors|error|previous|ping|capture …")
}
