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
    Reason(rawValue: "trap:" + String(text.map { $0.isNumber ? "#" : $0 }))
  }

  /// An error that the program handled and reported; its type takes the place that the failed check has for a crash.
  static func handledError(_ type: String?) -> Reason { Reason(rawValue: "error:" + (type ?? "unknown")) }

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

  /// The frames that crash are not the ones that did the damage.
  public var hasUnreliableVictim: Bool { self == .heap || self == .canary }
}

extension Reason {
  /// The text of the compiler's `Swift runtime failure: …` pseudo-function.
  ///
  /// ```swift
  /// Reason(runtimeFailure: "Index out of range")  // .bounds
  /// ```
  public init(runtimeFailure text: String) { self = Self.checks.first { text.contains($0.0) }?.1 ?? .trap(text) }

  // First match wins: `overflow` must not take what names another check.
  private static let checks: [(String, Reason)] = [
    ("Unexpectedly found nil", .nilUnwrap),
    ("Index out of range", .bounds), ("index is out of bounds", .bounds), ("index out of bounds", .bounds),
    ("out of bounds", .bounds), ("Array index is out of range", .bounds), ("Negative Array index", .bounds),
    ("Division by zero", .divisionByZero), ("Division with remainder by zero", .divisionByZero),
    ("Range requires", .range), ("Can't form Range", .range), ("Not enough bits to represent", .range),
    ("Negative value is not representable", .range), ("cannot be converted to", .range),
    ("Can't construct Array with count < 0", .range), ("arithmetic overflow", .overflow), ("overflow", .overflow),
    ("cast failed", .cast), ("Could not cast value", .cast),
    ("precondition failure", .precondition), ("Precondition failed", .precondition),
    ("Duplicate values for key", .duplicateKey), ("Duplicate elements of type", .duplicateKey),
    ("Dictionary literal contains duplicate keys", .duplicateKey),
    ("unexpectedly raised an error", .forcedTry), ("Error raised at top level", .forcedTry),
    ("TASK CONTINUATION MISUSE", .continuation), ("Assertion failed", .assertion),
    ("Simultaneous accesses", .exclusivity), ("access conflict", .exclusivity),
    ("unowned reference", .unowned),
  ]

  /// glibc's and the C++ runtime's words.
  private static let systemTexts: [(String, Reason)] = [
    ("stack smashing detected", .canary), ("buffer overflow detected", .canary),
    ("free(): ", .heap), ("malloc(): ", .heap), ("realloc(): ", .heap), ("calloc(): ", .heap),
    ("malloc_consolidate(): ", .heap), ("munmap_chunk(): ", .heap), ("corrupted ", .heap), ("tcache_", .heap),
    ("double free", .heap), ("terminate called", .cxxTerminate), ("Assertion `", .assertion),
  ]

  /// From the message of the Swift runtime, glibc or the C++ runtime; nil where it says nothing that the list knows and
  /// is no fatal error.
  public init?(message: String) {
    if let found = Self.systemTexts.first(where: { message.contains($0.0) }) {
      self = found.1
      return
    }
    if let found = Self.checks.first(where: { message.contains($0.0) }) {
      self = found.1
      return
    }
    guard message.contains("Fatal error") else { return nil }
    self = .fatal
  }

  /// What is known of a crash, best evidence first: the compiler's own words at the failing instruction, the size of the
  /// stack, the runtime's message, the signal.
  ///
  /// - Parameters:
  ///   - runtimeFailure: text of the pseudo-function inlined at the crashing address.
  ///   - depth: true number of physical frames.
  ///   - stackPointer: of the crashing thread.
  public init(
    runtimeFailure: String?, message: String?, exceptionType: String? = nil, signal: SignalInfo?, depth: UInt64? = nil,
    stackPointer: UInt64? = nil
  ) {
    if let runtimeFailure {
      self.init(runtimeFailure: runtimeFailure)
    } else if Self.isStackOverflow(signal: signal, depth: depth, stackPointer: stackPointer) {
      self = .stackOverflow
    } else if let message, let reason = Reason(message: message) {
      self = reason
    } else if exceptionType != nil {
      self = .cxxTerminate
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

  // A guard page is hit within what one function's frame may span below the stack pointer. A deep stack alone is enough:
  // a frame larger than that jumps over it.
  private static func isStackOverflow(signal: SignalInfo?, depth: UInt64?, stackPointer: UInt64?) -> Bool {
    guard let signal, signal.number == 11 || signal.number == 7 else { return false }
    if let depth, depth > 2000 { return true }
    guard let address = signal.address?.rawValue, let stackPointer else { return false }
    return address >= stackPointer &- 65536 && address < stackPointer &+ 4096 && stackPointer > 65536
  }
}
