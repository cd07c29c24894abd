internal import CrashModel

/// The words that several formats use for the same facts of a report.
extension CrashReport {
  /// What kind of failure it is, as the title of a tracker's issue: `Index out of range`, `SIGSEGV`, the type of an error.
  ///
  /// Without values, so that two reports of one bug have the same.
  var failureTitle: String {
    if kind == .exception, let type, !type.isEmpty { return type }
    if kind == .hang { return "Hang" }
    if reason == .cxxTerminate, let type, !type.isEmpty, type != signal?.name { return type }
    if let words = reason?.title { return words }
    if let name = signal?.name ?? type, !name.isEmpty { return name }
    return kind.rawValue.prefix(1).uppercased() + kind.rawValue.dropFirst()
  }

  /// The image that a frame's address lies in.
  func image(of frame: CapturedFrame) -> Image? {
    frame.imageIndex.flatMap { images.indices.contains($0) ? images[$0] : nil }
  }

  /// The frame's distance from its image's load address; nil where it lies in none, or in one whose place is unknown.
  func offset(of frame: CapturedFrame) -> ImageOffset? {
    guard let image = image(of: frame), image.isPlaced else { return nil }
    return frame.imageOffset ?? image.offset(of: frame.address)
  }

  /// Whether the code is the application's; nil where nothing says so.
  ///
  /// The stack hash decides it for the thread that crashed; of the others the image is all that is known.
  func isApplicationCode(_ frame: Frame) -> Bool? {
    if let decided = frame.symbolicated?.inApp { return decided }
    guard let index = frame.captured?.imageIndex, images.indices.contains(index) else { return nil }
    return isApplicationImage(index)
  }

  /// `Store.load(id:)`, or `orderd+0x53f5` where the function has no name.
  func functionName(of frame: Frame) -> String? {
    guard let captured = frame.captured else { return nil }
    if let function = frame.symbolicated?.function { return function }
    guard let image = image(of: captured) else { return captured.address.description }
    guard let offset = offset(of: captured) else { return image.name }
    return "\(image.name)+\(Hex.prefixed(offset.rawValue))"
  }
}

extension Reason {
  /// A title for people; nil where the signal's name says as much.
  fileprivate var title: String? {
    switch self {
    case .nilUnwrap: "Unexpectedly found nil"
    case .bounds: "Index out of range"
    case .overflow: "Arithmetic overflow"
    case .divisionByZero: "Division by zero"
    case .range: "Value out of range"
    case .cast: "Failed cast"
    case .forcedTry: "Unhandled error"
    case .duplicateKey: "Duplicate key"
    case .exclusivity: "Overlapping accesses"
    case .unowned: "Unowned reference to a freed object"
    case .continuation: "Continuation misuse"
    case .precondition: "Precondition failed"
    case .fatal: "Fatal error"
    case .assertion: "Assertion failed"
    case .cxxTerminate: "Uncaught C++ exception"
    case .heap: "Heap corruption"
    case .canary: "Stack buffer overflow"
    case .stackOverflow: "Stack overflow"
    case .hang: "Hang"
    case .snapshot: "Snapshot"
    default:
      rawValue.hasPrefix("trap:")
        ? String(rawValue.dropFirst(5))
        : rawValue.hasPrefix("ended:") ? "Ended: " + Self.words(forEnding: String(rawValue.dropFirst(6))) : nil
    }
  }
}

extension Reason {
  fileprivate static func words(forEnding text: String) -> String {
    Ending.Kind(rawValue: text)?.words ?? text
  }
}

extension Ending.Kind {
  /// For people, as part of a sentence.
  var words: String {
    switch self {
    case .clean: "in good order"
    case .stopped: "with the reporter stopped"
    case .crashed: "by a crash"
    case .terminated: "by a signal"
    case .outOfMemory: "out of memory"
    case .killed: "killed"
    case .machineStopped: "with the machine"
    case .replaced: "replaced by another program"
    case .startFailed: "while it was starting"
    case .unknown: "cause unknown"
    }
  }
}

extension FrameStatus {
  /// Why a frame has no name, for people; nil for one that has.
  var remark: String? {
    switch self {
    case .resolved: nil
    case .noSymbols: "no symbols"
    case .noImage: "in no image"
    case .buildIDMismatch: "build id mismatch"
    }
  }
}
