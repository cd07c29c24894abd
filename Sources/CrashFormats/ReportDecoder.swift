internal import CrashModel

/// Turns the members of one document into a report.
struct ReportDecoder {
  /// Values that were left out, once each however often they stand there.
  private var notes: [String] = []
  private let detail: ReportReader.Detail

  init(detail: ReportReader.Detail = .all) { self.detail = detail }

  private static let reportKinds = Vocabulary(ReportKind.self)
  private static let qualities = Vocabulary(StackHash.Quality.self)
  private static let endingKinds = Vocabulary(Ending.Kind.self)
  private static let threadStatuses = Vocabulary(ThreadStatus.self)
  private static let frameKinds = Vocabulary(FrameKind.self)
  private static let frameTrusts = Vocabulary(FrameTrust.self)
  private static let frameStatuses = Vocabulary(FrameStatus.self)

  mutating func report(_ root: JSONValue) throws(ReportError) -> CrashReport {
    var report = CrashReport(id: "")
    var hasID = false
    var digits: String?
    var quality: StackHash.Quality?
    let onlyThread = detail == .crash ? crashedThread(of: root) : nil
    // `forEachMember` borrows nothing of self, so the notes travel in a copy.
    var decoder = self
    try root.forEachMember { key, value throws(ReportError) in
      if decoder.detail == .crash, Self.isOfNoCrash(key) { return }
      switch key {
      case "id":
        report.id = try value.string()
        hasID = true
      case "kind": report.kind = try decoder.choice(value, "kind", of: Self.reportKinds) ?? .crash
      case "fatal": report.fatal = try value.bool()
      case "timestamp": report.timestamp = try decoder.timestamp(value)
      case "type": report.type = try value.string()
      case "reason": report.reason = Reason(rawValue: try value.string())
      case "message": report.message = try value.string()
      case "stack": _ = try value.bytes()  // made from the threads: read for its type only
      case "stack_hash": digits = try decoder.hashDigits(value)
      case "stack_hash_quality": quality = try decoder.choice(value, "stack_hash_quality", of: Self.qualities)
      case "previous_stack_hashes":
        report.previousStackHashes = try decoder.elements(value) { decoder, element throws(ReportError) in
          try decoder.stackHash(element)
        }.compactMap { $0 }
      case "thread": report.crashedThreadIndex = try value.integer(0...Int(Int32.max))
      case "signal": report.signal = try decoder.signal(value)
      case "ending": report.ending = try decoder.ending(value)
      case "hang": report.hang = try decoder.hang(value)
      case "process": report.process = try decoder.process(value)
      case "service": report.service = try value.string()
      case "release": report.release = try value.string()
      case "environment": report.environment = try value.string()
      case "run_id": report.runID = try value.string()
      case "operation": report.operation = try value.string()
      case "task": report.task = try decoder.task(value)
      case "user_id": report.userID = try value.string()
      case "tags": report.tags = try decoder.tags(value)
      case "breadcrumbs":
        report.breadcrumbs = try decoder.elements(value) { decoder, element throws(ReportError) in
          try decoder.breadcrumb(element)
        }
      case "suppressed_count": report.suppressedCount = try value.integer(0...Int.max)
      case "notes":
        report.notes = try decoder.elements(value) { _, element throws(ReportError) in try element.string() }
      case "threads":
        report.threads.reserveCapacity(value.elementCount)
        try value.forEachElement { element throws(ReportError) in
          let isWanted = onlyThread.map { $0 == report.threads.count } ?? true
          report.threads.append(isWanted ? try decoder.thread(element) : ThreadInfo())
        }
      case "images":
        report.images = try decoder.elements(value) { decoder, element throws(ReportError) in
          try decoder.image(element)
        }
      default: break
      }
    }
    guard hasID else { throw ReportError("missing", path: "id") }
    if let digits {
      if let quality {
        report.stackHash = StackHash(digits: digits, quality: quality)
      } else {
        decoder.note("stack_hash without a known stack_hash_quality was left out")
      }
    }
    if let index = report.crashedThreadIndex, !report.threads.indices.contains(index) {
      decoder.note("thread \(index) is said to have crashed; there are \(report.threads.count) threads")
      report.crashedThreadIndex = nil
    }
    if report.crashedThreadIndex == nil { report.crashedThreadIndex = report.threads.firstIndex(where: \.crashed) }
    for note in decoder.notes where !report.notes.contains(note) { report.notes.append(note) }
    self = decoder
    return report
  }

