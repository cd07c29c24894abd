internal import CrashModel

/// The Swift runtime's crash log as text (`docs/input-formats.md`), of every version and preset since 5.9.
struct SwiftTextLog: TraceReader {
  static let name = "Swift crash log"
  /// Its parts are written one after the other by one process; what stands between them is other threads' output.
  static let patience = 500
  static let listsImagesLast = true

  private(set) var draft = ReportDraft()
  /// Of the line before the crash, which is all there is of it in some logs.
  private(set) var signal: Int32?
  private var hasCrashLine = false
  private var section = Section.start
  private var nextIndex: UInt64 = 0
  /// The last frame was a gap, which is one only if another frame follows.
  private var isBehindGap = false
  private var registers: [(thread: Int, values: [ThreadInfo.Register])] = []
  /// Functions that were inlined into the next frame.
  private var inlined: [SymbolicatedFrame] = []
  private var hasRegistersOfAll = false
  /// A frame of the thread that is being read has an attribute: `[ra]`.
  private var hasAttributes = false
  private var faultAddress: UInt64?
  private var isEnded = false
  /// The log was cut in front of the first frame that is there, as `docker logs --tail 50` does.
  private(set) var isHeadless = false

  private enum Section { case start, frames, registers, images }

  var hasFrames: Bool { draft.hasFrames || !inlined.isEmpty }

  init?(beginning line: ArraySlice<UInt8>) {
    let text = Self.withoutMark(line)
    guard readCrashLine(text) || readThreadLine(text, mustBeCrashed: true) || readFrameWithoutHead(line) else {
      return nil
    }
  }

  /// A frame that no other log has the like of: `  7 [ra] 0x00005599f587b9e0 …`
  private mutating func readFrameWithoutHead(_ line: ArraySlice<UInt8>) -> Bool {
    guard line.contains("[ra] "), let frame = SwiftTextFrame(line), frame.kind == .returnAddress,
      frame.address != nil, let index = frame.index
    else { return false }
    isHeadless = true
    draft.beginThread(name: nil, crashed: false)
    section = .frames
    nextIndex = index
    return readFrame(line)
  }

  /// Without the theme's `*** ` or bomb.
  private static func withoutMark(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var scanner = LineScanner(line.trimmed)
    if scanner.skip("*** ") || scanner.skip("\u{1F4A3} ") || scanner.skip("\u{1F4A5} ") { scanner.skipSpaces() }
    return scanner.rest
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    let plain = line.trimmed
    if plain.isEmpty { return .taken }
    let text = Self.withoutMark(line)
    if hasFrames, hasCrashLine, Self.isCrashLine(text) { return .behind }
    if text.starts(with: "Backtrace took "), hasCrashLine || hasFrames {
      isEnded = true
      return .last
    }
    if readCrashLine(text) || readThreadLine(text, mustBeCrashed: false) || readPlatform(text) || readHeading(text) {
      return .taken
    }
    switch section {
    case .start: break
    case .frames:
      if readFrame(line) || Self.isSource(plain) { return .taken }
      // With `registers=all`, each thread's stand below its name, without a heading.
      if plain.first?.isASCIILetter == true, Self.isRegister(plain) {
        let thread = max(0, draft.report.threads.count - 1)
        if registers.last?.thread != thread || registers.isEmpty { registers.append((thread, [])) }
        hasRegistersOfAll = true
        if readRegisters(text) { return .taken }
      }
    case .registers: if readRegisters(text) { return .taken }
    case .images: if readImage(plain) { return .taken }
    }
    if plain.starts(with: "swift-runtime: failed to suspend thread") {
      draft.note(plain.prefix(256).string)
      return .taken
    }
    return .foreign
  }

  // MARK: Headings

  private static func isCrashLine(_ text: ArraySlice<UInt8>) -> Bool {
    text.starts(with: "Program crashed: ") || text.starts(with: "Swift runtime failure: ")
      || text.starts(with: "Signal ") && text.contains(": Backtracing from")
  }

