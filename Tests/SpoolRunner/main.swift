import CrashModel
import CrashReporting
import Glibc

// What a daemon does with the library, in a process of its own that tests may kill.
//
// `SpoolRunner process DIR [reports]`: works through the records of earlier runs, keeping so many reports.
// `SpoolRunner poison DIR`: starts for real, and dies where a record says `poisoned`.
// `SpoolRunner start DIR SIGNAL`: starts for real, twice, sets scope from 32 threads, then dies by the signal.
// `SpoolRunner verify DIR`: looks whether capture works, before the start, behind it, and with another handler in front;
// then crashes in a task with a task local.
// `SpoolRunner errors DIR COUNT`: reports so many handled errors.
// `SpoolRunner time DIR`: how many nanoseconds the start takes on the calling thread.
// `SpoolRunner lock FILE`: holds a record's lock, as a living run does, until standard input ends.
let arguments = CommandLine.arguments

/// At once: what standard output buffers is lost in a crash.
@Sendable func say(_ message: some CustomStringConvertible) {
  let bytes = Array((message.description + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}

func fail(_ message: String) -> Never {
  say(message)
  exit(1)
}

switch arguments.count > 2 ? arguments[1] : "" {
case "process":
  var limits = SpoolLimits()
  if arguments.count > 3, let reports = Int(arguments[3]) { limits.reports = reports }
  do {
    NextStart.run(spool: try Spool(path: arguments[2]), limits: limits) { say($0) }
  } catch { fail("\(error)") }
case "poison":
  var configuration = CrashReporter.Configuration(service: "runner", directory: arguments[2])
  configuration.diagnostics = { say($0) }
  configuration.redactor = Redactor(additionalRules: [
    { text in
      if String(decoding: text, as: UTF8.self).contains("poisoned") { abort() }
      return []
    }
  ])
  do { try CrashReporter.start(configuration) } catch { fail("\(error)") }
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not done in time") }
case "start":
  CrashReporter.addBreadcrumb("before the start", category: "early")
  var configuration = CrashReporter.Configuration(service: "runner", directory: arguments[2])
  configuration.release = "1.0.0"
  configuration.diagnostics = { say($0) }
  do {
    try CrashReporter.start(configuration)
    try CrashReporter.start(configuration)
  } catch { fail("\(error)") }
  say("run \(CrashReporter.runID ?? "none")")
  setFromManyThreads()
  CrashReporter.setUser(id: "usr_7c1e")
  CrashReporter.setUser(id: "someone" + "@" + "example.com")
  CrashReporter.setOperation("POST /checkout")
  CrashReporter.setTag("region", "eu-west")
  CrashReporter.addBreadcrumb("the last one", category: "db")
  if let signal = arguments.count > 3 ? Int32(arguments[3]) : nil { raise(signal) }
case "verify":
  say("before \(CrashReporter.verify())")
  do {
    try CrashReporter.start(CrashReporter.Configuration(service: "runner", directory: arguments[2]))
  } catch { fail("\(error)") }
  say("started \(CrashReporter.verify().isIntact)")
  signal(SIGBUS) { _ in }
  say("replaced \(CrashReporter.verify().replacedSignals)")
  say("included \(CrashReporter.includeTaskLocal("request_id", RequestScope.$id))")
  say("included \(CrashReporter.includeTaskLocal(String(repeating: "n", count: 61), RequestScope.$id))")
  Task.detached(name: "nightly") {
    RequestScope.$id.withValue("9f2c") { _ = raise(SIGSEGV) }
  }
  while true { pause() }
case "errors":
  var configuration = CrashReporter.Configuration(service: "runner", directory: arguments[2])
  configuration.diagnostics = { say($0) }
  CrashReporter.capture(SyncFailure.refused(by: "nobody"))  // before the start: dropped, and said
  do { try CrashReporter.start(configuration) } catch { fail("\(error)") }
  CrashReporter.setTag("region", "eu-west")
  let count = arguments.count > 3 ? Int(arguments[3]) ?? 1 : 1
  for _ in 0..<count { synchronize() }
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not stored in time") }
case "time":
  var before = timespec()
  var behind = timespec()
  let configuration = CrashReporter.Configuration(service: "runner", directory: arguments[2])
  clock_gettime(CLOCK_MONOTONIC, &before)
  do { try CrashReporter.start(configuration) } catch { fail("\(error)") }
  clock_gettime(CLOCK_MONOTONIC, &behind)
  say((behind.tv_sec - before.tv_sec) * 1_000_000_000 + behind.tv_nsec - before.tv_nsec)
  if !CrashReporter.flush(timeout: .seconds(60)) { fail("not done in time") }
case "lock":
  let file = open(arguments[2], O_RDWR)
  guard file >= 0, flock(file, LOCK_EX) == 0 else { fail("no lock") }
  say("locked")
  _ = readLine()
default: fail("usage: SpoolRunner process|poison|start|verify|errors|time|lock PATH")
}

enum RequestScope {
  @TaskLocal static var id: String?
}

enum SyncFailure: Error {
  case refused(by: String)
}

@inline(never) func synchronize() {
  CrashReporter.capture(SyncFailure.refused(by: "someone" + "@" + "example.com"), tags: ["job": "sync"])
  say("captured")
}

/// Every setter from 32 threads at once.
func setFromManyThreads() {
  let threads = (0..<32).map { number -> pthread_t in
    var thread = pthread_t()
    let argument = UnsafeMutableRawPointer(bitPattern: number + 1)
    pthread_create(
      &thread, nil,
      { argument in
        let number = Int(bitPattern: argument)
        for round in 0..<200 {
          CrashReporter.setTag("thread\(number % 8)", "\(round)")
          CrashReporter.setTag("gone\(number)", round.isMultiple(of: 2) ? "there" : nil)
          CrashReporter.setOperation("job \(number)")
          CrashReporter.setUser(id: "u\(number)")
          CrashReporter.addBreadcrumb("step \(round) of \(number)", category: "work")
        }
        return nil
      }, argument)
    return thread
  }
  for thread in threads { pthread_join(thread, nil) }
}