  /// What says nothing of which crash it was.
  private static func isOfNoCrash(_ key: JSONKey) -> Bool {
    switch key {
    // Not the tags: by one of them a program says itself which crashes belong together.
    case "stack", "operation", "task", "user_id", "breadcrumbs": true
    default: false
    }
  }

  /// The only thread whose frames are wanted; nil where the report does not say which crashed.
  private func crashedThread(of root: JSONValue) -> Int? {
    root.member("thread").flatMap { value in try? value.integer(0...Int(Int32.max)) }
  }

  // MARK: Parts

  private func task(_ value: JSONValue) throws(ReportError) -> TaskInfo {
    var task = TaskInfo(id: 0)
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "id": task.id = try value.integer()
      case "name": task.name = try value.string()
      case "locals": task.locals = try tags(value)
      default: break
      }
    }
    return task
  }

  private mutating func stackHash(_ value: JSONValue) throws(ReportError) -> StackHash? {
    var digits: String?
    var quality: StackHash.Quality?
    var decoder = self
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "stack_hash": digits = try decoder.hashDigits(value)
      case "stack_hash_quality": quality = try decoder.choice(value, "stack_hash_quality", of: Self.qualities)
      default: break
      }
    }
    self = decoder
    guard let digits else { throw ReportError("missing", path: "stack_hash") }
    return quality.map { StackHash(digits: digits, quality: $0) }
  }

  private func hashDigits(_ value: JSONValue) throws(ReportError) -> String {
    let text = try value.string()
    let isHash =
      text.utf8.count == 32
      && text.utf8.allSatisfy {
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0
      }
    guard isHash else { throw ReportError("expected 32 lower-case hex digits") }
    return text
  }

  private func signal(_ value: JSONValue) throws(ReportError) -> SignalInfo {
    var signal = SignalInfo(number: 0, name: "")
    var hasNumber = false
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "number":
        signal.number = try value.integer()
        hasNumber = true
      case "name": signal.name = try value.string()
      case "code": signal.code = try value.integer()
      case "code_name": signal.codeName = try value.string()
      case "address": signal.address = Address(rawValue: try value.hex())
      case "sender_pid": signal.senderPID = try value.integer()
      case "sender_uid": signal.senderUID = try value.integer()
      default: break
      }
    }
    guard hasNumber else { throw ReportError("missing", path: "number") }
    if signal.name.isEmpty { signal.name = "SIG\(signal.number)" }
    return signal
  }

  private mutating func ending(_ value: JSONValue) throws(ReportError) -> Ending {
    var ending = Ending(kind: .unknown)
    var decoder = self
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "kind": ending.kind = try decoder.choice(value, "ending", of: Self.endingKinds) ?? .unknown
      case "exit_status": ending.exitStatus = try value.integer()
      case "evidence":
        ending.evidence = try decoder.elements(value) { _, element throws(ReportError) in try element.string() }
      case "could_also_be":
        ending.couldAlsoBe = try decoder.elements(value) { _, element throws(ReportError) in try element.string() }
      default: break
      }
    }
    self = decoder
    return ending
  }

  private func hang(_ value: JSONValue) throws(ReportError) -> HangInfo {
    var hang = HangInfo(watch: "")
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "watch": hang.watch = try value.string()
      case "silent_ms": hang.silentMilliseconds = try value.integer()
      case "duration_ms": hang.durationMilliseconds = try value.integer()
      case "samples": hang.samples = try value.integer(0...Int(Int32.max))
      default: break
      }
    }
    return hang
  }

  private func process(_ value: JSONValue) throws(ReportError) -> ProcessInfo {
    var process = ProcessInfo()
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "id": process.id = try value.integer()
      case "executable": process.executable = try value.string()
      case "host": process.host = try value.string()
      case "system": process.system = try value.string()
      case "architecture": process.architecture = try value.string()
      case "start_time": process.startTime = try timestamp(value)
      default: break
      }
    }
    return process
  }

  private func tags(_ value: JSONValue) throws(ReportError) -> [Tag] {
    var tags: [Tag] = []
    var places: [String: Int] = [:]
    try value.forEachMember { key, value throws(ReportError) in
      let tag = Tag(key: key.string, value: try value.string())
      // A key that stands twice: the last one holds, as for every parser that makes a dictionary of it.
      if let place = places[tag.key] {
        tags[place] = tag
      } else {
        places[tag.key] = tags.count
        tags.append(tag)
      }
    }
    return tags
  }

  private func breadcrumb(_ value: JSONValue) throws(ReportError) -> Breadcrumb {
    var moment: Timestamp?
    var category: String?
    var message = ""
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "timestamp": moment = try timestamp(value)
      case "category": category = try value.string()
      case "message": message = try value.string()
      default: break
      }
    }
    guard let moment else { throw ReportError("missing", path: "timestamp") }
    return Breadcrumb(timestamp: moment, category: category, message: message)
  }

  private mutating func thread(_ value: JSONValue) throws(ReportError) -> ThreadInfo {
    var thread = ThreadInfo()
    var decoder = self
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "id": thread.id = try value.integer()
      case "name": thread.name = try value.string()
      case "crashed": thread.crashed = try value.bool()
      case "depth": thread.depth = try value.integer()
      case "status": thread.status = try decoder.choice(value, "thread status", of: Self.threadStatuses)
      case "staying_frames": thread.stayingFrames = try value.integer(0...Int(Int32.max))
      case "registers":
        try value.forEachMember { name, value throws(ReportError) in
          // Whether the stack overflowed, its pointer says.
          if decoder.detail == .crash, !("rsp" ~= name), !("sp" ~= name) { return }
          thread.registers.append(ThreadInfo.Register(name: name.string, value: try value.hex()))
        }
      case "frames":
        thread.frames = try decoder.elements(value) { decoder, element throws(ReportError) in
          try decoder.frame(element)
        }
      default: break
      }
    }
    self = decoder
    return thread
  }

  private mutating func frame(_ value: JSONValue) throws(ReportError) -> Frame {
    var captured = CapturedFrame(kind: .programCounter, address: nil)
    var names = SymbolicatedFrame(captured: captured, status: .noSymbols)
    var function: String?
    var rawFunction: String?
    var file: String?
    var kind: UnsafeRawBufferPointer?
    var count: UInt64?
    var statusText: UnsafeRawBufferPointer?
    var decoder = self
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "kind": kind = try value.bytes()
      case "count": count = try value.integer()
      case "trust": captured.trust = try decoder.choice(value, "trust", of: Self.frameTrusts)
      case "address":
        captured.address = Address(rawValue: try value.hex())
        captured.hasAddress = true
      case "image_index": captured.imageIndex = try value.integer(0...Int(Int32.max))
      case "image_offset": captured.imageOffset = ImageOffset(rawValue: try value.hex())
      case "status": statusText = try value.bytes()
      case "function": function = try value.string()
      case "raw_function": rawFunction = try value.string()
      case "file": file = try value.string()
      case "line": names.line = try value.integer(0...Int(Int32.max))
      case "column": names.column = try value.integer(0...Int(Int32.max))
      case "declaration_line": names.declarationLine = try value.integer(0...Int(Int32.max))
      case "approximate": names.approximate = try value.bool()
      case "inlined": names.inlined = try value.bool()
      case "in_app": names.inApp = try value.bool()
      case "debug_information": names.hasDebugInformation = try value.bool()
      case "source": if decoder.detail == .all { names.source = try Self.source(value) }
      default: break
      }
    }
    defer { self = decoder }
    guard let kind else { throw ReportError("missing", path: "kind") }
    if "omitted" ~= JSONKey(bytes: kind) {
      guard let count else { throw ReportError("missing", path: "count") }
      return .omitted(count: count)
    }
    if let known = Self.frameKinds[kind] {
      captured.kind = known
    } else {
      decoder.note("frame kind \(Self.quoted(kind)) is not known; its address is looked up as it is")
    }
    guard let statusText else { return .captured(captured) }
    if let status = Self.frameStatuses[statusText] {
      names.status = status
    } else {
      names.status = function == nil ? .noSymbols : .resolved
      decoder.note("frame status \(Self.quoted(statusText)) is not known")
    }
    names.captured = captured
    names.names = .of(function: function, rawFunction: rawFunction, file: file)
    return .symbolicated(names)
  }

  private static func source(_ value: JSONValue) throws(ReportError) -> SourceLines {
    var firstLine: Int?
    var lines: [String] = []
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "first_line": firstLine = try value.integer(0...Int(Int32.max))
      case "lines":
        lines.removeAll()
        try value.forEachElement { line throws(ReportError) in lines.append(try line.string()) }
      default: break
      }
    }
    guard let firstLine else { throw ReportError("missing", path: "first_line") }
    return SourceLines(firstLine: firstLine, lines: lines)
  }

  private func image(_ value: JSONValue) throws(ReportError) -> Image {
    var image = Image(path: "", buildID: nil, address: Address(rawValue: 0), size: 0)
    var hasAddress = false
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "path": image.path = try value.string()
      case "build_id":
        guard let id = BuildID(hexDigits: try value.bytes()) else {
          throw ReportError("expected an even number of hex digits")
        }
        image.buildID = id
      case "address":
        image.address = Address(rawValue: try value.hex())
        hasAddress = true
      case "size": image.size = try value.integer()
      case "first_virtual_address": image.firstVirtualAddress = try value.hex()
      case "unloaded": image.isUnloaded = try value.bool()
      default: break
      }
    }
    guard hasAddress else { throw ReportError("missing", path: "address") }
    return image
  }

  // MARK: Values

  private mutating func elements<Element>(
    _ value: JSONValue, _ decode: (inout ReportDecoder, JSONValue) throws(ReportError) -> Element
  ) throws(ReportError) -> [Element] {
    var elements: [Element] = []
    elements.reserveCapacity(value.elementCount)
    var decoder = self
    try value.forEachElement { element throws(ReportError) in elements.append(try decode(&decoder, element)) }
    self = decoder
    return elements
  }

  private func timestamp(_ value: JSONValue) throws(ReportError) -> Timestamp {
    let text = try value.bytes("an RFC 3339 time")
    guard let moment = Timestamp(rfc3339: text) else {
      throw ReportError("expected an RFC 3339 time, found \(Self.quoted(text, characters: 40))")
    }
    return moment
  }

  /// A value of a closed list; nil and a note for one that is not in it.
  private mutating func choice<Choice>(
    _ value: JSONValue, _ what: String, of vocabulary: Vocabulary<Choice>
  ) throws(ReportError) -> Choice? {
    let text = try value.bytes()
    if let choice = vocabulary[text] { return choice }
    note("\(what) \(Self.quoted(text)) is not known and was left out")
    return nil
  }

  private static func quoted(_ text: UnsafeRawBufferPointer, characters: Int = 64) -> String {
    Printable.quoted(String(String(decoding: text, as: UTF8.self).prefix(characters)))
  }

  private mutating func note(_ text: String) {
    // Bounded: a hostile document could hold a new word in each of a million frames.
    guard notes.count < 16, !notes.contains(text) else { return }
    notes.append(text)
  }
}