  private mutating func readCrashLine(_ text: ArraySlice<UInt8>) -> Bool {
    guard Self.isCrashLine(text) else { return false }
    var scanner = LineScanner(text)
    let isProgram = scanner.skip("Program crashed: ")
    if scanner.skip("Signal "), let number = scanner.decimal(), let number = Int32(exactly: number),
      scanner.starts(with: ":")
    {
      signal = number
      return true
    }
    guard isProgram || scanner.starts(with: "Swift runtime failure: ") else { return false }
    hasCrashLine = true
    var description = scanner.rest.trimmed
    if description.ends(with: "***") { description = description.dropLast(3).trimmed }
    if let at = description.lastIndex(of: " at 0x") {
      var address = LineScanner(description[(at + 4)...])
      faultAddress = address.hex()
      description = description[..<at]
    }
    if description.starts(with: "Swift runtime failure: ") {
      draft.report.reason = Reason(runtimeFailure: description.dropFirst(23).string)
    } else if signal == nil {
      signal = SwiftSignal.number(description: description.string)
    }
    return true
  }

  /// `Thread 1 "worker" crashed:`
  private mutating func readThreadLine(_ text: ArraySlice<UInt8>, mustBeCrashed: Bool) -> Bool {
    var scanner = LineScanner(text)
    guard scanner.skip("Thread "), scanner.decimal() != nil else { return false }
    var rest = scanner.rest
    guard rest.last == UInt8(ascii: ":") else { return false }
    rest = rest.dropLast()
    let crashed = rest.ends(with: " crashed")
    if crashed { rest = rest.dropLast(8) }
    guard crashed || !mustBeCrashed else { return false }
    rest = rest.trimmed
    var name: String?
    if rest.first == UInt8(ascii: "\""), rest.count >= 2, rest.last == UInt8(ascii: "\"") {
      name = rest.dropFirst().dropLast().string
    } else if !rest.isEmpty {
      return false
    }
    endStack()
    draft.beginThread(name: name.flatMap { $0.isEmpty ? nil : $0 }, crashed: crashed)
    section = .frames
    nextIndex = 0
    return true
  }

  /// `Platform: x86_64 Linux (Debian GNU/Linux 12 (bookworm))`
  private mutating func readPlatform(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    guard scanner.skip("Platform: ") else { return false }
    var process = draft.report.process ?? ProcessInfo()
    process.architecture = SwiftSignal.architecture(scanner.word().string)
    scanner.skipSpaces()
    if !scanner.isAtEnd { process.system = SwiftSignal.system(scanner.text) }
    draft.report.process = process
    return true
  }

  private mutating func readHeading(_ text: ArraySlice<UInt8>) -> Bool {
    if text.equals("Registers:") {
      endStack()
      registers.append((max(0, draft.report.threads.count - 1), []))
      section = .registers
      return true
    }
    if text.equals("Images:") || text.starts(with: "Images (") && text.ends(with: "omitted):") {
      endStack()
      section = .images
      return true
    }
    return text.starts(with: "Press space to interact")
  }

  // MARK: Frames

  private mutating func readFrame(_ line: ArraySlice<UInt8>) -> Bool {
    guard let frame = SwiftTextFrame(line) else { return false }
    if frame.isGap {
      if let index = frame.index { nextIndex = index }
      isBehindGap = true
      return true
    }
    guard let index = frame.index, draft.report.threads.last != nil else { return false }
    // Frames are numbered; without an address only the number tells one from any line that begins with one.
    guard index >= nextIndex || index == 0 && nextIndex == 0, frame.address != nil || frame.function != nil,
      frame.address != nil || isBehindGap || index - nextIndex < 64,
      frame.address != nil || frame.image != nil || frame.file != nil
    else { return false }
    if isBehindGap {
      draft.addOmitted(max(1, index - nextIndex))
      isBehindGap = false
    }
    nextIndex = index + 1
    if frame.kind != .programCounter || frame.isInlined { hasAttributes = true }
    add(frame)
    return true
  }

