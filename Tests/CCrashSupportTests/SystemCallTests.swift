import CrashModel
import Foundation
import TestSupport
import Testing

/// A system call that the crash path may make, and why.
struct AllowedCall: CustomTestStringConvertible, Sendable {
  var name: String
  var reason: String
  /// How its arguments may begin, as strace writes them; nil for any.
  var arguments: [String]?
  /// Made only where another call was refused.
  var isFallback: Bool

  var testDescription: String { name }

  init(_ name: String, _ reason: String, arguments: [String]? = nil, isFallback: Bool = false) {
    self.name = name
    self.reason = reason
    self.arguments = arguments
    self.isFallback = isFallback
  }

  // ---- The allow-list: the only place to change when the crash path learns a call ----

  private static let crashSignals = ["SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"]

  /// Of the thread that owns the crash path, from the fault to the death.
  static let ofTheCrashingThread: [AllowedCall] = [
    AllowedCall(
      "getpid", "tells a child made by vfork, which runs in its parent's memory; asked once, behind the stack"),
    AllowedCall("gettid", "the thread's id in the record"),
    AllowedCall(
      "clock_gettime", "when it happened, without the vdso, whose page may be what is broken",
      arguments: ["CLOCK_REALTIME", "CLOCK_BOOTTIME", "CLOCK_MONOTONIC"]),
    AllowedCall("rt_sigprocmask", "opens the faults of a stage, and blocks the signal that is sent again"),
    AllowedCall("timer_settime", "ends a handler that hangs"),
    AllowedCall("prctl", "the thread's name", arguments: ["PR_GET_NAME"]),
    AllowedCall("sigaltstack", "whether the handler is on it, to notice later that it was left", arguments: ["NULL"]),
    AllowedCall(
      "rt_sigaction", "gives the signal back to whom it went before us; installs the signal that stops threads",
      arguments: crashSignals + ["SIGRT_1"]),
    AllowedCall("futex", "waits for the other threads to stand still, and lets them go"),
    AllowedCall("rt_tgsigqueueinfo", "sends the signal again that was sent"),
    AllowedCall("tgkill", "stops the other threads; sends the signal again where there is no rt_tgsigqueueinfo"),
    AllowedCall("kill", "the same, where it does not tell the thread's id", isFallback: true),
    AllowedCall("exit_group", "the end, where no signal ends the process (pid 1)", isFallback: true),
    AllowedCall("rt_sigreturn", "how every handler returns"),
  ]

  /// On top of these, of a thread that crashes while another one does.
  static let ofAThreadThatCrashesToo: [AllowedCall] = [
    AllowedCall("nanosleep", "waits for the first one to end the process")
  ]

  /// Of a thread that did not crash, in a handler of ours.
  static let ofTheOtherThreads: [AllowedCall] = [
    AllowedCall("gettid", "which of the threads that were asked it is"),
    AllowedCall("prctl", "the thread's name", arguments: ["PR_GET_NAME"]),
    AllowedCall("futex", "answers, and stands still"),
    AllowedCall("rt_sigreturn", "how every handler returns"),
  ]

  func allows(_ call: SystemCallTrace.Call) -> Bool {
    guard call.name == name else { return false }
    guard let arguments else { return true }
    return arguments.contains { call.arguments.hasPrefix($0) }
  }
}

/// What strace wrote about one run, by thread.
struct SystemCallTrace {
  struct Call: Hashable, CustomStringConvertible {
    var name: String
    var arguments: String
    var description: String { "\(name)(\(arguments)" }
  }

  /// All calls of the run before the first crash.
  var before: [Call] = []
  /// Calls in handlers, of threads that got a signal of a crash, since their first one.
  var crashing: [String: [Call]] = [:]
  /// Calls in handlers of all other threads, since the first crash.
  var others: [Call] = []

  private static let signals: Set = ["SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"]

  init(_ text: String) {
    var depth: [String: Int] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
      guard parts.count == 2 else { continue }
      let thread = String(parts[0])
      let event = parts[1].drop { $0 == " " }
      if event.hasPrefix("--- ") {
        let signal = event.dropFirst(4).prefix { $0 != " " }
        depth[thread, default: 0] += 1
        if Self.signals.contains(String(signal)), crashing[thread] == nil { crashing[thread] = [] }
        continue
      }
      guard !event.hasPrefix("+++"), !event.hasPrefix("<..."), let open = event.firstIndex(of: "(") else { continue }
      let call = Call(name: String(event[..<open]), arguments: String(event[event.index(after: open)...]))
      let inHandler = depth[thread, default: 0] > 0
      if call.name == "rt_sigreturn" { depth[thread, default: 1] -= 1 }
      if crashing.isEmpty {
        before.append(call)
      } else if crashing[thread] != nil {
        // Outside of handlers too: after a signal of a crash that ends the process nothing else may happen.
        crashing[thread]?.append(call)
      } else if inHandler {
        others.append(call)
      }
    }
  }
}

