internal import CrashModel

/// A native event of Sentry's format, as sentry-native sends it and a tracker gives it back.
struct SentryEvent {
  private let root: JSONValue
  private let stacks: [(value: JSONValue, crashed: Bool)]

  /// - Returns: nil for an object without a stack of addresses.
  init?(_ root: JSONValue) {
    var stacks: [(JSONValue, Bool)] = []
    func add(_ list: JSONValue?, isException: Bool) {
      guard let values = list?.member("values") ?? list else { return }
      try? values.forEachElement { (element) throws(ReportError) in
        if stacks.count < ReportDraft.threadLimit, element.isObject { stacks.append((element, isException)) }
      }
    }
    add(root.member("exception"), isException: true)
    // Of a chain of errors the last one is what was thrown in the end.
    stacks = stacks.suffix(1)
    add(root.member("threads"), isException: false)
    guard stacks.contains(where: { Self.hasAddresses($0.0) }) else { return nil }
    self.root = root
    self.stacks = stacks.map { ($0.0, $0.1) }
  }

  private static func frames(_ stack: JSONValue) -> JSONValue? {
    (stack.member("stacktrace") ?? stack.member("raw_stacktrace"))?.member("frames")
  }

  private static func hasAddresses(_ stack: JSONValue) -> Bool {
    var found = false
    try? frames(stack)?.forEachElement { (frame) throws(ReportError) in
      if !found, frame.isObject, frame.member("instruction_addr") != nil { found = true }
    }
    return found
  }

  func report() throws(ReportError) -> CrashReport {
    var draft = ReportDraft()
    let exception = stacks.first { $0.crashed }?.value
    readTop(&draft, exception: exception)
    if let images = root.member("debug_meta")?.member("images") {
      try images.forEachElement { element throws(ReportError) in
        if let image = try Self.image(element) { draft.add(image) }
      }
    }
    let exceptionThread = exception?.member("thread_id").flatMap(Self.identifier)
    for (stack, isException) in stacks {
      let id = stack.member(isException ? "thread_id" : "id").flatMap(Self.identifier)
      // The thread of the exception stands in both lists.
      let isRepeated =
        !isException && exception.map { Self.frames($0) != nil } == true && id != nil && id == exceptionThread
      if isRepeated {
        if let name = try? stack.member("name")?.string() { draft.report.threads[0].name = name }
        continue
      }
      let crashed = isException || (try? stack.member("crashed")?.bool()) == true
      draft.beginThread(
        name: try? stack.member("name")?.string(), id: id.flatMap { UInt32(exactly: $0) },
        crashed: crashed && !draft.report.threads.contains(where: \.crashed))
      try Self.readStack(stack, &draft)
    }
    return draft.finished(format: "event")
  }

  private static func identifier(_ value: JSONValue) -> UInt64? {
    if let number: UInt64 = try? value.integer() { return number }
    return (try? value.string()).flatMap { UInt64($0) }
  }

  private func readTop(_ draft: inout ReportDraft, exception: JSONValue?) {
    let time = root.member("timestamp")
    draft.report.timestamp = (try? time?.string()).flatMap { $0 }.flatMap {
      Timestamp(rfc3339: $0) ?? Timestamp(rfc3339: $0 + "Z")
    }
    draft.report.release = try? root.member("release")?.string()
    draft.report.environment = try? root.member("environment")?.string()
    var process = ProcessInfo()
    process.host = try? root.member("server_name")?.string()
    process.architecture = (try? root.member("contexts")?.member("device")?.member("arch")?.string()).flatMap { $0 }
      .flatMap(SwiftSignal.architecture)
    draft.report.process = process
    guard let exception else { return }
    draft.report.type = try? exception.member("type")?.string()
    draft.report.message = try? exception.member("value")?.string()
    let meta = exception.member("mechanism")?.member("meta")?.member("signal")
    if let number: Int32 = try? meta?.member("number")?.integer() {
      let type = draft.report.type
      draft.setSignal(number)
      draft.report.signal?.code = try? meta?.member("code")?.integer()
      draft.report.signal?.codeName = try? meta?.member("code_name")?.string()
      if let type, !type.isEmpty, type.hasPrefix("SIG") { draft.report.type = type }
    }
  }

