extension CrashReport {
  /// The document `crash-report/1` as UTF-8, without a line feed behind it.
  ///
  /// Equal reports give equal bytes. Keys, types and meaning: `docs/crash-report.md`.
  ///
  /// ```swift
  /// let line = report.json() + [UInt8(ascii: "\n")]  // one line of an NDJSON file
  /// ```
  ///
  /// - Parameter pretty: one member a line, for people; such a document does not belong into NDJSON.
  public func json(pretty: Bool = false) -> [UInt8] {
    var writer = JSONWriter(pretty: pretty)
    write(to: &writer)
    return writer.bytes
  }

  /// Writes the report as one object.
  public func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("schema", Self.schema)
    writer.member("id", id)
    writer.member("kind", kind.rawValue)
    writer.key("fatal")
    writer.bool(fatal)
    writer.member("timestamp", timestamp)
    writer.member("type", type)
    writer.member("reason", reason?.rawValue)
    writer.member("message", message)
    writer.member("stack", stackText)
    writer.member("stack_hash", stackHash?.digits)
    writer.member("stack_hash_quality", stackHash?.quality.rawValue)
    writer.array("previous_stack_hashes", previousStackHashes) { writer, hash in
      writer.beginObject()
      writer.member("stack_hash", hash.digits)
      writer.member("stack_hash_quality", hash.quality.rawValue)
      writer.endObject()
    }
    writer.member("thread", crashedThreadIndex)
    if let signal { writer.signal(signal) }
    if let ending { writer.ending(ending) }
    if let hang { writer.hang(hang) }
    if let process { writer.process(process) }
    writer.member("service", service)
    writer.member("release", release)
    writer.member("environment", environment)
    writer.member("run_id", runID)
    writer.member("operation", operation)
    if let task { writer.task(task) }
    writer.member("user_id", userID)
    writer.tags(tags)
    writer.array("breadcrumbs", breadcrumbs) { $0.breadcrumb($1) }
    writer.member("suppressed_count", suppressedCount)
    writer.array("notes", notes) { $0.string($1) }
    writer.array("threads", threads) { $0.thread($1) }
    writer.array("images", images) { $0.image($1) }
    writer.endObject()
  }
}

extension JSONWriter {
  /// A key and a value, or neither where the value is unknown.
  public mutating func member(_ key: StaticString, _ value: String?) {
    guard let value else { return }
    self.key(key)
    string(value)
  }

  /// A key and a value, or neither where the value is unknown.
  public mutating func member(_ key: StaticString, _ value: (some BinaryInteger)?) {
    guard let value else { return }
    self.key(key)
    integer(value)
  }

  /// A key and an RFC 3339 text, or neither where the moment is unknown.
  public mutating func member(_ key: StaticString, _ value: Timestamp?) {
    guard let value else { return }
    self.key(key)
    string(length: Timestamp.rfc3339Length, value.writeRFC3339)
  }

  /// A key and `true`, or neither.
  public mutating func flag(_ key: StaticString, _ value: Bool) {
    guard value else { return }
    self.key(key)
    bool(true)
  }

  /// A key and an array, or neither where there are no elements.
  public mutating func array<Element>(
    _ key: StaticString, _ elements: [Element], _ write: (inout JSONWriter, Element) -> Void
  ) {
    guard !elements.isEmpty else { return }
    self.key(key)
    beginArray()
    // By index: an iterator hands out copies, and a frame is four Strings.
    for index in elements.indices { write(&self, elements[index]) }
    endArray()
  }

  fileprivate mutating func address(_ key: StaticString, _ value: Address?) {
    guard let value else { return }
    self.key(key)
    // Sixteen digits, so that addresses stand in columns and sort as text.
    hex(value.rawValue, digits: 16)
  }

  fileprivate mutating func signal(_ signal: SignalInfo) {
    key("signal")
    beginObject()
    member("number", signal.number)
    member("name", signal.name)
    member("code", signal.code)
    member("code_name", signal.codeName)
    address("address", signal.address)
    member("sender_pid", signal.senderPID)
    member("sender_uid", signal.senderUID)
    endObject()
  }

