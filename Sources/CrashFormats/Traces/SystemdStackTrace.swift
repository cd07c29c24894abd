internal import CrashModel

/// What systemd-coredump writes to the journal and `coredumpctl info` shows:
///
/// ```
/// Process 16903 (api) of user 1000 dumped core.
/// Module /srv/api with build-id a4b7e00e1409a2223c02df7c20e9291932ccdc25
/// Stack trace of thread 16903:
/// #0  0x00007fb109a9318b raise (libc.so.6 + 0x3a18b)
/// ```
///
/// `journalctl -o verbose` and `-o export` show the journal's fields around it, each on a line: `COREDUMP_SIGNAL=4`.
struct SystemdStackTrace: TraceReader {
  static let name = "stack trace of systemd-coredump"
  static let patience = 6

  private(set) var draft = ReportDraft()
  private var process = ProcessInfo()
  private var buildIDs: [String: BuildID] = [:]
  private var nextIndex: UInt64 = 0
  /// The journal's fields stand around the message, in any order.
  private var showsFields = false

  /// One of which the journal's fields are known, and nothing else yet.
  init(_ fields: CoreDumpFields) { take(fields) }

  init?(beginning line: ArraySlice<UInt8>) {
    var text = line.trimmed
    if text.starts(with: "MESSAGE=") {
      text = text.dropFirst(8)
      showsFields = true
    }
    if readJournalField(text) {
      // A process, or what is said of one.
    } else if let thread = Self.thread(text) {
      draft.beginThread(id: thread, crashed: true)
    } else if let (id, _) = Self.process(text) {
      process.id = id
    } else if let id = Self.coredumpctlProcess(text) {
      process.id = id
    } else if !readFrame(text) {
      return nil
    }
  }

  /// `Stack trace of thread 16903:`
  private static func thread(_ text: ArraySlice<UInt8>) -> UInt32? {
    var scanner = LineScanner(text)
    guard scanner.skip("Stack trace of thread "), let id = scanner.decimal(), scanner.skip(":") else { return nil }
    return UInt32(exactly: id)
  }

  /// `Process 16903 (api) of user 1000 dumped core.`
  private static func process(_ text: ArraySlice<UInt8>) -> (id: Int32, name: ArraySlice<UInt8>)? {
    var scanner = LineScanner(text)
    guard scanner.skip("Process "), let id = scanner.decimal(), let id = Int32(exactly: id), scanner.skip(" ("),
      let name = scanner.up(to: ") of user "), scanner.rest.contains(" dumped core")
    else { return nil }
    return (id, name)
  }

  /// `PID: 16903 (api)`
  private static func coredumpctlProcess(_ text: ArraySlice<UInt8>) -> Int32? {
    var scanner = LineScanner(text)
    guard scanner.skip("PID: "), let id = scanner.decimal(), scanner.skip(" ("), scanner.rest.last == UInt8(ascii: ")")
    else { return nil }
    return Int32(exactly: id)
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    var text = line.trimmed
    if text.isEmpty { return .taken }
    if showsFields, text.contains(" [s=") || text.starts(with: "__CURSOR=") || isOfAnotherProcess(text) {
      return .behind
    }
    if text.starts(with: "Message: ") { text = text.dropFirst(9) }
    if readJournalField(text) { return .taken }
    if text.starts(with: "MESSAGE=") { text = text.dropFirst(8) }
    if let (id, _) = Self.process(text) {
      guard !draft.hasFrames || process.id == id else { return .behind }
      process.id = id
      return .taken
    }
    if Self.coredumpctlProcess(text) != nil { return draft.hasFrames ? .behind : .taken }
    if let thread = Self.thread(text) {
      draft.beginThread(id: thread, crashed: draft.report.threads.isEmpty)
      nextIndex = 0
      return .taken
    }
    if readFrame(text) { return .taken }
    if readModule(text) || readField(text) { return .taken }
    if text.starts(with: "ELF object binary architecture: ") {
      let name = text.dropFirst(32).string
      process.architecture = name.contains("x86-64") ? "x86_64" : name.contains("AARCH64") ? "aarch64" : name
      return draft.hasFrames && !showsFields ? .last : .taken
    }
    // Other fields, and the further lines of one.
    if showsFields, Self.isField(text) || line.prefix(while: { $0 == 0x20 }).count >= 12 { return .taken }
    return .foreign
  }

  private static func isField(_ text: ArraySlice<UInt8>) -> Bool {
    let name = text.prefix { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 || $0 == UInt8(ascii: "_") || $0.isASCIIDigit }
    return !name.isEmpty && text[name.endIndex...].first == UInt8(ascii: "=")
  }

