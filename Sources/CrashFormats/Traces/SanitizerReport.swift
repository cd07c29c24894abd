internal import CrashModel

/// What the sanitizers print, with names or without:
///
/// ```
/// ==17782==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000024 at pc 0x56120d2ea1d4 …
///     #0 0x56120d2ea1d3 in leaf /src/a.c:3:5
///     #1 0x7fc41fa45249  (/lib/x86_64-linux-gnu/libc.so.6+0x27249) (BuildId: 93ac61…)
/// ```
///
/// A report has several stacks: that of the mistake first, then of who allocated, freed, or wrote before.
struct SanitizerReport: TraceReader {
  static let name = "sanitizer report"
  static let patience = 40

  private(set) var draft = ReportDraft()
  private var nextIndex: UInt64 = 0
  /// The last line that was no frame: what the next stack is about.
  private var heading: String?
  /// UndefinedBehaviorSanitizer says one line, and a stack only where it is asked to.
  private var isOneLine = false
  private var place: SourcePlace?

  init?(beginning line: ArraySlice<UInt8>) {
    guard readTitle(line.trimmed) || readFrame(line, isFirst: true) else { return nil }
  }

  /// `==17782==ERROR: AddressSanitizer: …`, `WARNING: ThreadSanitizer: data race (pid=17786)`,
  /// `u.c:2:57: runtime error: …`
  private mutating func readTitle(_ text: ArraySlice<UInt8>) -> Bool {
    if let index = text.firstIndex(of: " runtime error: ") {
      let before = text[..<index]
      guard before.last == UInt8(ascii: ":") else { return false }
      let place = SourcePlace(before.dropLast())
      guard place.line != nil else { return false }
      self.place = place
      isOneLine = true
      draft.report.kind = .exception
      draft.report.fatal = false
      let words = text[(index + 16)...]
      draft.report.type = "UndefinedBehaviorSanitizer: \(words.prefix { $0 != UInt8(ascii: ":") }.prefix(128).string)"
      draft.report.message = text[(index + 1)...].prefix(4_096).string
      return true
    }
    var scanner = LineScanner(text)
    if scanner.skip("==") {
      // With `log_exe_name` the program's name comes first.
      if scanner.rest.first.map(\.isASCIIDigit) != true {
        guard let name = scanner.up(to: "=="), !name.isEmpty, !name.contains(UInt8(ascii: " ")) else { return false }
      }
      guard let id = scanner.decimal(), scanner.skip("==") else { return false }
      draft.report.process = ProcessInfo(id: Int32(exactly: id))
      scanner.skipSpaces()
    }
    let isError = scanner.skip("ERROR: ")
    guard isError || scanner.skip("WARNING: "), let end = scanner.rest.firstIndex(of: "Sanitizer: ") else {
      return false
    }
    let tool = scanner.rest[..<(end + 9)]
    guard tool.allSatisfy(\.isASCIILetter) else { return false }
    scanner.skip(tool.count + 2)
    setTitle(tool: tool.string, words: scanner.rest, isFatal: isError && !tool.equals("LeakSanitizer"))
    return true
  }

  private mutating func setTitle(tool: String, words: ArraySlice<UInt8>, isFatal: Bool) {
    draft.report.message = "\(tool): \(words.prefix(4_096).string)"
    let signals: [(StaticString, Int32)] = [
      ("SEGV ", 11), ("stack-overflow ", 11), ("BUS ", 7), ("FPE ", 8), ("ILL ", 4), ("ABRT ", 6), ("TRAP ", 5),
    ]
    if let (_, number) = signals.first(where: { words.starts(with: $0.0) }) {
      var address: UInt64?
      if let index = words.firstIndex(of: "address 0x") {
        var scanner = LineScanner(words[(index + 8)...])
        address = scanner.hex()
      }
      draft.setSignal(number, address: number == 6 ? nil : address)
    } else {
      // A mistake that no signal stands for: `heap-use-after-free`, `data race`.
      draft.report.kind = .exception
      let end = [" on ", " (", ": ", " in "].compactMap { words.firstIndex(of: $0) }.min() ?? words.endIndex
      draft.report.type = "\(tool): \(words[..<end].prefix(128).string)"
    }
    draft.report.fatal = isFatal
    if words.starts(with: "stack-overflow ") { draft.report.reason = .stackOverflow }
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    let text = line.trimmed
    if text.isEmpty { return draft.hasFrames || !isOneLine ? .taken : .foreign }
    if readFrame(line, isFirst: false) { return .taken }
    if text.starts(with: "SUMMARY: ") { return .last }
    if isOneLine || Self.isTitle(text) { return .behind }
    if text.ends(with: "==ABORTING") || text.starts(with: "==================") && draft.hasFrames { return .last }
    if text.last == UInt8(ascii: ":") || text.starts(with: "READ of ") || text.starts(with: "WRITE of ") {
      heading = text.dropLast(text.last == UInt8(ascii: ":") ? 1 : 0).prefix(200).string
      return .taken
    }
    let known: [StaticString] = [
      "0x", "Location is ", "Hint: ", "The signal is caused ", "Shadow ", "=>", "Mutex ", "Address ", "==", "Could ",
      "HINT: ", "NOTE: ", "Register values", "AddressSanitizer can not",
    ]
    return known.contains { text.starts(with: $0) } ? .taken : .foreign
  }

