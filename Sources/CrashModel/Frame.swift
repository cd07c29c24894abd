/// What a frame's address means, and so which address is to be looked up.
public enum FrameKind: String, Hashable, Sendable, CaseIterable {
  /// The address of the instruction that was being executed: of the innermost frame, and of one that a signal stopped.
  case programCounter = "program_counter"
  /// The address to which the callee returns: the instruction *behind* the call.
  case returnAddress = "return_address"
  /// The address at which an awaiting function goes on: the first instruction of its continuation.
  case asyncResume = "async_resume"

  /// What to add to the address before it is looked up.
  ///
  /// A return address may already belong to the next line, the next inlined function, or (where the callee never
  /// returns) the next function; the call itself ends one byte before it. This is the only place where the adjustment
  /// is made.
  public var lookupAdjustment: Int64 {
    switch self {
    case .programCounter, .asyncResume: 0
    case .returnAddress: -1
    }
  }
}

/// How a frame was found, most trustworthy first.
public enum FrameTrust: String, Hashable, Sendable, CaseIterable {
  /// From the registers of the crash.
  case context
  /// From the callee's call frame information (`.eh_frame`).
  case cfi
  /// From the chain of frame pointers.
  case framePointer = "frame_pointer"
  /// From a word on the stack that looks like a return address: a guess.
  case scan
  /// From the chain of async contexts.
  case async
}

/// One entry of a stack as it was captured: an address, never a name.
public struct CapturedFrame: Hashable, Sendable {
  public var kind: FrameKind
  public var trust: FrameTrust?
  /// 0 where there is none: see `hasAddress`.
  public var address: Address
  /// False for a frame of which a log gave the name alone. A program that jumped to address 0 has a frame there.
  public var hasAddress: Bool
  /// Index in `CrashReport.images`; nil where the address lies in none of them.
  public var imageIndex: Int?
  /// Distance from the image's load address.
  public var imageOffset: ImageOffset?

  /// - Parameter address: nil where it is not known.
  public init(
    kind: FrameKind, trust: FrameTrust? = nil, address: Address?, imageIndex: Int? = nil,
    imageOffset: ImageOffset? = nil
  ) {
    self.kind = kind
    self.trust = trust
    self.address = address ?? Address(rawValue: 0)
    hasAddress = address != nil
    self.imageIndex = imageIndex
    self.imageOffset = imageOffset
  }

  /// The address to look up, which is not always the frame's own: see `FrameKind.lookupAdjustment`.
  public var lookupAddress: Address {
    Address(rawValue: address.rawValue &+ UInt64(bitPattern: kind.lookupAdjustment))
  }
}

/// Whether a frame got its name, and if not, why.
public enum FrameStatus: String, Hashable, Sendable, CaseIterable {
  /// Function, file and line are known from debug information, or the function from a symbol table.
  case resolved
  /// The image was found and knows no function at this address.
  case noSymbols = "no_symbols"
  /// The address lies in no image of the process.
  case noImage = "no_image"
  /// The only file found for the image has another build id, and was not used.
  case buildIDMismatch = "build_id_mismatch"
}

/// One function activation with the names that its debug information gives: a physical frame, or a function inlined into
/// one.
///
/// A captured frame becomes one or more of these, innermost first; all but the last have `inlined` set and share the
/// address.
public struct SymbolicatedFrame: NamedFunction, Hashable, Sendable {
  public var captured: CapturedFrame
  public var status: FrameStatus
  /// Function and file, shared with other frames of the same.
  public var names: FrameNames
  /// 1-based; 0 for code that the compiler made up, which has no line.
  public var line: Int?
  /// 1-based; 0 where unknown.
  public var column: Int?
  /// The line where the function is declared.
  public var declarationLine: Int?
  /// The line is the nearest known one of the same function, not the exact one.
  public var approximate: Bool
  /// The function was inlined into the next frame.
  public var inlined: Bool
  /// Whether the function belongs to the application rather than to the runtime or a library; nil while undecided.
  public var inApp: Bool?
  /// Names come from debug information, not only from a symbol table.
  public var hasDebugInformation: Bool
  /// The source code around `line`, where it was asked for. Code, like names, and not redacted.
  public var source: SourceLines?

  public init(
    captured: CapturedFrame, status: FrameStatus, function: String? = nil, rawFunction: String? = nil,
    file: String? = nil, line: Int? = nil, column: Int? = nil, declarationLine: Int? = nil, approximate: Bool = false,
    inlined: Bool = false, inApp: Bool? = nil, hasDebugInformation: Bool = false
  ) {
    self.init(
      captured: captured, status: status,
      names: FrameNames.of(function: function, rawFunction: rawFunction, file: file), line: line, column: column,
      declarationLine: declarationLine, approximate: approximate, inlined: inlined, inApp: inApp,
      hasDebugInformation: hasDebugInformation)
  }

  package init(
    captured: CapturedFrame, status: FrameStatus, names: FrameNames, line: Int? = nil, column: Int? = nil,
    declarationLine: Int? = nil, approximate: Bool = false, inlined: Bool = false, inApp: Bool? = nil,
    hasDebugInformation: Bool = false
  ) {
    self.captured = captured
    self.status = status
    self.names = names
    self.line = line
    self.column = column
    self.declarationLine = declarationLine
    self.approximate = approximate
    self.inlined = inlined
    self.inApp = inApp
    self.hasDebugInformation = hasDebugInformation
    source = nil
  }
}

/// An entry of a thread's stack in a report.
public enum Frame: Hashable, Sendable {
  case captured(CapturedFrame)
  case symbolicated(SymbolicatedFrame)
  /// So many frames stand here in the process's stack that were not kept (the middle of a deep recursion).
  case omitted(count: UInt64)

  /// The address and kind; nil for `omitted`.
  public var captured: CapturedFrame? {
    switch self {
    case .captured(let frame): frame
    case .symbolicated(let frame): frame.captured
    case .omitted: nil
    }
  }

  /// The names; nil where there are none yet.
  public var symbolicated: SymbolicatedFrame? {
    if case .symbolicated(let frame) = self { frame } else { nil }
  }
}