  fileprivate mutating func ending(_ ending: Ending) {
    key("ending")
    beginObject()
    member("kind", ending.kind.rawValue)
    member("exit_status", ending.exitStatus)
    array("evidence", ending.evidence) { $0.string($1) }
    array("could_also_be", ending.couldAlsoBe) { $0.string($1) }
    endObject()
  }

  fileprivate mutating func hang(_ hang: HangInfo) {
    key("hang")
    beginObject()
    member("watch", hang.watch)
    member("silent_ms", hang.silentMilliseconds)
    member("samples", hang.samples)
    member("duration_ms", hang.durationMilliseconds)
    endObject()
  }

  fileprivate mutating func process(_ process: ProcessInfo) {
    key("process")
    beginObject()
    member("id", process.id)
    member("executable", process.executable)
    member("host", process.host)
    member("system", process.system)
    member("architecture", process.architecture)
    member("start_time", process.startTime)
    endObject()
  }

  fileprivate mutating func task(_ task: TaskInfo) {
    key("task")
    beginObject()
    member("id", task.id)
    member("name", task.name)
    tags(task.locals, key: "locals")
    endObject()
  }

  /// An object. A key that was set twice is written once, with its last value: parsers differ on the second one.
  fileprivate mutating func tags(_ tags: [Tag], key name: StaticString = "tags") {
    guard !tags.isEmpty else { return }
    key(name)
    beginObject()
    var lastValues = Dictionary(tags.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    for tag in tags {
      guard let value = lastValues.removeValue(forKey: tag.key) else { continue }
      key(tag.key)
      string(value)
    }
    endObject()
  }

  fileprivate mutating func breadcrumb(_ breadcrumb: Breadcrumb) {
    beginObject()
    member("timestamp", breadcrumb.timestamp)
    member("category", breadcrumb.category)
    member("message", breadcrumb.message)
    endObject()
  }

  fileprivate mutating func thread(_ thread: ThreadInfo) {
    beginObject()
    member("id", thread.id)
    member("name", thread.name)
    flag("crashed", thread.crashed)
    member("depth", thread.depth)
    member("status", thread.status?.rawValue)
    member("staying_frames", thread.stayingFrames)
    if !thread.registers.isEmpty {
      key("registers")
      beginObject()
      for register in thread.registers {
        key(register.name)
        hex(register.value, digits: 16)
      }
      endObject()
    }
    array("frames", thread.frames) { $0.frame($1) }
    endObject()
  }

  fileprivate mutating func frame(_ frame: Frame) {
    beginObject()
    switch frame {
    case .captured(let frame): captured(frame)
    case .symbolicated(let frame):
      captured(frame.captured)
      member("status", frame.status.rawValue)
      member("function", frame.function)
      member("raw_function", frame.rawFunction)
      member("file", frame.file)
      member("line", frame.line)
      member("column", frame.column)
      member("declaration_line", frame.declarationLine)
      flag("approximate", frame.approximate)
      flag("inlined", frame.inlined)
      if let inApp = frame.inApp {
        key("in_app")
        bool(inApp)
      }
      flag("debug_information", frame.hasDebugInformation)
      if let source = frame.source { self.source(source) }
    case .omitted(let count):
      member("kind", "omitted")
      member("count", count)
    }
    endObject()
  }

  private mutating func source(_ source: SourceLines) {
    key("source")
    beginObject()
    member("first_line", source.firstLine)
    array("lines", source.lines) { $0.string($1) }
    endObject()
  }

  private mutating func captured(_ frame: CapturedFrame) {
    member("kind", frame.kind.rawValue)
    member("trust", frame.trust?.rawValue)
    if frame.hasAddress { address("address", frame.address) }
    member("image_index", frame.imageIndex)
    if let offset = frame.imageOffset {
      key("image_offset")
      hex(offset.rawValue)
    }
  }

  fileprivate mutating func image(_ image: Image) {
    beginObject()
    member("path", image.path)
    if let id = image.buildID {
      key("build_id")
      string(length: 2 * id.bytes.count) { Hex.write(id.bytes, to: $0) }
    }
    address("address", image.address)
    member("size", image.size)
    if image.firstVirtualAddress != 0 {
      key("first_virtual_address")
      hex(image.firstVirtualAddress)
    }
    flag("unloaded", image.isUnloaded)
    endObject()
  }
}
