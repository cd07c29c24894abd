internal import CrashModel

/// What lldb prints where a process stops, and for `thread list`, `bt` and `bt all`; Debian's and the Swift toolchain's.
///
/// ```
/// Process 22230 stopped
/// * thread #1, name = 'api', stop reason = signal SIGSEGV: address not mapped to object (fault address=0x0)
///   * frame #0: 0x0000555555555170 api`boom(depth=0) at crash.c:4:80
///     frame #1: 0x0000555555555167 api`boom(depth=1) + 28
/// ```
///
/// A session shows a thread more than once: where the process stopped, with one frame (which need not be the innermost: for
/// Swift's own checks it is the first of the program), in a list, and in a backtrace. Its longest stack is kept.
struct LLDBBacktrace: TraceReader {
  static let name = "lldb backtrace"
  static let patience = 40

  private struct Frame {
    /// lldb's number: it leaves out what it hides (`closure #1` and then `frame #4`).
    var index: UInt64
    var frame: SymbolicatedFrame
    var imageName: String?
  }

  private struct Stack {
    var number: UInt64
    var name: String?
    var id: UInt32?
    var stopReason: String?
    /// lldb's current one, marked by a star.
    var isCurrent = false
    var frames: [Frame] = []
    /// Of the list of threads: where it is, for a session that shows no more of it.
    var listed: Frame?
  }

  private(set) var draft = ReportDraft()
  private var stacks: [Stack] = []
  /// Where the thread that is being read stands in `stacks`.
  private var places: [UInt64: Int] = [:]
  /// The one that frames belong to, as they come; it takes the place of a shorter one.
  private var reading: Stack?
  /// The heading that was read last, while no frame has followed it.
  private var heading: [UInt8]?
  /// Of the first thread with a star and a reason: what the session is about.
  private var stop: (thread: UInt64, reason: String)?
  private var process = ProcessInfo()
  private var images = DebuggerImages()
  private var frameCount = 0
  /// Of names and paths: what a session may be held of in memory.
  private var textBytes = 0
  private var isCut = false

  private static let textLimit = 16 * 1024 * 1024

  init?(beginning line: ArraySlice<UInt8>) {
    let text = Self.withoutPrompt(line)
    let isStop = Self.processLine(text)?.verb == .stopped
    guard isStop ? readProcess(text) : readHeading(text) || readFrame(text, mustBeFirst: true) else { return nil }
  }

  private static func withoutPrompt(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var text = line.trimmed
    while text.starts(with: "(lldb) ") { text = text.dropFirst(7).trimmed }
    return text
  }