  private func isOfAnotherProcess(_ text: ArraySlice<UInt8>) -> Bool {
    guard let known = process.id, let id = CoreDumpFields(line: text)?.process else { return false }
    return id != known
  }

  private mutating func readJournalField(_ text: ArraySlice<UInt8>) -> Bool {
    guard let fields = CoreDumpFields(line: text) else { return false }
    take(fields)
    return true
  }

  /// Whether the fields can be of the process that is being read.
  func isOfSameProcess(_ fields: CoreDumpFields) -> Bool { process.id == nil || process.id == fields.process }

  mutating func take(_ fields: CoreDumpFields) {
    showsFields = true
    process.id = fields.process ?? process.id
    process.executable = fields.executable ?? process.executable
    process.host = fields.host ?? process.host
    draft.report.timestamp = fields.timestamp ?? draft.report.timestamp
    if let number = fields.signal { draft.setSignal(number) }
  }

  /// `#1  0x00007fb109a94585 abort (libc.so.6 + 0x3b585)`
  private mutating func readFrame(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    guard scanner.skip("#"), let index = scanner.decimal(), index >= nextIndex, scanner.skipSpaces() > 0,
      let address = scanner.hex(), scanner.skipSpaces() > 0, scanner.rest.last == UInt8(ascii: ")"),
      let open = scanner.rest.lastIndex(of: " (")
    else { return false }
    let name = scanner.rest[..<open].trimmed
    let module = scanner.rest[(open + 2)...].dropLast()
    // gdb's lines have parentheses at the end, too.
    guard !name.starts(with: "in "), module.equals("n/a") || module.contains(" + 0x") else { return false }
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: index == 0 ? .programCounter : .returnAddress, address: Address(rawValue: address)),
      status: .noSymbols)
    if !name.isEmpty, !name.equals("n/a") {
      frame.status = .resolved
      let text = name.string
      frame.function = Demangler.simplified(text) ?? text
      if frame.function != text { frame.rawFunction = text }
    }
    if let plus = module.lastIndex(of: " + "), !module.starts(with: "n/a ") {
      var offset = LineScanner(module[(plus + 3)...])
      if let value = offset.hex() {
        frame.captured.imageIndex = draft.image(
          path: module[..<plus].string, address: address, offset: value, isVirtual: false)
      }
    }
    if draft.report.threads.isEmpty { draft.beginThread(crashed: true) }
    draft.add(frame)
    nextIndex = index + 1
    return true
  }

  /// `Module /srv/api with build-id a4b7…`, `Found module libc.so.6 with build-id: 93ac…`
  private mutating func readModule(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    guard scanner.skip("Module ") || scanner.skip("Found module ") || scanner.skip("Metadata for module ") else {
      return false
    }
    guard let name = scanner.up(to: " with build-id") else { return true }
    _ = scanner.skip(":")
    scanner.skipSpaces()
    let id = scanner.word().prefix { $0.isHexDigit }
    if buildIDs.count < ReportDraft.imageLimit { buildIDs[Self.fileName(name.trimmed)] = BuildID(id.string) }
    return true
  }

  private static func fileName(_ path: ArraySlice<UInt8>) -> String {
    path.lastIndex(of: UInt8(ascii: "/")).map { path[($0 + 1)...].string } ?? path.string
  }

  /// The fields of `coredumpctl info`.
  private mutating func readField(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    if scanner.skip("Signal: ") {
      if let number = scanner.decimal(), let number = Int32(exactly: number) { draft.setSignal(number) }
      return true
    }
    if scanner.skip("Executable: ") {
      process.executable = scanner.rest.trimmed.string
      return true
    }
    if scanner.skip("Hostname: ") {
      process.host = scanner.rest.trimmed.string
      return true
    }
    if scanner.skip("Timestamp: ") {
      let prefix = LogPrefix(scanner.rest + Array(" x".utf8))
      draft.report.timestamp = prefix.timestamp ?? draft.report.timestamp
      return true
    }
    let fields: [StaticString] = [
      "UID: ", "GID: ", "Command Line: ", "Control Group: ", "Unit: ", "Slice: ", "Boot ID: ",
      "Machine ID: ",
      "Storage: ", "Size on Disk: ", "Disk Size: ", "Session: ", "Owner UID: ", "User Unit: ", "Package: ",
      "build-id: ", "Message: ", "Coredump: ",
    ]
    return fields.contains { text.starts(with: $0) }
  }

  mutating func finish() -> CrashReport? {
    guard draft.hasFrames else { return nil }
    draft.report.process = process
    for index in draft.report.images.indices where draft.report.images[index].buildID == nil {
      draft.report.images[index].buildID = buildIDs[draft.report.images[index].name]
    }
    return draft.finished(format: "stack trace")
  }
}