  private mutating func add(_ frame: SwiftTextFrame) {
    let named = frame.frame(imageIndex: frame.image.flatMap { draft.image(named: $0) })
    if frame.isInlined {
      if inlined.count < 1_024 { inlined.append(named) }
      return
    }
    flushInlined(into: named.captured)
    draft.add(named, hasAddress: frame.address != nil)
  }

  /// Inlined functions are of the frame behind them: of its address and kind.
  private mutating func flushInlined(into captured: CapturedFrame?) {
    for var frame in inlined {
      let hasAddress = frame.captured.hasAddress
      if let captured, frame.captured.address == captured.address || !hasAddress {
        frame.captured.kind = captured.kind
        (frame.captured.address, frame.captured.hasAddress) = (captured.address, captured.hasAddress)
      } else {
        // What it was inlined into was left out of the log.
        frame.inlined = false
      }
      draft.add(frame, hasAddress: hasAddress)
    }
    inlined = []
  }

  private mutating func endStack() {
    // Once: the registers of the crashed thread stand between its frames and the images, and a stack that has ended twice
    // would have lost what `[async]` said.
    guard section == .frames else { return }
    flushInlined(into: nil)
    // Dots at the end: the stack goes on, and nobody knows how far.
    if isBehindGap { draft.withThread { $0.status = .partial } }
    isBehindGap = false
    if !hasAttributes { setKinds() }
    hasAttributes = false
  }

  /// `preset=friendly` shows no attributes: but for the innermost, frames are calls; another function at the same address
  /// is the one that was inlined into the next.
  private mutating func setKinds() {
    draft.changeFrames { frames in
      var callee: SymbolicatedFrame?
      var isInnermost = true
      for index in frames.indices {
        guard case .symbolicated(var frame) = frames[index] else {
          if case .captured(var frame) = frames[index], !isInnermost {
            frame.kind = .returnAddress
            frames[index] = .captured(frame)
          }
          isInnermost = false
          callee = nil
          continue
        }
        let hasAddress = frame.captured.hasAddress
        let isSame =
          hasAddress && callee?.captured.address == frame.captured.address && callee?.function != frame.function
        if isSame, var inlined = callee {
          inlined.inlined = true
          frames[index - 1] = .symbolicated(inlined)
          frame.captured.kind = inlined.captured.kind
        } else if !isInnermost {
          frame.captured.kind = .returnAddress
        }
        frames[index] = .symbolicated(frame)
        callee = frame
        isInnermost = false
      }
    }
  }

  /// A line of source, or the mark below it: `*  7│ let x = xs[i]`, `  |     ^`.
  private static func isSource(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    _ = scanner.skip("*")
    scanner.skipSpaces()
    _ = scanner.decimal()
    scanner.skipSpaces()
    return scanner.starts(with: "|") || scanner.starts(with: "\u{2502}") || scanner.starts(with: "^")
      || scanner.starts(with: "\u{25B2}")
  }

  // MARK: Registers and images

  private static func isRegister(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    return (1...8).contains(scanner.word().count) && scanner.skipSpaces() > 0 && scanner.hex() != nil
  }