  private var hasFrames: Bool { frameCount > 0 }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    let text = Self.withoutPrompt(line)
    if text.isEmpty { return .taken }
    if hasFrames, isBeginningOfAnother(text) { return .behind }
    if readProcess(text) || readListed(text) || readHeading(text) { return .taken }
    if let other = headingOfAnother(before: text) { return .behindHeading(other) }
    if readFrame(text, mustBeFirst: false) || images.readListed(text) { return .taken }
    let chatter: [StaticString] = ["Target ", "note: ", "warning: ", "Current executable set to ", "->"]
    return chatter.contains { text.starts(with: $0) } ? .taken : .foreign
  }

  // MARK: Where another crash begins

  /// The process went on, or the debugger turned to another one.
  private func isBeginningOfAnother(_ text: ArraySlice<UInt8>) -> Bool {
    if let (id, verb) = Self.processLine(text) {
      // lldb may say that it launched the process behind its stop.
      return verb == .other || process.id.map { $0 != id } ?? false
    }
    if text.starts(with: "target create ") { return true }
    guard let stop, let next = Self.heading(text), next.isCurrent, let reason = next.stopReason else { return false }
    if next.number == stop.thread { return reason != stop.reason }
    // The user may turn to another thread, which stopped because the first one did.
    return !(reason == stop.reason || reason == "signal 0" || places[next.number] != nil)
  }

  /// A heading that says the same, and behind it a frame that is another: two crashes of one program, one behind the other.
  private func headingOfAnother(before text: ArraySlice<UInt8>) -> [UInt8]? {
    guard let heading, let reading, reading.frames.isEmpty, let place = places[reading.number],
      stacks[place].frames.count > 1, let frame = Self.frame(text),
      let known = stacks[place].frames.first(where: { $0.index == frame.index })
    else { return nil }
    return known.frame.captured.address == frame.frame.captured.address ? nil : heading
  }

  // MARK: The process

  private enum Verb { case stopped, launched, other }

  /// `Process 22230 stopped`, `Process 22230 launched: '/srv/api' (x86_64)`, `Process 22230 resuming`
  private static func processLine(_ text: ArraySlice<UInt8>) -> (id: Int32, verb: Verb)? {
    var scanner = LineScanner(text)
    guard scanner.skip("Process "), let number = scanner.decimal(), let id = Int32(exactly: number), scanner.skip(" ")
    else { return nil }
    if scanner.rest.equals("stopped") { return (id, .stopped) }
    if scanner.starts(with: "launched: '") { return (id, .launched) }
    let others: [StaticString] = ["resuming", "exited with ", "detached", "launched"]
    return others.contains { scanner.starts(with: $0) } ? (id, .other) : nil
  }

  private mutating func readProcess(_ text: ArraySlice<UInt8>) -> Bool {
    guard let (id, verb) = Self.processLine(text) else { return false }
    process.id = id
    if verb == .launched, let open = text.firstIndex(of: "launched: '"), let close = text.lastIndex(of: "' (") {
      let path = text[(open + 11)...].prefix(upTo: max(close, open + 11))
      if path.first == UInt8(ascii: "/") { process.executable = path.string }
      let name = text[(close + 3)...].prefix { $0 != UInt8(ascii: ")") }
      if name.equals("x86_64") || name.equals("aarch64") { process.architecture = name.string }
    }
    return true
  }

  // MARK: Threads

  /// `* thread #1, name = 'api', stop reason = signal SIGSEGV: …`, `thread #2`
  private static func heading(_ text: ArraySlice<UInt8>) -> Stack? {
    var scanner = LineScanner(text)
    let isCurrent = scanner.skip("* ")
    scanner.skipSpaces()
    guard scanner.skip("thread #"), let number = scanner.decimal() else { return nil }
    let isList = scanner.starts(with: ": tid = ")
    guard scanner.isAtEnd || scanner.starts(with: ",") || scanner.starts(with: ":") else { return nil }
    var stack = Stack(number: number, isCurrent: isCurrent)
    // Behind the frame, in whose arguments anything may stand.
    var fields = scanner.rest
    if let reason = isList ? fields.lastIndex(of: ", stop reason = ") : fields.firstIndex(of: ", stop reason = ") {
      stack.stopReason = fields[(reason + 16)...].string
      fields = fields[..<reason]
    }
    if let start = fields.lastIndex(of: ", name = '") {
      let name = fields[(start + 10)...]
      stack.name = (name.lastIndex(of: UInt8(ascii: "'")).map { name[..<$0] } ?? name).string
      fields = fields[..<start]
    }
    if isList {
      var id = LineScanner(fields.dropFirst(8))
      stack.id = id.decimal().flatMap(UInt32.init(exactly:))
      if id.skip(", ") { stack.listed = frame(at: id.rest, index: 0) }
    }
    return stack
  }

  private mutating func readHeading(_ text: ArraySlice<UInt8>) -> Bool {
    guard let next = Self.heading(text) else { return false }
    keepReading()
    guard stacks.count < ReportDraft.threadLimit || places[next.number] != nil else {
      isCut = true
      return true
    }
    heading = Array(text)
    reading = next
    noteStop(next)
    return true
  }

  /// A row of `thread list`: no frames follow it.
  private mutating func readListed(_ text: ArraySlice<UInt8>) -> Bool {
    guard let row = Self.heading(text), row.id != nil else { return false }
    keepReading()
    guard hasRoom(for: row.listed), stacks.count < ReportDraft.threadLimit || places[row.number] != nil else {
      isCut = true
      return true
    }
    keep(row)
    noteStop(row)
    return true
  }

  private mutating func noteStop(_ stack: Stack) {
    if stop == nil, stack.isCurrent, let reason = stack.stopReason { stop = (stack.number, reason) }
  }

  private mutating func keepReading() {
    guard let stack = reading else { return }
    (reading, heading) = (nil, nil)
    keep(stack)
  }

  private mutating func keep(_ new: Stack) {
    guard let place = places[new.number] else {
      places[new.number] = stacks.count
      stacks.append(new)
      return
    }
    var known = stacks[place]
    known.name = new.name ?? known.name
    known.id = new.id ?? known.id
    known.stopReason = known.stopReason ?? new.stopReason
    known.isCurrent = known.isCurrent || new.isCurrent
    known.listed = known.listed ?? new.listed
    if new.frames.count > known.frames.count || new.frames.first?.index == 0 && known.frames.first?.index != 0 {
      known.frames = new.frames
    }
    stacks[place] = known
  }

  // MARK: Frames

  private mutating func hasRoom(for frame: Frame?) -> Bool {
    guard let frame else { return true }
    guard frameCount < ReportDraft.frameLimit, textBytes < Self.textLimit else { return false }
    frameCount += 1
    textBytes += [frame.frame.function, frame.frame.rawFunction, frame.frame.file, frame.imageName]
      .reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    return true
  }

  private mutating func readFrame(_ text: ArraySlice<UInt8>, mustBeFirst: Bool) -> Bool {
    guard let frame = Self.frame(text), !mustBeFirst || frame.index == 0 else { return false }
    var stack = reading ?? Stack(number: stacks.isEmpty ? 1 : 0, isCurrent: true)
    if reading == nil, !stacks.isEmpty { return false }
    if let last = stack.frames.last, frame.index <= last.index {
      // The stop shows one frame, and a backtrace without a heading may follow it.
      guard frame.index == 0, stack.frames.count == 1 else { return false }
      stack.frames = []
    }
    guard hasRoom(for: frame) else {
      isCut = true
      return true
    }
    stack.frames.append(frame)
    reading = stack
    heading = nil
    return true
  }

  /// `* frame #0: 0x0000555555555170 api`boom(depth=0) at crash.c:4:80`
  private static func frame(_ text: ArraySlice<UInt8>) -> Frame? {
    var scanner = LineScanner(text)
    _ = scanner.skip("* ")
    scanner.skipSpaces()
    guard scanner.skip("frame #"), let index = scanner.decimal(), scanner.skip(": ") else { return nil }
    return frame(at: scanner.rest, index: index)
  }

  /// `0x0000555555555170 api`boom(depth=0) at crash.c:4:80 [opt] [inlined]`
  private static func frame(at text: ArraySlice<UInt8>, index: UInt64) -> Frame? {
    var scanner = LineScanner(text)
    guard let address = scanner.hex() else { return nil }
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(
        kind: index == 0 ? .programCounter : .returnAddress, address: Address(rawValue: address)), status: .noSymbols)
    scanner.skipSpaces()
    var name = scanner.rest
    while true {
      if name.ends(with: " [opt]") {
        name = name.dropLast(6)
      } else if name.ends(with: " [inlined]") {
        name = name.dropLast(10)
        frame.inlined = true
      } else if name.ends(with: " [artificial]") {
        name = name.dropLast(13)
      } else {
        break
      }
    }
    var imageName: String?
    if let tick = name.firstIndex(of: "`") {
      imageName = name[..<tick].string
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
    // Older ones write the function that it is inlined into before it.
    if let inlined = name.firstIndex(of: " [inlined] ") {
      name = name[(inlined + 11)...]
      frame.inlined = true
    }
    setName(name, of: &frame)
    return Frame(index: index, frame: frame, imageName: imageName)
  }

  private static func setName(_ text: ArraySlice<UInt8>, of frame: inout SymbolicatedFrame) {
    var name = text.trimmed
    if let plus = name.lastIndex(of: " + "), name[(plus + 3)...].allSatisfy(\.isASCIIDigit) { name = name[..<plus] }
    // The values of arguments are none of the name's: `boom(depth=0)`.
    if let open = name.argumentsStart, name[open...].contains(UInt8(ascii: "=")) { name = name[..<open] }
    guard !name.isEmpty, !name.starts(with: "___lldb_unnamed_symbol") else { return }
    frame.status = .resolved
    let string = name.string
    frame.function = Demangler.simplified(string) ?? string
    if frame.function != string { frame.rawFunction = string }
  }

  // MARK: The report

  mutating func finish() -> CrashReport? {
    keepReading()
    for index in stacks.indices where stacks[index].frames.isEmpty {
      if let listed = stacks[index].listed { stacks[index].frames = [listed] }
    }
    let shown = stacks.filter { !$0.frames.isEmpty }
    guard !shown.isEmpty else { return nil }
    let crashed =
      stop.flatMap { stop in shown.firstIndex { $0.number == stop.thread } }
      ?? shown.firstIndex(where: \.isCurrent)
    for (index, stack) in shown.enumerated() {
      draft.beginThread(name: stack.name, id: stack.id, crashed: index == crashed)
      add(stack.frames)
    }
    if let stop { setStop(Array(stop.reason.utf8)[...]) }
    if process != ProcessInfo() { draft.report.process = process }
    if isCut {
      draft.note("the lldb output goes on; only \(ReportDraft.frameLimit) frames of it are kept")
    }
    images.place(in: &draft)
    return draft.finished(format: "lldb output")
  }

  private mutating func add(_ frames: [Frame]) {
    var call: CapturedFrame?
    for (index, frame) in frames.enumerated() {
      var frame = frame
      // The inlined function and what it is inlined into are one call, of which the first has the address: of the others
      // lldb shows where the inlined code begins.
      let isSameCall = index > 0 && frames[index - 1].frame.inlined && frames[index - 1].index + 1 == frame.index
      if isSameCall, let call {
        (frame.frame.captured.kind, frame.frame.captured.address) = (call.kind, call.address)
      } else {
        call = frame.frame.captured
      }
      frame.frame.captured.imageIndex = frame.imageName.flatMap { draft.image(named: $0) }
      draft.add(frame.frame)
    }
  }

  /// `signal SIGSEGV: address not mapped to object (fault address=0x8)`, `Fatal error: Unexpectedly found nil …`
  private mutating func setStop(_ text: ArraySlice<UInt8>) {
    var scanner = LineScanner(text)
    if scanner.skip("Swift runtime failure: ") {
      draft.report.message = text.string
      draft.report.reason = Reason(runtimeFailure: scanner.text)
      return
    }
    guard scanner.skip("signal ") else {
      if LogMessages.message(in: text) != nil { draft.report.message = text.string } else { setOtherStop(text) }
      return
    }
    guard let number = SignalNames.number(scanner.rest.prefix { $0.isASCIILetter || $0.isASCIIDigit }.string) else {
      return
    }
    let address = Self.number(behind: ["address: 0x", "address=0x"], in: text)
    draft.setSignal(number, address: number == 6 ? nil : address)
  }

  /// A breakpoint or a step is no crash.
  private mutating func setOtherStop(_ text: ArraySlice<UInt8>) {
    let stops: [StaticString] = ["breakpoint ", "step ", "watchpoint ", "trace", "instruction step "]
    guard stops.contains(where: { text.starts(with: $0) }) else { return }
    draft.report.kind = .snapshot
    draft.report.fatal = false
  }

  private static func number(behind marks: [StaticString], in text: ArraySlice<UInt8>) -> UInt64? {
    for mark in marks {
      guard let at = text.firstIndex(of: mark) else { continue }
      var value = LineScanner(text[(at + mark.utf8CodeUnitCount - 2)...])
      return value.hex()
    }
    return nil
  }
}
