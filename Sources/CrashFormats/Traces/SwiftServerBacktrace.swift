internal import CrashModel

/// The lines of the package swift-backtrace, which servers linked before Swift 5.9:
///
/// ```
/// Received signal 4. Backtrace:
/// 0x55a2b9c1d0f4, Api.Store.load(id: Swift.Int) -> Swift.Int at /src/Sources/Api/Store.swift:41
/// ```
struct SwiftServerBacktrace: TraceReader {
  static let name = "backtrace of swift-backtrace"
  static let patience = 4

  private(set) var draft = ReportDraft()
  private var frames: [SymbolicatedFrame] = []

  init?(beginning line: ArraySlice<UInt8>) {
    var scanner = LineScanner(line.trimmed)
    guard scanner.skip("Received signal "), let number = scanner.decimal(), let signal = Int32(exactly: number),
      scanner.skip(". Backtrace:")
    else { return nil }
    draft.setSignal(signal)
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    var scanner = LineScanner(line.trimmed)
    if scanner.starts(with: "SwiftBacktrace ERROR: ") {
      draft.note(scanner.rest.prefix(256).string)
      return .taken
    }
    guard let address = scanner.hex(), scanner.isAtEnd || scanner.skip(", ") || scanner.starts(with: " at ") else {
      return .foreign
    }
    guard frames.count < ReportDraft.frameLimit else { return .taken }
    // libbacktrace hands out the address of the call itself, not that behind it.
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: .programCounter, address: Address(rawValue: address)), status: .noSymbols)
    var name = scanner.rest
    if let at = name.firstIndex(of: " at /") ?? name.lastIndex(of: " at ") {
      let place = SourcePlace(name[(at + 4)...])
      (frame.file, frame.line, frame.hasDebugInformation) = (place.file, place.line, place.line != nil)
      name = name[..<at]
    }
    if !name.trimmed.isEmpty {
      frame.status = .resolved
      let text = name.trimmed.string
      frame.function = Demangler.simplified(text) ?? text
      if frame.function != text { frame.rawFunction = text }
    }
    frames.append(frame)
    return .taken
  }

  mutating func finish() -> CrashReport? {
    guard !frames.isEmpty else { return nil }
    draft.beginThread(crashed: true)
    for index in frames.indices {
      // Functions of one address, innermost first: all but the last were inlined.
      let next = index + 1 < frames.count ? frames[index + 1].captured.address : nil
      frames[index].inlined = next == frames[index].captured.address && frames[index].function != nil
      draft.add(frames[index])
    }
    return draft.finished(format: "backtrace")
  }
}