/// From the fault to the death the process makes the system calls of a list, and no others; and each of them may fail.
@Suite struct SystemCallTests {
  static let strace: Bool = {
    let outcome = try? ChildProcess(["/usr/bin/env", "strace", "-f", "-o", "/dev/null", "/bin/true"]).run()
    return outcome?.status == .exited(0)
  }()

  private func trace(_ program: String, _ fault: String, in run: TemporaryDirectory) throws -> SystemCallTrace {
    let host = try FaultHost.shared.get()
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    var child = ChildProcess(
      ["/usr/bin/env", "strace", "-f", "-e", "trace=all", "-o", "\(run.path)/trace", program, fault],
      directory: run.path)
    child.environment = [
      "FX_DB": "\(run.path)/spool", "FX_LIB": host.library, "SWIFT_BACKTRACE": "enable=no",
    ]
    let outcome = try child.run()
    guard case .signaled = outcome.status else {
      Issue.record("\(fault): \(outcome.status) \(outcome.errorText)")
      return SystemCallTrace("")
    }
    return SystemCallTrace(String(decoding: try #require(contents(of: "\(run.path)/trace")), as: UTF8.self))
  }

  static let traced: [(String, Bool)] =
    [
      "null_main", "abort_main", "so_main", "so_thread", "pc_wild", "heap_top", "heap_segv", "kill_segv", "two_crash",
      "dlopened", "threads500", "atexit_abort", "smashed", "jit", "host_int3", "host_seccomp_trap",
    ].map { ($0, false) } + [("sw_fatal", true), ("sw_task_so", true)]

  @Test(.enabled(if: strace, "strace does not run here"), arguments: traced)
  func onlyAllowedCalls(fault: String, swift: Bool) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("trace")
    let trace = try trace(swift ? host.swift(optimized: true) : host.c, fault, in: run)
    #expect(!trace.crashing.isEmpty)
    let several = trace.crashing.count > 1
    let allowed = AllowedCall.ofTheCrashingThread + (several ? AllowedCall.ofAThreadThatCrashesToo : [])
    // Not by each: one that crashes second spins without a call until the first has sealed, and may die meanwhile.
    #expect(trace.crashing.values.contains { $0.contains { $0.name == "getpid" } })
    for (thread, calls) in trace.crashing {
      // The call that is the fault itself is made again behind the handler.
      for call in calls where call.name != "getppid" && !allowed.contains(where: { $0.allows(call) }) {
        Issue.record("\(fault): thread \(thread), which crashed, called \(call)")
      }
    }
    for call in Set(trace.others) where !AllowedCall.ofTheOtherThreads.contains(where: { $0.allows(call) }) {
      Issue.record("\(fault): a thread that did not crash called \(call)")
    }
    #expect(try #require(try CapturedRecord(in: run)).record.isComplete)
  }

  /// A call that no fault makes has no business in the list.
  @Test(.enabled(if: strace, "strace does not run here")) func everyAllowedCallIsMade() throws {
    let host = try FaultHost.shared.get()
    var made: Set<String> = []
    for fault in ["null_main", "abort_main", "two_crash"] {
      let trace = try trace(host.c, fault, in: TemporaryDirectory("trace"))
      for calls in trace.crashing.values { made.formUnion(calls.map(\.name)) }
    }
    let expected = AllowedCall.ofTheCrashingThread.filter { !$0.isFallback }.map(\.name)
    #expect(Set(expected).subtracting(made).isEmpty)
  }

  /// The start makes one file, in its own folder, no process and no shared memory, and keeps no descriptor.
  @Test(.enabled(if: strace, "strace does not run here")) func theStartLeavesNothingElse() throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("trace")
    let calls = try trace(host.c, "null_main", in: run).before
    #expect(calls.contains { $0.name == "timer_create" })
    let forbidden: Set = [
      "clone", "clone3", "fork", "vfork", "memfd_create", "socket", "pipe", "pipe2", "eventfd2", "timerfd_create",
      "shmget", "epoll_create1", "inotify_init1", "symlink", "link", "mkdir", "creat", "perf_event_open",
    ]
    for call in calls where forbidden.contains(call.name) { Issue.record("\(call)") }
    let created = calls.filter { $0.name.hasPrefix("open") && $0.arguments.contains("O_CREAT") }
    #expect(created.count == 1)
    #expect(created.allSatisfy { $0.arguments.contains(".crashrecord\"") && $0.arguments.contains("O_EXCL") })
    let opened = calls.filter { $0.name.hasPrefix("open") && !$0.arguments.contains("= -1") }.count
    #expect(opened == calls.filter { $0.name == "close" }.count, "every descriptor is closed again")
    #expect(run.names(in: "spool").count == 1)
  }

