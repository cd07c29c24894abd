public import CrashModel

/// Writes a report as a Sentry envelope with one event, for Sentry and the trackers that take the same.
///
/// The event's id is that of the report, so that sending it twice makes one event; its fingerprint is the stack hash, so
/// that the tracker's groups are ours; and it is not `synthetic`: a tracker takes the title of an exception that is from
/// its frame, and throws different crashes of one function together.
///
/// ```swift
/// let envelope = SentryEventWriter().envelope(of: report)
/// ```
///
/// Send it with `POST /api/PROJECT/envelope/` and the header `X-Sentry-Auth: Sentry sentry_version=7, sentry_key=KEY`.
public struct SentryEventWriter: Sendable {
  /// Bytes that an event may have. Sentry takes a megabyte; from there on the stacks of the other threads are left out,
  /// then their list, and what is left of the crashed one is cut in its middle.
  static let sizeLimit = 1_000_000

  public init() {}

  /// - Parameters:
  ///   - symbols: what is known of the symbols of the report's images.
  ///   - source: reads the lines around the frames of the application.
  /// - Returns: three lines: the envelope's header, the item's header, the event.
  public func envelope(of report: CrashReport, symbols: [ImageSymbols] = [], source: SourceReader? = nil) -> [UInt8] {
    let event = event(of: report, symbols: symbols, source: source)
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("event_id", Self.eventID(of: report))
    writer.endObject()
    writer.newline()
    writer.beginObject()
    writer.member("type", "event")
    writer.member("length", event.count)
    writer.member("content_type", "application/json")
    writer.endObject()
    writer.newline()
    return writer.bytes + event + [UInt8(ascii: "\n")]
  }

  /// The event alone, as one JSON object.
  public func event(of report: CrashReport, symbols: [ImageSymbols] = [], source: SourceReader? = nil) -> [UInt8] {
    var event = [UInt8]()
    let crashed = report.crashedThread?.frames.count ?? 0
    let all = report.threads.reduce(0) { $0 &+ $1.frames.count }
    for detail in Detail.allCases {
      // No frame takes fewer bytes: what cannot fit is not written to see that it does not.
      let frames = detail == .all ? all : detail == .shortStack ? 0 : crashed
      if frames > Self.sizeLimit / 25 { continue }
      var writer = JSONWriter()
      Event(report: report, symbols: symbols, source: source, detail: detail).write(to: &writer)
      event = writer.bytes
      if event.count <= Self.sizeLimit { break }
    }
    return event
  }

  /// How much of a report is written, most first.
  fileprivate enum Detail: Int, CaseIterable {
    case all, crashedStack, crashedThread, shortStack
  }

  /// The 32 hex digits of the report's UUID; of an id that is none, the beginning of its SHA-256.
  static func eventID(of report: CrashReport) -> String {
    let digits = report.id.utf8.filter { $0 != UInt8(ascii: "-") }
    let text = String(decoding: digits, as: UTF8.self).lowercased()
    if text.utf8.count == 32, Hex.bytes(text) != nil { return text }
    return Hex.string(SHA256.digest(Array(report.id.utf8)).prefix(16))
  }

  /// The id by which debug files are known there: the first 16 bytes of the build id, read as a little-endian UUID.
  static func debugID(of id: BuildID) -> String {
    var bytes = Array(id.bytes.prefix(16))
    bytes += repeatElement(0, count: 16 - bytes.count)
    let order = [3, 2, 1, 0, 5, 4, 7, 6] + Array(8..<16)
    return UUIDText.string(order.map { bytes[$0] })
  }
}

/// One event at one level of detail.
private struct Event {
  let report: CrashReport
  let symbols: [ImageSymbols]
  let source: SourceReader?
  let detail: SentryEventWriter.Detail

