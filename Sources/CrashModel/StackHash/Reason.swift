/// What went wrong: one of a closed list (`docs/stack-hash.md`), or `trap:<text>` for a check of the runtime that the list
/// does not know.
///
/// Part of the stack hash, so that the same function failing in two ways makes two groups. Message texts are not: they
/// hold values.
public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public var rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public var description: String { rawValue }

  public static let nilUnwrap = Reason(rawValue: "nil-unwrap")
  public static let bounds = Reason(rawValue: "bounds")
  public static let overflow = Reason(rawValue: "overflow")
  public static let divisionByZero = Reason(rawValue: "div0")
  public static let range = Reason(rawValue: "range")
  public static let cast = Reason(rawValue: "cast")
  public static let forcedTry = Reason(rawValue: "try")
  public static let duplicateKey = Reason(rawValue: "dupkey")
  public static let exclusivity = Reason(rawValue: "exclusivity")
  public static let unowned = Reason(rawValue: "unowned")
  public static let continuation = Reason(rawValue: "continuation")
  public static let precondition = Reason(rawValue: "precondition")
  public static let fatal = Reason(rawValue: "fatal")
  public static let assertion = Reason(rawValue: "assert")
  public static let cxxTerminate = Reason(rawValue: "cxx-terminate")
  public static let heap = Reason(rawValue: "heap")
  public static let canary = Reason(rawValue: "canary")
  public static let segmentationFault = Reason(rawValue: "segv")
  public static let busError = Reason(rawValue: "bus")
  public static let arithmeticSignal = Reason(rawValue: "fpe")
  public static let illegalInstruction = Reason(rawValue: "ill")
  public static let badSystemCall = Reason(rawValue: "sys")
  public static let abort = Reason(rawValue: "abort")
  public static let hang = Reason(rawValue: "hang")
  public static let stackOverflow = Reason(rawValue: "stack-overflow")

  /// A failed check whose text is not in the list. Digits become `#`, as they are values.
  static func trap(_ text: String) -> Reason {
    // Bounded: it comes from a file, and goes into titles and keys.
    let bytes = text.utf8.prefix(81)
    if bytes.count <= 80, bytes.allSatisfy({ 0x20...0x7E ~= $0 }) {
      // What the runtimes say themselves; with characters, the list below would take longer than a report.
      return Reason(
        rawValue: "trap:"
          + String(decoding: bytes.map { Byte.isDigit($0) ? UInt8(ascii: "#") : $0 }, as: UTF8.self))
    }
    return Reason(rawValue: "trap:" + String(text.prefix(80).map { $0.isNumber ? "#" : $0.isASCII ? $0 : "?" }))
  }

  /// An error that the program handled and reported; its type takes the place that the failed check has for a crash.
  static func handledError(_ type: String?) -> Reason { Reason(rawValue: "error:" + (type ?? "unknown")) }

  /// A run that ended without a crash: by what, and the signal where one is known.
  static func ended(_ ending: Ending?, signal: String?) -> Reason {
    Reason(rawValue: "ended:" + (signal ?? ending?.kind.rawValue ?? Ending.Kind.unknown.rawValue))
  }

  public static let snapshot = Reason(rawValue: "snapshot")

  /// Whether the code that failed did something impossible (an index, an address), as opposed to a promise that its
  /// caller broke or a decision to stop. For a fault the failing function is to blame wherever it lives; for a broken
  /// contract a library passes the blame to whoever called it.
  public var isFault: Bool {
    switch self {
    case .nilUnwrap, .bounds, .overflow, .divisionByZero, .range, .cast, .exclusivity, .unowned, .duplicateKey,
      .forcedTry, .segmentationFault, .busError, .arithmeticSignal, .illegalInstruction, .badSystemCall, .heap, .canary,
      .stackOverflow:
      true
    case .precondition, .fatal, .assertion, .abort, .cxxTerminate, .continuation, .hang: false
    default: rawValue.hasPrefix("trap:")
    }
  }

  /// Whether the line at which the blamed function failed says something about the bug: memory that was damaged earlier is
  /// noticed anywhere, a hang is sampled anywhere, and a stack overflows wherever it ends.
  var hasSites: Bool { self != .heap && self != .canary && self != .hang && self != .stackOverflow }

  /// The frames that crash are not the ones that did the damage.
  public var hasUnreliableVictim: Bool { self == .heap || self == .canary }
}

extension Reason {
  /// The text of the compiler's `Swift runtime failure: …` pseudo-function.
  ///
  /// ```swift
  /// Reason(runtimeFailure: "Index out of range")  // .bounds
  /// ```
  public init(runtimeFailure text: String) {
    // The compiler's texts hold nothing of the program's, so that the place of the words in them does not matter.
    self = Self.known(text) ?? Self.failures.first { text.utf8Contains($0.0) }?.1 ?? .trap(text)
  }

  static let failures: [(String, Reason)] = [
    ("overflow", .overflow), ("out of bounds", .bounds), ("cast failed", .cast), ("Could not cast value", .cast),
    ("precondition failure", .precondition),
  ]