  private static func isTitle(_ text: ArraySlice<UInt8>) -> Bool {
    text.contains("ERROR: AddressSanitizer: ") || text.contains("WARNING: ThreadSanitizer: ")
      || text.contains(" runtime error: ")
  }

  private mutating func readFrame(_ line: ArraySlice<UInt8>, isFirst: Bool) -> Bool {
    guard let parsed = SanitizerFrame(line, needsAddress: isFirst),
      isFirst ? parsed.index == 0 : parsed.index == 0 || parsed.index >= nextIndex
    else { return false }
    if parsed.index == 0 {
      // Only the first stack is the one that the report is about.
      let crashed = draft.report.threads.isEmpty
      draft.beginThread(name: crashed ? nil : heading, crashed: crashed)
    }
    nextIndex = parsed.index + 1
    var frame = parsed.frame
    if let module = parsed.module {
      // Without addresses the offset is all there is, and as good.
      if parsed.address == nil {
        (frame.captured.address, frame.captured.hasAddress) = (Address(rawValue: module.offset), true)
      }
      frame.captured.imageIndex = draft.image(
        path: module.path, address: frame.captured.address.rawValue, offset: module.offset, isVirtual: true,
        buildID: module.buildID)
    }
    draft.add(frame, hasAddress: parsed.address != nil || parsed.module != nil)
    return true
  }

  mutating func finish() -> CrashReport? {
    if !draft.hasFrames, let place {
      // No stack, but the place.
      var frame = SymbolicatedFrame(
        captured: CapturedFrame(kind: .programCounter, address: nil), status: .noSymbols,
        file: place.file,
        line: place.line, column: place.column, hasDebugInformation: true)
      frame.trust(as: .context)
      // Without a function the place alone tells one mistake from another.
      if let type = draft.report.type, let file = place.file, let line = place.line {
        draft.report.type = "\(type) at \(file.suffix(256)):\(line)"
      }
      draft.beginThread(crashed: true)
      draft.add(frame, hasAddress: false)
    }
    guard draft.hasFrames else { return nil }
    if draft.report.message == nil { draft.report.fatal = false }
    return draft.finished(format: "sanitizer report")
  }
}

extension SymbolicatedFrame {
  fileprivate mutating func trust(as trust: FrameTrust) { captured.trust = trust }
}

/// `#1 0x56120d2ea1f4 in mid(int*) /src/a.c:4:10`, `#1 0x7fc4… (/lib/libc.so.6+0x27249) (BuildId: 93ac…)`,
/// `#0 main /src/t.c:3 (t_gcc+0x1241)`
struct SanitizerFrame {
  struct Module {
    var path: String
    var offset: UInt64
    var buildID: BuildID?
  }

  var index: UInt64
  var address: UInt64?
  var module: Module?
  var frame: SymbolicatedFrame

  /// - Parameter needsAddress: without a title only a line with an address is known to be one of these; gdb's begin with
  ///   two spaces behind the number.
  init?(_ line: ArraySlice<UInt8>, needsAddress: Bool) {
    var scanner = LineScanner(line.trimmed)
    guard scanner.skip("#"), let index = scanner.decimal(), index < 100_000, scanner.skip(" "),
      !scanner.starts(with: " ")
    else { return nil }
    self.index = index
    address = scanner.hex()
    guard address != nil || !needsAddress else { return nil }
    // A call's address was moved into the call by the sanitizer.
    frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: .programCounter, address: address.map(Address.init(rawValue:))), status: .noSymbols)
    scanner.skipSpaces()
    let hasName = scanner.skip("in ") || address == nil
    var rest = scanner.rest.trimmed
    var buildID: BuildID?
    if rest.last == UInt8(ascii: ")"), let open = rest.lastIndex(of: "(BuildId: ") {
      buildID = BuildID(rest[(open + 10)...].dropLast().string)
      rest = rest[..<open].trimmed
    }
    if rest.last == UInt8(ascii: ")"), let plus = rest.lastIndex(of: "+0x"), let open = rest[..<plus].lastIndex(of: "(")
    {
      var offset = LineScanner(rest[(plus + 1)...])
      if let value = offset.hex(), offset.rest.count == 1, open + 1 < plus {
        module = Module(path: rest[(open + 1)..<plus].string, offset: value, buildID: buildID)
        rest = rest[..<open].trimmed
      }
    }
    guard hasName || rest.isEmpty || module != nil else { return nil }
    readName(rest)
    guard frame.function != nil || address != nil || module != nil else { return nil }
  }

  private mutating func readName(_ text: ArraySlice<UInt8>) {
    var name = text
    while name.ends(with: " <null>") { name = name.dropLast(7) }
    // The place is the last word that ends in a line number; of a path with spaces, what begins at ` /`.
    if let space = name.lastIndex(of: " /") ?? name.lastIndex(of: " ") {
      let place = SourcePlace(name[(space + 1)...])
      let isCompilers = name[(space + 1)...].starts(with: "<compiler-generated>")
      if place.line != nil || isCompilers {
        (frame.file, frame.line, frame.column) = (place.file, place.line, place.column)
        frame.hasDebugInformation = true
        name = name[..<space]
      }
    }
    name = name.trimmed
    guard !name.isEmpty, !name.equals("<null>"), !name.starts(with: "(") else { return }
    frame.status = .resolved
    let text = name.string
    frame.function = Demangler.simplified(text) ?? text
    if frame.function != text { frame.rawFunction = text }
  }
}