  func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("event_id", SentryEventWriter.eventID(of: report))
    writer.member("timestamp", report.timestamp?.rfc3339)
    writer.member("platform", "native")
    writer.member("level", report.fatal ? "fatal" : report.kind == .snapshot ? "info" : "error")
    writer.member("logger", Product.name)
    writer.member("server_name", report.process?.host.map { Limit.text($0, 200) })
    writer.member("release", release)
    writer.member("environment", report.environment.flatMap(Limit.environment))
    writer.member("transaction", report.operation.map { Limit.text($0, 200) })
    if let hash = report.stackHash { writer.array("fingerprint", [hash.digits]) { $0.string($1) } }
    if let user = report.userID {
      writer.key("user")
      writer.beginObject()
      writer.member("id", Limit.text(user, 128))
      writer.endObject()
    }
    tags(to: &writer)
    contexts(to: &writer)
    if !report.breadcrumbs.isEmpty {
      writer.key("breadcrumbs")
      writer.beginObject()
      writer.array("values", Array(report.breadcrumbs.suffix(100))) { writer, crumb in
        writer.beginObject()
        writer.member("timestamp", crumb.timestamp.rfc3339)
        writer.member("type", "default")
        writer.member("category", crumb.category.map { Limit.text($0, 128) })
        writer.member("level", "info")
        writer.member("message", Limit.text(crumb.message, 2_000))
        writer.endObject()
      }
      writer.endObject()
    }
    if report.crashedThread != nil || report.kind != .snapshot { exception(to: &writer) }
    if report.kind == .snapshot, report.crashedThread == nil {
      writer.key("message")
      writer.beginObject()
      writer.member("formatted", Limit.text(report.message ?? TextReportWriter.headline(of: report), 8_000))
      writer.endObject()
    }
    if detail.rawValue < SentryEventWriter.Detail.crashedThread.rawValue { threads(to: &writer) }
    images(to: &writer)
    writer.key("sdk")
    writer.beginObject()
    writer.member("name", Product.name)
    writer.member("version", Product.version)
    writer.endObject()
    writer.endObject()
  }

  /// `orderd@1.4.0`: two services have versions of the same numbers, and Sentry orders releases of this form.
  private var release: String? {
    guard let release = report.release else { return nil }
    let name = release.contains("@") ? release : report.service.map { "\($0)@\(release)" } ?? release
    return Limit.release(name)
  }

  private func tags(to writer: inout JSONWriter) {
    var pairs: [(key: String, value: String)] = []
    if let service = report.service { pairs.append(("service", service)) }
    if let reason = report.reason { pairs.append(("reason", reason.rawValue)) }
    if let signal = report.signal { pairs.append(("signal", signal.name)) }
    pairs += report.tags.map { ($0.key, $0.value) }
    // A tag that is set twice has its last value; one of the program's own stands for one of the three above.
    var values: [String: String] = [:]
    var keys: [String] = []
    for pair in pairs {
      guard let key = Limit.tagKey(pair.key), let value = Limit.tagValue(pair.value) else { continue }
      if values.updateValue(value, forKey: key) == nil { keys.append(key) }
    }
    guard !keys.isEmpty else { return }
    writer.key("tags")
    writer.beginObject()
    for key in keys {
      guard let value = values[key] else { continue }
      writer.key(key)
      writer.string(value)
    }
    writer.endObject()
  }

  private func contexts(to writer: inout JSONWriter) {
    writer.key("contexts")
    writer.beginObject()
    writer.key("os")
    writer.beginObject()
    writer.member("type", "os")
    writer.member("name", "Linux")
    writer.member("distribution_pretty_name", report.process?.system)
    writer.endObject()
    if let architecture = report.process?.architecture {
      writer.key("device")
      writer.beginObject()
      writer.member("type", "device")
      writer.member("arch", architecture)
      writer.endObject()
    }
    if report.service != nil || report.process?.startTime != nil {
      writer.key("app")
      writer.beginObject()
      writer.member("type", "app")
      writer.member("app_name", report.service)
      writer.member("app_version", report.release)
      writer.member("app_start_time", report.process?.startTime)
      writer.endObject()
    }
    // Of a name of its own, so that the tracker shows it as it is.
    writer.key("crash_report")
    writer.beginObject()
    writer.member("type", "crash_report")
    writer.member("report_id", Limit.text(report.id, 200))
    writer.member("kind", report.kind.rawValue)
    writer.member("reason", report.reason?.rawValue)
    writer.member("stack_hash", report.stackHash?.digits)
    writer.member("stack_hash_quality", report.stackHash?.quality.rawValue)
    writer.member("run_id", report.runID)
    writer.member("process_id", report.process?.id)
    writer.member("executable", report.process?.executable)
    writer.member("suppressed_count", report.suppressedCount)
    if let task = report.task {
      writer.member("task_id", String(task.id))
      writer.member("task_name", task.name)
      writer.array("task_locals", task.locals) { $0.string(Limit.text("\($1.key)=\($1.value)", 500)) }
    }
    writer.array("notes", Array(report.notes.prefix(20))) { $0.string(Limit.text($1, 500)) }
    writer.array("missing_symbols", Array(symbols.compactMap(\.problem).prefix(20))) { $0.string(Limit.text($1, 500)) }
    if detail != .all { writer.member("left_out", "stacks of other threads, as the event would be too large") }
    writer.endObject()
    writer.endObject()
  }

  private func exception(to writer: inout JSONWriter) {
    writer.key("exception")
    writer.beginObject()
    writer.key("values")
    writer.beginArray()
    writer.beginObject()
    writer.member("type", Limit.text(report.failureTitle, 128))
    writer.member("value", Limit.text(report.message ?? TextReportWriter.headline(of: report), 8_000))
    if let index = report.crashedThreadIndex, report.threads.indices.contains(index) {
      writer.member("thread_id", threadIDs[index])
      stacktrace(of: report.threads[index], to: &writer)
    }
    writer.key("mechanism")
    writer.beginObject()
    writer.member("type", report.signal != nil ? "signalhandler" : "generic")
    writer.key("handled")
    writer.bool(!report.fatal && report.kind == .exception)
    writer.key("synthetic")
    writer.bool(false)
    if let signal = report.signal {
      writer.key("meta")
      writer.beginObject()
      writer.key("signal")
      writer.beginObject()
      writer.member("number", signal.number)
      writer.member("code", signal.code)
      writer.member("name", Limit.text(signal.name, 64))
      writer.member("code_name", signal.codeName.map { Limit.text($0, 64) })
      writer.endObject()
      writer.endObject()
      if let address = signal.address {
        writer.key("data")
        writer.beginObject()
        writer.member("relevant_address", address.description)
        writer.endObject()
      }
    }
    writer.endObject()
    writer.endObject()
    writer.endArray()
    writer.endObject()
  }

  /// The kernel's numbers; the index for a thread without one, and for one whose number another one has.
  private var threadIDs: [Int] {
    var taken: Set<Int> = []
    return report.threads.indices.map { index in
      var id = report.threads[index].id.map(Int.init) ?? index
      while !taken.insert(id).inserted { id = id < Int(UInt32.max) ? Int(UInt32.max) + 1 + index : id + 1 }
      return id
    }
  }

  private func threads(to writer: inout JSONWriter) {
    let ids = threadIDs
    guard !report.threads.isEmpty else { return }
    writer.key("threads")
    writer.beginObject()
    writer.array("values", Array(report.threads.indices)) { writer, index in
      let thread = report.threads[index]
      let crashed = index == report.crashedThreadIndex
      writer.beginObject()
      writer.member("id", ids[index])
      writer.member("name", thread.name.map { Limit.text($0, 128) })
      writer.key("crashed")
      writer.bool(crashed && report.fatal)
      writer.key("current")
      writer.bool(crashed)
      // That of the crashed thread is the exception's, which names the thread.
      if !crashed, detail == .all { stacktrace(of: thread, to: &writer) }
      writer.endObject()
    }
    writer.endObject()
  }

  private func stacktrace(of thread: ThreadInfo, to writer: inout JSONWriter) {
    guard !thread.frames.isEmpty else { return }
    writer.key("stacktrace")
    writer.beginObject()
    var frames = thread.frames
    if detail == .shortStack, frames.count > 200 {
      let left = UInt64(clamping: frames.count - 200)
      frames = frames.prefix(100) + [.omitted(count: left)] + frames.suffix(100)
    }
    // Oldest first.
    writer.array("frames", frames.reversed()) { frame($1, to: &$0) }
    if !thread.registers.isEmpty {
      writer.key("registers")
      writer.beginObject()
      var written: Set<String> = []
      for register in thread.registers.prefix(128) where written.insert(register.name).inserted {
        writer.key(register.name)
        writer.hex(register.value, digits: 16)
      }
      writer.endObject()
    }
    writer.endObject()
  }

  private func frame(_ frame: Frame, to writer: inout JSONWriter) {
    writer.beginObject()
    defer { writer.endObject() }
    guard let captured = frame.captured else {
      if case .omitted(let count) = frame {
        writer.member("function", "(\(count) frames not kept)")
        writer.key("in_app")
        writer.bool(false)
      }
      return
    }
    let names = frame.symbolicated
    writer.member("function", names?.function.map { Limit.text($0, 512) })
    writer.member("raw_function", names?.rawFunction.map { Limit.text($0, 512) })
    if let file = names?.file, !file.isEmpty {
      writer.member("filename", Limit.text(file.split(separator: "/").last.map(String.init) ?? file, 256))
      writer.member("abs_path", Limit.text(file, 2_000))
      if let line = names?.line, line > 0 {
        writer.member("lineno", line)
        if let column = names?.column, column > 0 { writer.member("colno", column) }
      }
    }
    if let isOwn = report.isApplicationCode(frame) {
      writer.key("in_app")
      writer.bool(isOwn)
    }
    // A log that gives names only has no address of the frame; 0 as one would be looked up.
    if captured.hasAddress {
      writer.key("instruction_addr")
      writer.hex(captured.address.rawValue)
    }
    if let image = report.image(of: captured) {
      writer.member("package", Limit.text(image.path, 2_000))
      if image.isPlaced {
        writer.key("image_addr")
        writer.hex(image.address.rawValue)
      }
    }
    guard detail == .all, let names, report.isApplicationCode(frame) != false,
      let window = SourceReader.window(for: names, from: source)
    else { return }
    let index = window.line - window.firstLine
    writer.array("pre_context", Array(window.lines.prefix(index))) { $0.string($1) }
    writer.member("context_line", window.lines[index])
    writer.array("post_context", Array(window.lines.dropFirst(index + 1))) { $0.string($1) }
  }

  /// Those with a build id: by what else would a tracker find their debug files.
  private func images(to writer: inout JSONWriter) {
    let known = report.images.filter { $0.buildID != nil && !$0.isUnloaded && $0.isPlaced }
    guard !known.isEmpty else { return }
    writer.key("debug_meta")
    writer.beginObject()
    writer.array("images", known) { writer, image in
      guard let id = image.buildID else { return }
      writer.beginObject()
      writer.member("type", "elf")
      writer.member("code_id", id.description)
      writer.member("debug_id", SentryEventWriter.debugID(of: id))
      writer.member("code_file", image.path.isEmpty ? "unknown" : Limit.text(image.path, 2_000))
      writer.key("image_addr")
      writer.hex(image.address.rawValue)
      writer.member("image_size", image.size)
      if image.firstVirtualAddress != 0 {
        writer.key("image_vmaddr")
        writer.hex(image.firstVirtualAddress)
      }
      writer.endObject()
    }
    writer.endObject()
  }
}