  // ---- Sandboxes ------------------------------------------------------------------------------------------------

  /// Calls that cannot be refused on their own, and why.
  static let notRefused = ["rt_sigreturn": "it is libc's, and no handler of any program returns without it"]

  static let refused =
    (AllowedCall.ofTheCrashingThread + AllowedCall.ofAThreadThatCrashesToo + AllowedCall.ofTheOtherThreads)
    .filter { notRefused[$0.name] == nil }

  /// How each fault ends.
  static let faults: [(String, Int32)] = [
    ("null_main", SIGSEGV), ("abort_main", SIGABRT), ("kill_segv", SIGSEGV), ("two_crash", SIGSEGV),
    ("host_int3", SIGTRAP), ("host_mask", SIGSEGV),
  ]

  private func run(_ action: String, _ call: String, _ fault: String) throws -> (ChildProcess.Outcome, CapturedRecord) {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("sandbox")
    #expect(mkdir("\(run.path)/spool", 0o700) == 0)
    let name = action.isEmpty ? fault : "sandbox:\(action):\(call):\(fault)"
    let outcome = try ChildProcess([host.c, name], environment: ["FX_DB": "\(run.path)/spool"]).run()
    return (outcome, try #require(try CapturedRecord(in: run)))
  }

  /// A refused call costs at most what it would have told, and never the death.
  @Test(arguments: refused, ["EPERM", "ENOSYS"]) func refusedCall(call: AllowedCall, action: String) throws {
    for (fault, signal) in Self.faults {
      let (_, whole) = try run("", "", fault)
      let (outcome, captured) = try run(action, call.name, fault)
      // What was sent cannot be sent again with an action that cannot be changed: as for pid 1, the exit status tells.
      let isSent = fault == "abort_main" || fault == "kill_segv"
      let expected: ChildProcess.Status =
        call.name == "rt_sigaction" && isSent ? .exited(128 + signal) : .signaled(signal)
      #expect(outcome.status == expected, "\(fault)")
      #expect(captured.record.isComplete, "\(fault)")
      #expect(captured.report.signal?.number == signal)
      #expect(captured.addresses.count == whole.addresses.count, "\(fault)")
      let thread = try #require(captured.report.crashedThread)
      #expect(thread.status == whole.report.crashedThread?.status)
      #expect((thread.id == nil) == (call.name == "gettid"), "an id that is not known is none")
      #expect((thread.name == nil) == (call.name == "prctl"))
      if call.name == "clock_gettime" { #expect(captured.record.crashTime == nil) }
    }
  }

  /// A sandbox that kills: signal, registers and the whole stack are on the disk before the first call.
  @Test(arguments: refused) func killedByCall(call: AllowedCall) throws {
    var killed = 0
    var stored = 0
    // Who comes second, and whether he has to wait, is up to the scheduler.
    let isRace = AllowedCall.ofAThreadThatCrashesToo.contains { $0.name == call.name }
    for (fault, signal) in Self.faults + (isRace ? Array(repeating: ("eight_crash", SIGSEGV), count: 20) : []) {
      let (_, whole) = try run("", "", fault)
      let (outcome, captured) = try run("KILL", call.name, fault)
      guard outcome.status == .signaled(SIGSYS) else {
        #expect(outcome.status == .signaled(signal), "\(fault)")
        #expect(captured.record.isComplete, "\(fault)")
        continue
      }
      killed += 1
      // Where two threads crash, the second waits before its first call until the first has stored its stack, but not for
      // ever: on a busy machine it may be killed while the first one has stored nothing yet, or is in the middle of its walk.
      if fault == "two_crash" || fault == "eight_crash", !captured.record.hasCrash { continue }
      stored += 1
      #expect(captured.record.hasCrash, "\(fault)")
      #expect(captured.report.signal?.number == signal, "\(fault)")
      let thread = try #require(captured.report.crashedThread, "\(fault)")
      #expect(thread.registers.count == 18, "\(fault)")
      if fault == "two_crash" || fault == "eight_crash", thread.status != .captured { continue }
      #expect(thread.status == .captured, "\(fault)")
      #expect(captured.addresses.count == whole.addresses.count, "\(fault)")
      #expect(thread.frames.compactMap(\.captured).allSatisfy { $0.imageIndex != nil }, "\(fault)")
    }
    #expect(killed > 0 || call.isFallback, "none of the faults makes the call")
    #expect(stored > 0 || call.isFallback)
  }
}