  /// `rax 0x0000000000000000  0`, `cs 0x0033  fs 0x0000  gs 0x0000`
  private mutating func readRegisters(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    var isFirst = true
    while !scanner.isAtEnd {
      scanner.skipSpaces()
      let name = scanner.word()
      guard !name.isEmpty, name.count <= 8, name.first?.isASCIILetter == true,
        name.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "_") }), scanner.skipSpaces() > 0,
        let value = scanner.hex()
      else { return !isFirst }
      isFirst = false
      if !registers.isEmpty, registers[registers.count - 1].values.count < 128 {
        registers[registers.count - 1].values.append(.init(name: name.string, value: value))
      }
    }
    return !isFirst
  }

  /// `0x000055fdefc8e000–0x000055fdefc94e00 a4b7… crashdemo   /src/crashdemo`
  private mutating func readImage(_ text: ArraySlice<UInt8>) -> Bool {
    guard let line = SwiftImageLine(text) else { return false }
    draft.add(line.image)
    return true
  }

  // MARK: The end

  mutating func finish() -> CrashReport? {
    endStack()
    guard hasFrames || hasCrashLine else { return nil }
    if let number = signal {
      draft.setSignal(number)
      if let faultAddress, number == 6 || number == 3 {
        // What the runtime shows here is not an address: the field holds the sender's process id and user id.
        draft.report.signal?.senderPID = Int32(exactly: faultAddress & 0xffff_ffff)
      } else if let faultAddress {
        draft.report.signal?.address = Address(rawValue: faultAddress)
      }
    }
    if isHeadless {
      draft.note("the log begins in the middle of the crash")
      // All headings behind it are there, and none said so.
      if !draft.report.threads.contains(where: \.crashed) { draft.markCrashed(0) }
    }
    let crashed = draft.report.threads.firstIndex(where: \.crashed)
    for entry in registers where !entry.values.isEmpty {
      // Those of the crashed thread alone stand behind all threads; those of all, behind each.
      let thread = hasRegistersOfAll ? entry.thread : crashed ?? entry.thread
      if draft.report.threads.indices.contains(thread) { draft.report.threads[thread].registers = entry.values }
    }
    if !isEnded { draft.note("the log ends in the middle of the crash") }
    return draft.finished(format: "log", advice: SwiftSignal.adviceForImages)
  }
}

/// A line of the runtime's list of images.
struct SwiftImageLine {
  var image: Image

  init?(_ text: ArraySlice<UInt8>) {
    var scanner = LineScanner(text)
    scanner.skipSpaces()
    guard let start = scanner.hex() else { return nil }
    // An en dash, or what became of it on its way.
    let dash = scanner.rest.prefix(8).prefix { $0 != UInt8(ascii: "0") && $0 != 0x20 }
    guard !dash.isEmpty else { return nil }
    scanner.skip(dash.count)
    guard let end = scanner.hex(), end >= start, scanner.skipSpaces() > 0 else { return nil }
    var buildID: BuildID?
    if scanner.skip("<no build ID>") || scanner.skip("<no build id>") {
      scanner.skipSpaces()
    } else {
      guard let id = BuildID(scanner.word().string) else { return nil }
      buildID = id
      scanner.skipSpaces()
    }
    let rest = scanner.rest.trimmed
    // Name and path, in columns; both may have spaces in them.
    let path: ArraySlice<UInt8>
    if rest.first == UInt8(ascii: "/") {
      path = rest
    } else if let slash = rest.firstIndex(of: " /") {
      path = rest[(slash + 1)...]
    } else if let gap = rest.firstIndex(of: "  ") {
      path = rest[gap...].trimmed
    } else {
      path = rest
    }
    image = Image(path: path.string, buildID: buildID, address: Address(rawValue: start), size: end - start)
  }
}

/// The runtime's words for what is known by other names elsewhere.
enum SwiftSignal {
  static let adviceForImages = "SWIFT_BACKTRACE with images=mentioned lists them"

  static func number(description: String) -> Int32? {
    switch description {
    case "Illegal instruction": 4
    case "System trap": 5
    case "Aborted": 6
    case "Bus error": 7
    case "Floating point exception": 8
    case "Bad pointer dereference": 11
    case "Terminated", "Quit", "Terminal quit": 3
    case "Bad system call": 31
    default: description.hasPrefix("Signal ") ? Int32(description.dropFirst(7)) : nil
    }
  }

  static func architecture(_ text: String) -> String? {
    switch text {
    case "": nil
    case "arm64", "arm64e": "aarch64"
    default: String(text.prefix(32))
    }
  }

  /// `Linux (Debian GNU/Linux 12 (bookworm))` without what every system here is.
  static func system(_ text: String) -> String {
    guard text.hasPrefix("Linux ("), text.hasSuffix(")") else { return String(text.prefix(256)) }
    return String(text.dropFirst(7).dropLast().prefix(256))
  }
}
