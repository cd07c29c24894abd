internal import CrashModel

/// The Swift runtime's crash log as JSON (`format=json`), since 6.1.
struct SwiftJSONLog {
  private let root: JSONValue

  /// - Returns: nil for another object.
  init?(_ root: JSONValue) {
    guard (try? root.member("kind")?.string()) == "crashReport", root.member("threads") != nil else { return nil }
    self.root = root
  }

  func report() throws(ReportError) -> CrashReport {
    var draft = ReportDraft()
    var process = ProcessInfo()
    var description = ""
    var faultAddress: UInt64?
    var omittedThreads: UInt64?
    var threads: JSONValue?
    try root.forEachMember { key, value throws(ReportError) in
      switch key {
      case "timestamp": draft.report.timestamp = Timestamp(rfc3339: try value.string())
      case "description": description = try value.string()
      case "faultAddress": faultAddress = try value.hex()
      case "platform": process.system = SwiftSignal.system(try value.string())
      case "architecture": process.architecture = SwiftSignal.architecture(try value.string())
      case "threads": threads = value
      case "omittedThreads": omittedThreads = try value.integer()
      case "images":
        try value.forEachElement { element throws(ReportError) in draft.add(try Self.image(element)) }
      default: break
      }
    }
    draft.report.process = process
    Self.setCause(description, faultAddress, of: &draft)
    if let threads {
      do throws(ReportError) {
        try threads.forEachElement { element throws(ReportError) in try Self.thread(element, &draft) }
      } catch {
        throw error.inside(key: "threads")
      }
    }
    if let omittedThreads { draft.note("\(omittedThreads) other threads were left out of the log") }
    return draft.finished(format: "log", advice: SwiftSignal.adviceForImages)
  }

  private static func setCause(_ description: String, _ address: UInt64?, of draft: inout ReportDraft) {
    if description.hasPrefix(runtimeFailurePrefix) {
      draft.report.reason = Reason(runtimeFailure: String(description.dropFirst(runtimeFailurePrefix.count)))
      return
    }
    guard let number = SwiftSignal.number(description: description) else {
      if !description.isEmpty { draft.report.message = description }
      return
    }
    draft.setSignal(number)
    guard let address else { return }
    if number == 6 || number == 3 {
      draft.report.signal?.senderPID = Int32(exactly: address & 0xffff_ffff)
    } else {
      draft.report.signal?.address = Address(rawValue: address)
    }
  }

  private static func image(_ value: JSONValue) throws(ReportError) -> Image {
    var image = Image(path: "", buildID: nil, address: Address(rawValue: 0), size: 0)
    var name = ""
    var end: UInt64 = 0
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "name": name = try value.string()
      case "path": image.path = try value.string()
      case "buildId": image.buildID = BuildID(try value.string())
      case "baseAddress": image.address = Address(rawValue: try value.hex())
      case "endOfText": end = try value.hex()
      default: break
      }
    }
    if image.path.isEmpty { image.path = name }
    image.size = end > image.address.rawValue ? end - image.address.rawValue : 0
    return image
  }

  private static func thread(_ value: JSONValue, _ draft: inout ReportDraft) throws(ReportError) {
    draft.beginThread()
    var frames: JSONValue?
    var registers: [ThreadInfo.Register] = []
    var (name, crashed): (String?, Bool) = (nil, false)
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "name": name = try value.string()
      case "crashed": crashed = try value.bool()
      case "registers":
        try value.forEachMember { key, value throws(ReportError) in
          if registers.count < 128 {
            registers.append(.init(name: String(key.string.prefix(16)), value: try value.hex()))
          }
        }
      case "frames": frames = value
      default: break
      }
    }
    draft.withThread {
      $0.name = name.flatMap { $0.isEmpty ? nil : String($0.prefix(256)) }
      $0.crashed = crashed
      $0.registers = registers
    }
    guard let frames else { return }
    do throws(ReportError) {
      try frames.forEachElement { element throws(ReportError) in try frame(element, &draft) }
    } catch {
      throw error.inside(key: "frames")
    }
  }

  private static func frame(_ value: JSONValue, _ draft: inout ReportDraft) throws(ReportError) {
    var kind = ""
    var address: UInt64?
    var count: UInt64?
    var named = SymbolicatedFrame(
      captured: CapturedFrame(kind: .programCounter, address: nil), status: .resolved)
    var image: String?
    var description: String?
    try value.forEachMember { key, value throws(ReportError) in
      switch key {
      case "kind": kind = try value.string()
      case "address": address = try value.hex()
      case "count": count = try value.integer()
      case "inlined": named.inlined = try value.bool()
      case "system": if try value.bool() { named.inApp = false }
      case "symbol": named.rawFunction = try value.string()
      case "description": description = try value.string()
      case "image": image = try value.string()
      case "sourceLocation":
        named.hasDebugInformation = true
        try value.forEachMember { key, value throws(ReportError) in
          switch key {
          case "file": named.file = SourcePlace(Array(try value.string().utf8)[...]).file
          case "line": named.line = try value.integer(0...Int(Int32.max))
          case "column": named.column = try value.integer(0...Int(Int32.max))
          default: break
          }
        }
      default: break
      }
    }
    switch kind {
    case "omittedFrames": return draft.addOmitted(max(1, count ?? 1))
    case "truncated": return draft.withThread { $0.status = .partial }
    case "programCounter": break
    case "returnAddress": named.captured.kind = .returnAddress
    case "asyncResumePoint": (named.captured.kind, named.captured.trust) = (.asyncResume, .async)
    default:
      draft.note(
        "frame kind \(Printable.quoted(String(kind.prefix(64)))) is not known; its address is looked up as it is")
    }
    if let address { (named.captured.address, named.captured.hasAddress) = (Address(rawValue: address), true) }
    if let raw = named.rawFunction {
      named.function = Demangler.simplified(raw) ?? raw
    } else if let description {
      named.function = SwiftTextFrame(symbol: Array(description.utf8)[...]).function
    }
    named.captured.imageIndex = image.flatMap { draft.imageIndex(ofUnlisted: $0) }
    draft.add(named, hasAddress: named.captured.hasAddress)
  }
}