/// What Sentry takes; values beyond it are dropped there, whole.
private enum Limit {
  /// The beginning of a text, at most so many scalars.
  static func text(_ text: String, _ count: Int) -> String {
    let scalars = text.unicodeScalars
    guard let end = scalars.index(scalars.startIndex, offsetBy: count, limitedBy: scalars.endIndex),
      end < scalars.endIndex
    else { return text }
    return String(scalars[..<end])
  }

  /// Letters, digits, `_ . : -`, at most 32.
  static func tagKey(_ key: String) -> String? {
    let allowed = key.unicodeScalars.prefix(32).map { scalar -> Character in
      let isAllowed =
        scalar.isASCII && (scalar.properties.isAlphabetic || "0123456789_.:-".unicodeScalars.contains(scalar))
      return isAllowed ? Character(scalar) : "_"
    }
    return allowed.isEmpty ? nil : String(allowed)
  }

  /// One line, at most 200 characters, not blank.
  static func tagValue(_ value: String) -> String? {
    let line = String(String.UnicodeScalarView(value.unicodeScalars.map { $0.value < 0x20 ? " " : $0 }))
    let short = text(line, 200)
    return short.unicodeScalars.allSatisfy { $0.properties.isWhitespace } ? nil : short
  }

  /// At most 64 bytes, no spaces or slashes, and not the word for no environment.
  static func environment(_ name: String) -> String? {
    let name = prefix(of: replacing(name, " /\\"), bytes: 64)
    return ["", ".", "..", "none"].contains(name.lowercased()) ? nil : name
  }

  /// At most 200 bytes, no slashes, and no name of a directory.
  static func release(_ name: String) -> String? {
    let name = prefix(of: replacing(name, "/\\"), bytes: 200)
    var bytes = name.utf8[...]
    while bytes.first == UInt8(ascii: " ") { bytes.removeFirst() }
    while bytes.last == UInt8(ascii: " ") { bytes.removeLast() }
    let trimmed = String(Substring(bytes))
    return ["", ".", "..", "latest"].contains(trimmed.lowercased()) ? nil : trimmed
  }

  private static func prefix(of text: String, bytes count: Int) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      guard result.utf8.count + UTF8.width(scalar) <= count else { break }
      result.unicodeScalars.append(scalar)
    }
    return result
  }

  private static func replacing(_ text: String, _ forbidden: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.value < 0x20 || forbidden.unicodeScalars.contains($0) ? "-" : $0 }))
  }
}