  /// What the standard library's and the compiler's texts begin with. A message that begins in another way is the
  /// program's own, whatever words are in it.
  static let openings: [(String, Reason)] = [
    ("Unexpectedly found nil", .nilUnwrap), ("unsafelyUnwrapped", .nilUnwrap),
    ("Index out of range", .bounds), ("Index out of bounds", .bounds), ("index out of bounds", .bounds),
    ("Array index is out of range", .bounds), ("Array index out of range", .bounds), ("Negative Array index", .bounds),
    ("String index is out of bounds", .bounds), ("Substring index is out of bounds", .bounds),
    ("String index range is out of bounds", .bounds), ("Range out of bounds", .bounds),
    ("Array replace: subrange", .bounds), ("Can't remove ", .bounds), ("Can't advance past endIndex", .bounds),
    ("Can't form Range", .range), ("Range requires", .range), ("Range with", .range),
    ("ClosedRange requires", .range), ("Not enough bits to represent", .range),
    ("Negative value is not representable", .range), ("Can't construct Array with count < 0", .range),
    ("Division by zero", .divisionByZero), ("Division with remainder by zero", .divisionByZero),
    ("arithmetic overflow", .overflow), ("Division results in overflow", .overflow),
    ("Division with remainder", .divisionByZero), ("Could not cast value", .cast), ("cast failed", .cast),
    ("precondition failure", .precondition), ("Duplicate values for key", .duplicateKey),
    ("Duplicate elements of type", .duplicateKey), ("Dictionary literal contains duplicate keys", .duplicateKey),
    ("SWIFT TASK CONTINUATION MISUSE", .continuation), ("Error raised at top level", .forcedTry),
    ("'try!' expression unexpectedly raised an error", .forcedTry), ("Simultaneous accesses", .exclusivity),
    ("Fatal access conflict detected", .exclusivity), ("Attempted to read an unowned reference", .unowned),
  ]

  private static func known(_ text: String) -> Reason? {
    if let found = openings.first(where: { text.hasPrefix($0.0) }) { return found.1 }
    // `Double value cannot be converted to Int because …`
    if ["Double value ", "Float value ", "Float16 value ", "Float80 value "].contains(where: { text.hasPrefix($0) }),
      text.utf8Contains("cannot be converted to")
    {
      return .range
    }
    return nil
  }

  /// glibc's and the C++ runtime's words, at the start of their line.
  static let systemOpenings: [(String, Reason)] = [
    ("*** stack smashing detected", .canary), ("stack smashing detected", .canary),
    ("*** buffer overflow detected", .canary), ("buffer overflow detected", .canary),
    ("free(): ", .heap), ("malloc(): ", .heap), ("realloc(): ", .heap), ("calloc(): ", .heap),
    ("malloc_consolidate(): ", .heap), ("munmap_chunk(): ", .heap), ("mremap_chunk(): ", .heap),
    ("corrupted ", .heap), ("tcache_", .heap), ("double free", .heap), ("break adjusted to free malloc space", .heap),
    ("sysmalloc: ", .heap), ("terminate called", .cxxTerminate), ("libc++abi: terminating", .cxxTerminate),
    ("freed pointer was not the last allocation", .trap("freed pointer was not the last allocation")),
    ("Incorrect actor executor assumption", .trap("incorrect actor executor assumption")),
  ]

  /// From the message of the Swift runtime, glibc or the C++ runtime; nil where it is none of theirs.
  ///
  /// Only the beginnings of lines are looked at, behind `file:line: `: what follows is the program's own, and an error
  /// that says `index out of bounds` in its description is still an error that `try!` met.
  ///
  /// ```swift
  /// Reason(message: "app/Cart.swift:12: Fatal error: cart overflow")  // .fatal
  /// ```
  public init?(message: String) {
    for line in message.split(separator: "\n").prefix(8) {
      if let reason = Self.reason(line: line) {
        self = reason
        return
      }
    }
    return nil
  }

  private static func reason(line: Substring) -> Reason? {
    let text = withoutLocation(line)
    for (head, plain) in [
      ("Fatal error", Reason.fatal), ("Precondition failed", .precondition),
      ("Assertion failed", .assertion),
    ]
    where text.hasPrefix(head) {
      let rest = text.dropFirst(head.count)
      guard rest.hasPrefix(": ") else { return plain }
      // A failed precondition of the program's own, in whatever words, is one; those of the standard library are not
      // told apart from it by their head.
      return known(String(rest.dropFirst(2))) ?? plain
    }
    if let reason = known(String(text)) { return reason }
    if let found = systemOpenings.first(where: { text.hasPrefix($0.0) }) { return found.1 }
    // `program: file.c:12: function: Assertion `x > 0' failed.`
    return String(line).utf8Contains(": Assertion `") ? .assertion : nil
  }

