internal import CrashModel

/// What the Swift runtime prints from inside the process when it stops on purpose and no backtracer is at hand:
///
/// ```
/// Current stack trace:
/// 0    libswiftCore.so                    0x00007f6ea7af961f _swift_stdlib_reportFatalErrorInFile + 128
/// 1    api                                0x000055fdefc939e0 <unavailable> + 23008
/// ```
struct CurrentStackTrace: TraceReader {
  static let name = "stack trace of the Swift runtime"
  static let patience = 8

  private(set) var draft = ReportDraft()
  private var nextIndex: UInt64 = 0

  init?(beginning line: ArraySlice<UInt8>) {
    guard line.trimmed.equals("Current stack trace:") else { return nil }
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    var scanner = LineScanner(line.trimmed)
    guard let index = scanner.decimal(), index == nextIndex, scanner.skipSpaces() > 0 else {
      return line.trimmed.isEmpty && nextIndex == 0 ? .taken : .foreign
    }
    // The image's name may have spaces in it; the address is the first number of this look behind it.
    guard let name = scanner.up(to: " 0x") else { return .foreign }
    var address = LineScanner(line.trimmed[(scanner.rest.startIndex - 2)...])
    guard let value = address.hex(), address.skipSpaces() > 0 else { return .foreign }
    nextIndex += 1
    var symbol = address.rest
    var offset: UInt64 = 0
    if let plus = symbol.lastIndex(of: " + ") {
      var digits = LineScanner(symbol[(plus + 3)...])
      offset = digits.decimal() ?? 0
      symbol = symbol[..<plus]
    }
    // The stack is taken from inside: the first frame is a call, as all others are.
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: .returnAddress, address: Address(rawValue: value)), status: .noSymbols)
    let image = name.trimmed.string
    if symbol.trimmed.equals("<unavailable>") {
      // Without a symbol the distance is counted from the image's beginning.
      frame.captured.imageIndex = draft.image(path: image, address: value, offset: offset, isVirtual: false)
    } else {
      let raw = symbol.trimmed.string
      (frame.status, frame.function) = (.resolved, Demangler.simplified(raw) ?? raw)
      if frame.function != raw { frame.rawFunction = raw }
      frame.captured.imageIndex = draft.image(named: image)
    }
    draft.add(frame)
    return .taken
  }

  mutating func finish() -> CrashReport? {
    guard draft.hasFrames else { return nil }
    draft.withThread { $0.crashed = true }
    return draft.finished(format: "stack trace")
  }
}
