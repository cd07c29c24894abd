public import CrashModel

/// Writes a report as the Swift runtime's own JSON crash log (`SWIFT_BACKTRACE=format=json`), for tools that read those.
///
/// The eight keys that its decoder wants are always there; an unknown time or platform is an empty string. What the format
/// has no place for (message, signal, process, tags, breadcrumbs) is left out: `crash-report/1` has it all. Names are the
/// demangled ones in `description` and the linker's in `symbol`, without the distance from the function's beginning, which
/// a report does not keep.
///
/// ```swift
/// let log = SwiftCrashLogWriter().json(of: report)
/// ```
public struct SwiftCrashLogWriter: Sendable {
  /// One member a line; otherwise all on one line, as the runtime writes it.
  public var pretty = false

  public init() {}

  /// - Returns: one JSON object, without a line feed behind it.
  public func json(of report: CrashReport) -> [UInt8] {
    var writer = JSONWriter(pretty: pretty)
    writer.beginObject()
    writer.member("timestamp", report.timestamp?.rfc3339Microseconds ?? "")
    writer.member("kind", "crashReport")
    writer.member("description", TextReportWriter.failure(of: report))
    writer.key("faultAddress")
    let innermost = report.crashedThread?.frames.lazy.compactMap(\.captured).first?.address
    writer.hex((report.signal?.address ?? innermost)?.rawValue ?? 0, digits: 16)
    writer.member("platform", report.process.map { $0.system.map { "Linux (\($0))" } ?? "Linux" } ?? "")
    writer.member("architecture", Self.architecture(report.process?.architecture))
    writer.key("threads")
    writer.beginArray()
    for (index, thread) in report.threads.enumerated() {
      self.thread(thread, crashed: index == report.crashedThreadIndex || thread.crashed, of: report, to: &writer)
    }
    writer.endArray()
    // One that was unloaded would claim the addresses of whatever took its place.
    writer.array("images", report.images.filter { !$0.isUnloaded && $0.isPlaced }) { Self.image($1, to: &$0) }
    // The time that the capture took: unknown, and a required key.
    writer.member("backtraceTime", 0)
    writer.endObject()
    return writer.bytes
  }

  /// The runtime's word for it.
  private static func architecture(_ name: String?) -> String {
    switch name {
    case "aarch64": "arm64"
    default: name ?? ""
    }
  }

  private func thread(_ thread: ThreadInfo, crashed: Bool, of report: CrashReport, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("name", thread.name)
    writer.flag("crashed", crashed)
    if !thread.registers.isEmpty {
      writer.key("registers")
      writer.beginObject()
      // A name twice would be a key twice, of which decoders make what they like.
      var written: Set<String> = []
      for register in thread.registers where written.insert(register.name).inserted {
        writer.key(register.name)
        writer.hex(register.value, digits: 16)
      }
      writer.endObject()
    }
    writer.key("frames")
    writer.beginArray()
    for frame in thread.frames { self.frame(frame, of: report, to: &writer) }
    writer.endArray()
    writer.endObject()
  }

  private func frame(_ frame: Frame, of report: CrashReport, to writer: inout JSONWriter) {
    writer.beginObject()
    defer { writer.endObject() }
    guard let captured = frame.captured else {
      writer.member("kind", "omittedFrames")
      // The decoder's `Int`.
      if case .omitted(let count) = frame { writer.member("count", Int(clamping: count)) }
      return
    }
    let kind =
      switch captured.kind {
      case .programCounter: "programCounter"
      case .returnAddress: "returnAddress"
      case .asyncResume: "asyncResumePoint"
      }
    writer.member("kind", kind)
    writer.key("address")
    writer.hex(captured.address.rawValue, digits: 16)
    guard let names = frame.symbolicated, let function = names.function ?? names.rawFunction else { return }
    writer.flag("inlined", names.inlined)
    writer.flag("thunk", names.rawFunction.map(Demangler.isThunk) ?? false)
    writer.member("symbol", names.rawFunction ?? function)
    writer.member("description", function)
    writer.member("image", report.image(of: captured)?.name)
    if let file = names.file {
      // All three or none: the decoder wants them.
      writer.key("sourceLocation")
      writer.beginObject()
      writer.member("file", file)
      writer.member("line", names.line ?? 0)
      writer.member("column", names.column ?? 0)
      writer.endObject()
    }
  }

  private static func image(_ image: Image, to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("name", image.name)
    writer.member("buildId", image.buildID?.description)
    writer.member("path", image.path)
    writer.key("baseAddress")
    writer.hex(image.address.rawValue, digits: 16)
    writer.key("endOfText")
    let (end, overflow) = image.address.rawValue.addingReportingOverflow(image.size)
    writer.hex(overflow ? .max : end, digits: 16)
    writer.endObject()
  }
}

extension Timestamp {
  /// RFC 3339 in UTC with six digits behind the point, as the Swift runtime writes it.
  fileprivate var rfc3339Microseconds: String {
    let remainder = rawValue % 1_000_000
    let nanoseconds = remainder < 0 ? remainder + 1_000_000 : remainder
    let micro = String(nanoseconds / 1_000)
    // `rfc3339` ends with milliseconds and `Z`.
    return rfc3339.dropLast() + String(repeating: "0", count: 3 - micro.count) + micro + "Z"
  }
}