  // `module/File.swift:12: ` in front of the text of a failed check.
  private static func withoutLocation(_ line: Substring) -> Substring {
    let bytes = line.utf8
    var index = bytes.startIndex
    while let colon = bytes[index...].firstIndex(of: UInt8(ascii: ":")) {
      let number = bytes.index(after: colon)
      let end = bytes[number...].firstIndex { !Byte.isDigit($0) } ?? bytes.endIndex
      if end > number, bytes[end...].starts(with: ": ".utf8) {
        return line[bytes.index(end, offsetBy: 2)...]
      }
      // A space ends what may be a path, but for paths with spaces in them before a line number.
      index = number
      guard bytes.distance(from: bytes.startIndex, to: index) < 512 else { break }
    }
    return line
  }

  /// From the functions of the runtimes that end a process without a word, or whose words reach no buffer.
  ///
  /// - Parameter functions: linker names, innermost first.
  init?(endingFunctions functions: some Sequence<String>) {
    for var function in functions {
      let found = function.withUTF8 { name in
        let start = CanonicalName.internalAliasLength(name.span)
        return Self.endings.first { name.span.has($0.0, at: start) }
      }
      if let found {
        self = found.1
        return
      }
    }
    return nil
  }

  static let endings: [(StaticString, Reason)] = [
    ("_dispatch_assert_queue_fail", .trap("dispatch assert queue")),
    ("dispatch_assert_queue", .trap("dispatch assert queue")),
    ("__DISPATCH_WAIT_FOR_QUEUE__", .trap("dispatch sync on own queue")),
    ("dispatch_group_leave", .trap("dispatch group unbalanced leave")),
    ("_dispatch_group_dispose", .trap("dispatch group disposed in use")),
    ("_dispatch_semaphore_dispose", .trap("dispatch semaphore disposed in use")),
    ("_dispatch_queue_xref_dispose", .trap("dispatch object released while suspended")),
    ("_dispatch_lane_resume", .trap("dispatch over-resume")),
    ("swift_task_reportUnexpectedExecutor", .trap("incorrect actor executor assumption")),
    ("_swift_task_checkIsolatedSwift", .trap("incorrect actor executor assumption")),
    ("swift_task_checkIsolated", .trap("incorrect actor executor assumption")),
    ("swift_task_dealloc", .trap("freed pointer was not the last allocation")),
    ("swift_abortRetainUnowned", .unowned), ("swift_dynamicCastFailure", .cast), ("swift_unexpectedError", .forcedTry),
    ("swift_errorInMain", .forcedTry), ("__stack_chk_fail", .canary), ("__fortify_fail", .canary),
    ("malloc_printerr", .heap), ("__assert_fail", .assertion), ("_ZSt9terminatev", .cxxTerminate),
    ("__cxa_throw", .cxxTerminate), ("__cxa_call_terminate", .cxxTerminate), ("__clang_call_terminate", .cxxTerminate),
  ]

  /// What is known of a crash, best evidence first: the compiler's own words at the failing instruction, the size of the
  /// stack, the runtime's message, the signal.
  ///
  /// - Parameters:
  ///   - runtimeFailure: text of the pseudo-function inlined at the crashing address.
  ///   - depth: true number of physical frames.
  ///   - stackPointer: of the crashing thread.
  ///   - innermostFunctions: linker names of the innermost frames, innermost first.
  public init(
    runtimeFailure: String?, message: String?, exceptionType: String? = nil, signal: SignalInfo?, depth: UInt64? = nil,
    stackPointer: UInt64? = nil, innermostFunctions: [String] = []
  ) {
    if let runtimeFailure {
      self.init(runtimeFailure: runtimeFailure)
    } else if Self.isStackOverflow(signal: signal, depth: depth, stackPointer: stackPointer) {
      self = .stackOverflow
    } else if let message, let reason = Reason(message: message) {
      self = reason
    } else if exceptionType != nil {
      self = .cxxTerminate
    } else if let number = signal?.number, Self.isSelfInflicted(number),
      let reason = Reason(endingFunctions: innermostFunctions)
    {
      self = reason
    } else {
      switch signal?.number {
      case 6: self = .abort
      case 11: self = .segmentationFault
      case 7: self = .busError
      case 8: self = .arithmeticSignal
      case 31: self = .badSystemCall
      // A trap instruction: with debug information the compiler says which check it belongs to.
      case 4, 5: self = .illegalInstruction
      default: self = .abort
      }
    }
  }

  // SIGILL, SIGTRAP, SIGABRT: code that stopped on purpose. A fault inside such a function is a fault.
  static func isSelfInflicted(_ signal: Int32) -> Bool { signal == 4 || signal == 5 || signal == 6 }

  // A guard page is hit within what one function's frame may span below the stack pointer. A deep stack alone is enough:
  // a frame larger than that jumps over it.
  static func isStackOverflow(signal: SignalInfo?, depth: UInt64?, stackPointer: UInt64?) -> Bool {
    guard let signal, signal.number == 11 || signal.number == 7 else { return false }
    if let depth, depth > 2000 { return true }
    guard let address = signal.address?.rawValue, let stackPointer else { return false }
    return address >= stackPointer &- 65536 && address < stackPointer &+ 4096 && stackPointer > 65536
  }
}