  private static func image(_ value: JSONValue) throws(ReportError) -> Image? {
    guard let address = value.member("image_addr").flatMap(number) else { return nil }
    var image = Image(path: "", buildID: nil, address: Address(rawValue: address), size: 0)
    image.path =
      (try? value.member("code_file")?.string()).flatMap { $0 } ?? (try? value.member("debug_file")?.string()).flatMap {
        $0
      } ?? ""
    image.size = value.member("image_size").flatMap(number) ?? 0
    image.firstVirtualAddress = value.member("image_vmaddr").flatMap(number) ?? 0
    if let text = try? value.member("code_id")?.string() { image.buildID = BuildID(text) }
    return image
  }

  /// A number, or the text of one: trackers write either.
  private static func number(_ value: JSONValue) -> UInt64? {
    if let number: UInt64 = try? value.integer() { return number }
    guard let text = try? value.string() else { return nil }
    return text.hasPrefix("0x") ? Hex.value(text) : UInt64(text)
  }

  private static func readStack(_ stack: JSONValue, _ draft: inout ReportDraft) throws(ReportError) {
    let trace = stack.member("stacktrace") ?? stack.member("raw_stacktrace")
    try trace?.member("registers")?.forEachMember { key, value throws(ReportError) in
      guard let number = number(value) else { return }
      draft.withThread {
        if $0.registers.count < 128 { $0.registers.append(.init(name: String(key.string.prefix(16)), value: number)) }
      }
    }
    var frames: [SymbolicatedFrame] = []
    var images: [String?] = []
    try Self.frames(stack)?.forEachElement { element throws(ReportError) in
      guard frames.count < ReportDraft.frameLimit, element.isObject else { return }
      frames.append(try frame(element))
      images.append(try? element.member("package")?.string())
    }
    // Oldest first there, innermost first here.
    for (position, frame) in frames.enumerated().reversed() {
      var frame = frame
      let isInnermost = position == frames.count - 1
      // The functions inlined into the innermost frame have its address, and so its kind.
      if isInnermost || frame.captured.address == frames.last?.captured.address {
        frame.captured.kind = .programCounter
      }
      let previous = position > 0 ? frames[position - 1] : nil
      frame.inlined =
        frame.inlined
        || frame.function != nil && previous?.captured.address == frame.captured.address && previous?.function != nil
      frame.captured.imageIndex = images[position].flatMap { draft.imageIndex(ofUnlisted: $0) }
      draft.add(frame, hasAddress: frame.captured.hasAddress)
    }
  }

  private static func frame(_ value: JSONValue) throws(ReportError) -> SymbolicatedFrame {
    let address = value.member("instruction_addr").flatMap(number)
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: .returnAddress, address: address.map(Address.init(rawValue:))), status: .noSymbols)
    frame.rawFunction = try? value.member("raw_function")?.string()
    frame.function = (try? value.member("function")?.string()).flatMap { $0 }
    if let function = frame.function {
      frame.status = .resolved
      if let simple = Demangler.simplified(function) { (frame.function, frame.rawFunction) = (simple, function) }
    }
    frame.file =
      (try? value.member("abs_path")?.string()).flatMap { $0 }
      ?? (try? value.member("filename")?.string()).flatMap { $0 }
    frame.line = try? value.member("lineno")?.integer(0...Int(Int32.max))
    frame.column = try? value.member("colno")?.integer(0...Int(Int32.max))
    frame.inApp = try? value.member("in_app")?.bool()
    frame.hasDebugInformation = frame.line != nil
    return frame
  }
}
