internal import CrashModel

/// What lldb prints for `bt` and `bt all`:
///
/// ```
/// * thread #1, name = 'api', stop reason = signal SIGSEGV: address not mapped to object (fault address: 0x0)
///   * frame #0: 0x0000555555555170 api`boom(depth=0) at crash.c:4:80
///     frame #1: 0x0000555555555167 api`boom(depth=1) + 28
/// ```
struct LLDBBacktrace: TraceReader {
  static let name = "lldb backtrace"
  static let patience = 40

  private(set) var draft = ReportDraft()
  private var nextIndex: UInt64 = 0
  /// Functions that were inlined into the next frame share its address.
  private var frames: [SymbolicatedFrame] = []
  private var images = DebuggerImages()

  init?(beginning line: ArraySlice<UInt8>) {
    guard readThread(line.trimmed) || readFrame(line.trimmed, mustBeFirst: true) else { return nil }
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    var text = line.trimmed
    if text.starts(with: "(lldb) ") { text = text.dropFirst(7).trimmed }
    if text.isEmpty { return .taken }
    if draft.hasFrames || !frames.isEmpty, text.starts(with: "* thread #"),
      draft.report.threads.contains(where: \.crashed)
    {
      return .behind
    }
    if readThread(text) || readFrame(text, mustBeFirst: false) || images.readListed(text) { return .taken }
    return .foreign
  }

  private mutating func readThread(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    let isCurrent = scanner.skip("* ")
    scanner.skipSpaces()
    guard scanner.skip("thread #"), scanner.decimal() != nil,
      scanner.isAtEnd || scanner.starts(with: ",") || scanner.starts(with: ":")
    else { return false }
    endThread()
    var name: String?
    if let start = text.firstIndex(of: "name = '") {
      name = text[(start + 8)...].prefix { $0 != UInt8(ascii: "'") }.string
    }
    draft.beginThread(name: name, crashed: isCurrent)
    nextIndex = 0
    if isCurrent, let start = text.firstIndex(of: "stop reason = signal ") {
      let word = text[(start + 21)...].prefix { $0.isASCIILetter || $0.isASCIIDigit }
      if let number = SignalNames.number(word.string) {
        var address: UInt64?
        if let at = text.firstIndex(of: "address: 0x") ?? text.firstIndex(of: "address=0x") {
          var value = LineScanner(text[(at + 9)...].drop { $0 == 0x20 })
          address = value.hex()
        }
        draft.setSignal(number, address: number == 6 ? nil : address)
      }
    }
    return true
  }

  private mutating func readFrame(_ text: ArraySlice<UInt8>, mustBeFirst: Bool) -> Bool {
    var scanner = LineScanner(text)
    _ = scanner.skip("* ")
    scanner.skipSpaces()
    guard scanner.skip("frame #"), let index = scanner.decimal(), scanner.skip(": "), index >= nextIndex,
      !mustBeFirst || index == 0, let address = scanner.hex()
    else { return false }
    if frames.isEmpty, draft.report.threads.isEmpty { draft.beginThread(crashed: true) }
    guard frames.count < ReportDraft.frameLimit else { return true }
    nextIndex = index + 1
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(
        kind: index == 0 ? .programCounter : .returnAddress, address: Address(rawValue: address)), status: .noSymbols)
    scanner.skipSpaces()
    var name = scanner.rest
    for mark in [" [opt]", " [artificial]"] as [StaticString] where name.ends(with: mark) {
      name = name.dropLast(mark.utf8CodeUnitCount)
    }
    if let tick = name.firstIndex(of: "`") {
      frame.captured.imageIndex = draft.image(named: name[..<tick].string)
      name = name[(tick + 1)...]
    }
    if let at = name.lastIndex(of: " at ") {
      let place = SourcePlace(name[(at + 4)...])
      if place.line != nil {
        (frame.file, frame.line, frame.column) = (place.file, place.line, place.column)
        frame.hasDebugInformation = true
        name = name[..<at]
      }
    }
    if let inlined = name.firstIndex(of: " [inlined] ") {
      name = name[(inlined + 11)...]
      frame.inlined = true
    }
    setName(name, of: &frame)
    frames.append(frame)
    return true
  }

  private func setName(_ text: ArraySlice<UInt8>, of frame: inout SymbolicatedFrame) {
    var name = text.trimmed
    if let plus = name.lastIndex(of: " + "), name[(plus + 3)...].allSatisfy(\.isASCIIDigit) { name = name[..<plus] }
    // The values of arguments are none of the name's: `boom(depth=0)`.
    if let open = name.firstIndex(of: UInt8(ascii: "(")), name[open...].contains(UInt8(ascii: "=")) {
      name = name[..<open]
    }
    guard !name.isEmpty, !name.starts(with: "___lldb_unnamed_symbol") else { return }
    frame.status = .resolved
    let string = name.string
    frame.function = Demangler.simplified(string) ?? string
    if frame.function != string { frame.rawFunction = string }
  }

  private mutating func endThread() {
    for index in frames.indices {
      // An inlined function has the kind of the frame that it was inlined into.
      if index > 0, frames[index - 1].inlined, frames[index].captured.address == frames[index - 1].captured.address {
        frames[index].captured.kind = frames[index - 1].captured.kind
      }
      draft.add(frames[index])
    }
    frames = []
  }

  mutating func finish() -> CrashReport? {
    endThread()
    guard draft.hasFrames else { return nil }
    draft.report.threads.removeAll { $0.frames.isEmpty }
    images.place(in: &draft)
    return draft.finished(format: "lldb output")
  }
}
