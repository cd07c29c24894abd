import Testing

@testable import CrashModel

@Suite struct ReasonTests {
  @Test(arguments: [
    ("Index out of range", "bounds"), ("Unexpectedly found nil while unwrapping an Optional value", "nil-unwrap"),
    ("arithmetic overflow", "overflow"), ("Division by zero", "div0"), ("precondition failure", "precondition"),
    ("Not enough bits to represent the passed value", "range"), ("Range requires lowerBound <= upperBound", "range"),
    ("Negative value is not representable", "range"), ("type cast failed", "cast"),
    ("pointer 12 of 345 is odd", "trap:pointer ## of ### is odd"),
  ]) func failedChecks(_ text: String, _ expected: String) {
    #expect(Reason(runtimeFailure: text).rawValue == expected)
  }

  @Test(arguments: [
    ("Swift/ContiguousArrayBuffer.swift:692: Fatal error: Index out of range\n", "bounds"),
    ("app/main.swift:23: Fatal error: Unexpectedly found nil while unwrapping an Optional value", "nil-unwrap"),
    ("app/main.swift:3: Precondition failed: must be positive", "precondition"),
    ("app/main.swift:3: Precondition failed", "precondition"), ("app/main.swift:3: Fatal error", "fatal"),
    ("app/main.swift:3: Assertion failed: no", "assert"), ("Fatal error: cart 12 is broken", "fatal"),
    ("app/a b.swift:9: Fatal error: Duplicate values for key: 'x'", "dupkey"),
    ("Fatal error: Double value cannot be converted to Int because it is either infinite or NaN", "range"),
    ("Could not cast value of type 'a.A' (0x1) to 'a.B' (0x2).", "cast"),
    ("Fatal access conflict detected.", "exclusivity"),
    ("Fatal error: Attempted to read an unowned reference but object 0x1 was already deallocated", "unowned"),
    (
      "_Concurrency/CheckedContinuation.swift:169: Fatal error: SWIFT TASK CONTINUATION MISUSE: f() leaked",
      "continuation"
    ),
    ("Swift/ErrorType.swift:254: Fatal error: Error raised at top level: app.E()", "try"),
    ("*** stack smashing detected ***: terminated", "canary"), ("free(): double free detected in tcache 2", "heap"),
    ("corrupted size vs. prev_size", "heap"), ("app: cart.c:9: f: Assertion `x > 0' failed.", "assert"),
    ("terminate called after throwing an instance of 'std::runtime_error'", "cxx-terminate"),
    // What the program says of itself is no check of the runtime's.
    ("app/q.swift:7: Fatal error: buffer overflow in queue 3", "fatal"),
    ("app/q.swift:7: Fatal error: lookup failed: Index out of range", "fatal"),
    (
      "app/q.swift:7: Fatal error: 'try!' expression unexpectedly raised an error: app.E(why: \"index out of bounds\")",
      "try"
    ),
    ("first line of another library\napp/q.swift:7: Fatal error: Index out of range", "bounds"),
  ]) func messages(_ message: String, _ expected: String) {
    #expect(Reason(message: message)?.rawValue == expected)
  }

  @Test(arguments: ["", "overflow", "shutting down: free(): is what it called", "line\nline"])
  func otherMessages(_ message: String) { #expect(Reason(message: message) == nil) }

  private func signal(_ number: Int32, at address: UInt64? = nil) -> SignalInfo {
    SignalInfo(number: number, name: "SIG\(number)", address: address.map { Address(rawValue: $0) })
  }

  @Test(arguments: [(4, "ill"), (5, "ill"), (6, "abort"), (7, "bus"), (8, "fpe"), (11, "segv"), (31, "sys")])
  func signals(_ number: Int32, _ expected: String) {
    #expect(Reason(runtimeFailure: nil, message: nil, signal: signal(number)).rawValue == expected)
  }

  @Test(
    arguments: [
      (2001, nil, nil, true), (2000, nil, nil, false),
      // Below the stack pointer, at it, far below, above.
      (10, 0x7fff_0000_0ff8, 0x7fff_0000_1000, true), (10, 0x7fff_0000_1000, 0x7fff_0000_1000, true),
      (10, 0x7ffe_0000_0000, 0x7fff_0000_1000, false), (10, 0x7fff_0010_0000, 0x7fff_0000_1000, false),
      (10, 0, 0x100, false),
    ] as [(UInt64, UInt64?, UInt64?, Bool)])
  func stackOverflow(_ depth: UInt64, _ address: UInt64?, _ pointer: UInt64?, _ expected: Bool) {
    let reason = Reason(
      runtimeFailure: nil, message: nil, signal: signal(11, at: address), depth: depth, stackPointer: pointer)
    #expect((reason == .stackOverflow) == expected)
  }

  /// Where the runtime says nothing, the function that ended the process is the only reason.
  @Test(
    arguments: [
      (4, ["_dispatch_assert_queue_fail", "dispatch_assert_queue"], "trap:dispatch assert queue"),
      (4, ["__DISPATCH_WAIT_FOR_QUEUE__", "_dispatch_sync_f_slow"], "trap:dispatch sync on own queue"),
      (6, ["raise", "abort", "swift_task_reportUnexpectedExecutor"], "trap:incorrect actor executor assumption"),
      (6, ["gsignal", "abort", "_ZSt9terminatev"], "cxx-terminate"), (6, ["gsignal", "abort", "app_check"], "abort"),
      // A fault there is a fault.
      (11, ["dispatch_group_leave"], "segv"),
    ] as [(Int32, [String], String)])
  func endingFunctions(_ number: Int32, _ functions: [String], _ expected: String) {
    let reason = Reason(
      runtimeFailure: nil, message: nil, signal: signal(number), innermostFunctions: functions)
    #expect(reason.rawValue == expected)
  }

  @Test func theCompilersWordsComeFirst() {
    let reason = Reason(
      runtimeFailure: "Index out of range", message: "Fatal error: something else", signal: signal(4))
    #expect(reason == .bounds)
    #expect(Reason.bounds.isFault && !Reason.fatal.isFault && Reason(rawValue: "trap:x").isFault)
    #expect(Reason.heap.hasUnreliableVictim && !Reason.segmentationFault.hasUnreliableVictim)
  }
}
