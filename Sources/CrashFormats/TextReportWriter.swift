public import CrashModel

/// Writes a report for people, in the look of the Swift runtime's own crash logs.
///
/// Whatever came from outside is made fit for a terminal (`Printable`).
///
/// ```swift
/// print(TextReportWriter().text(of: report), terminator: "")
/// ```
public struct TextReportWriter: Sendable {
  /// Every thread, not only the one that crashed.
  public var showsAllThreads = false
  /// Functions that were inlined into others.
  public var showsInlined = true
  /// Linker names instead of people's.
  public var showsRawNames = false
  /// SGR escapes of a terminal.
  public var usesColor = false

  public init() {}

  /// - Parameter symbols: what is known of the symbols of the report's images.
  /// - Returns: lines, the last one ended.
  public func text(of report: CrashReport, symbols: [ImageSymbols] = []) -> String {
    var text = ""
    header(of: report, to: &text)
    var used: Set<Int> = []
    for (index, thread) in report.threads.enumerated() {
      let crashed = index == report.crashedThreadIndex || thread.crashed
      guard crashed || showsAllThreads || report.crashedThreadIndex == nil else { continue }
      self.thread(thread, number: index, crashed: crashed, of: report, used: &used, to: &text)
      if crashed { registers(of: thread, to: &text) }
    }
    if report.threads.isEmpty { text += "No stack was captured.\n\n" }
    images(of: report, used: used, symbols: symbols, to: &text)
    if !report.notes.isEmpty {
      text += "Notes:\n\n"
      for note in report.notes { text += "- \(Printable.line(note))\n" }
      text += "\n"
    }
    let problems = symbols.filter { $0.problem != nil }
    if !problems.isEmpty {
      text +=
        problems.count == 1 ? "1 image without full names:\n\n" : "\(problems.count) images without full names:\n\n"
      for image in problems { text += "- \(Printable.line(image.problem ?? ""))\n" }
      text += "\n"
    }
    return text
  }

  // MARK: Header

  private func header(of report: CrashReport, to text: inout String) {
    text += bold("*** " + Printable.line(Self.headline(of: report)) + " ***") + "\n\n"
    var rows: [(String, String)] = []
    func row(_ name: String, _ value: String?) {
      if let value, !value.isEmpty { rows.append((name, value)) }
    }
    row("Reason", report.reason?.rawValue)
    row("Message", report.message)
    row("Service", [report.service, report.release].compactMap { $0 }.joined(separator: " "))
    row("Environment", report.environment)
    row("Time", report.timestamp?.rfc3339)
    row("Host", report.process?.host)
    row("Process", Self.process(report.process))
    row("Operation", report.operation)
    row("Task", report.task.map(Self.task))
    row("User", report.userID)
    row("Tags", report.tags.map { "\($0.key)=\($0.value)" }.joined(separator: ", "))
    row("Stack hash", report.stackHash.map { "\($0.digits) (\($0.quality.rawValue))" })
    row("Report", report.id)
    if let count = report.suppressedCount, count > 0 { row("Not stored", "\(count) more of the same before it") }
    if let process = report.process {
      let machine = [process.architecture, process.system.map { "Linux (\($0))" }].compactMap { $0 }
      row("Platform", machine.joined(separator: " "))
    }
    let width = (rows.map(\.0.count).max() ?? 0) + 2
    for (name, value) in rows {
      let indentation = String(repeating: " ", count: width)
      text += (name + ":").padded(to: width) + Printable.block(value, indentation: indentation) + "\n"
    }
    text += "\n"
    if !report.breadcrumbs.isEmpty {
      text += "Before it (\(report.breadcrumbs.count)):\n\n"
      for breadcrumb in report.breadcrumbs.suffix(10) {
        let category = breadcrumb.category.map { "[\(Printable.line($0))] " } ?? ""
        text += "\(breadcrumb.timestamp.rfc3339)  \(category)\(Printable.line(breadcrumb.message))\n"
      }
      text += "\n"
    }
  }

  /// `Program crashed: Bad pointer dereference at 0x0000000000000000`.
  static func headline(of report: CrashReport) -> String {
    switch report.kind {
    case .crash:
      var line = "Program crashed: "
      if let signal = report.signal {
        line += description(of: signal)
        if let address = signal.address { line += " at \(address)" }
      } else {
        line += report.type ?? "cause unknown"
      }
      return line
    case .hang: return "Program hung"
    case .exception: return "Error captured: \(report.type ?? "of unknown type")"
    case .snapshot: return "Snapshot of all threads"
    case .termination: return "Program ended: \(report.type ?? "cause unknown")"
    }
  }

  /// The Swift runtime's words for a signal, and its name.
  private static func description(of signal: SignalInfo) -> String {
    let words: String? =
      switch signal.name {
      case "SIGABRT": "Aborted"
      case "SIGBUS": "Bus error"
      case "SIGFPE": "Floating point exception"
      case "SIGILL": "Illegal instruction"
      case "SIGQUIT": "Quit"
      case "SIGSEGV": "Bad pointer dereference"
      case "SIGSYS": "Bad system call"
      case "SIGTRAP": "System trap"
      default: nil
      }
    let name = signal.codeName.map { "\(signal.name), \($0)" } ?? signal.name
    let sender = signal.senderPID.map { ", sent by process \($0)" } ?? ""
    return words.map { "\($0) (\(name)\(sender))" } ?? name + sender
  }

  private static func process(_ process: ProcessInfo?) -> String? {
    guard let process else { return nil }
    var parts = [process.id.map(String.init), process.executable].compactMap { $0 }
    if let start = process.startTime { parts.append("(started \(start.rfc3339))") }
    return parts.joined(separator: " ")
  }

  // MARK: Threads

  private func thread(
    _ thread: ThreadInfo, number: Int, crashed: Bool, of report: CrashReport, used: inout Set<Int>,
    to text: inout String
  ) {
    var title = "Thread \(number)"
    if let id = thread.id { title += " (\(id))" }
    if let name = thread.name, !name.isEmpty { title += " \(Printable.quoted(name))" }
    if crashed { title += " crashed" }
    text += bold(title + ":") + "\n"
    switch thread.status {
    case .noAnswer: text += "  (did not answer in time)\n"
    case .partial: text += "  (the walk of this stack ended early)\n"
    case .overCap: text += "  (no room in the record)\n"
    case .captured, nil: break
    }
    text += "\n"

    var rows: [Row] = []
    var next: UInt64 = 0
    for frame in thread.frames {
      if case .omitted(let count) = frame {
        rows.append(Row(number: "...", attributes: "", rest: "(\(count) frames not kept)"))
        next = next.addingReportingOverflow(count).partialValue
        continue
      }
      guard let captured = frame.captured else { continue }
      if let index = captured.imageIndex { used.insert(index) }
      let inlined = frame.symbolicated?.inlined ?? false
      if inlined, !showsInlined { continue }
      rows.append(
        Row(
          number: String(next), attributes: attributes(of: captured, inlined: inlined),
          rest: place(of: frame, captured, in: report)))
      if !inlined { next = next.addingReportingOverflow(1).partialValue }
    }
    let numberWidth = rows.map(\.number.count).max() ?? 0
    let attributeWidth = rows.map(\.attributes.count).max() ?? 0
    for row in rows {
      let number = String(repeating: " ", count: numberWidth - row.number.count) + row.number
      let attributes = attributeWidth == 0 ? "" : " " + row.attributes.padded(to: attributeWidth)
      text += "\(number)\(attributes) \(row.rest)\n"
    }
    if thread.frames.isEmpty { text += "(no frames)\n" }
    text += "\n"
  }

  private struct Row {
    var number: String
    var attributes: String
    var rest: String
  }

  private func attributes(of frame: CapturedFrame, inlined: Bool) -> String {
    var words: [String] = []
    switch frame.kind {
    case .returnAddress: words.append("[ra]")
    case .asyncResume: words.append("[async]")
    case .programCounter: break
    }
    if inlined { words = ["[inlined]"] }
    if frame.trust == .scan { words.append("[guess]") }
    return words.joined(separator: " ")
  }

  private func place(of frame: Frame, _ captured: CapturedFrame, in report: CrashReport) -> String {
    var line = captured.address.description
    let image = captured.imageIndex.flatMap { report.images.indices.contains($0) ? report.images[$0] : nil }
    let offset = image.flatMap {
      $0.isPlaced ? Hex.prefixed((captured.imageOffset ?? $0.offset(of: captured.address)).rawValue) : nil
    }
    let names = frame.symbolicated
    // What a log gave no address for: 0 is none that has a name.
    if captured.address.rawValue == 0, names?.function != nil { line = "-" }
    if let function = (showsRawNames ? names?.rawFunction : nil) ?? names?.function {
      line += " " + colored(Printable.line(function))
      if let image { line += " in \(Printable.line(image.name))" }
      if let file = names?.file {
        line += " at \(Printable.line(file))"
        // The compiler gives code that it made up the line 0.
        if let number = names?.line, number > 0 {
          line += ":\(number)"
          if let column = names?.column, column > 0 { line += ":\(column)" }
          if names?.approximate == true { line += " (nearest line)" }
        }
      } else if let offset {
        line += " (\(offset))"
      }
      return line
    }
    if let image, let offset { line += " in \(Printable.line(image.name)) + \(offset)" }
    switch names?.status {
    case .noSymbols: line += " (no symbols)"
    case .noImage: line += " (in no image)"
    case .buildIDMismatch: line += " (build id mismatch)"
    case .resolved, nil: if image == nil { line += " (in no image)" }
    }
    return line
  }

  private func registers(of thread: ThreadInfo, to text: inout String) {
    guard !thread.registers.isEmpty else { return }
    text += "Registers:\n\n"
    let width = thread.registers.map { Printable.width(of: Printable.line($0.name)) }.max() ?? 0
    for register in thread.registers {
      let name = Printable.line(register.name)
      let space = String(repeating: " ", count: width - Printable.width(of: name))
      text += "\(space)\(name) 0x\(Hex.padded(register.value))\n"
    }
    text += "\n"
  }

  private func images(of report: CrashReport, used: Set<Int>, symbols: [ImageSymbols], to text: inout String) {
    let indices = report.images.indices.filter(used.contains)
    guard !report.images.isEmpty else { return }
    let omitted = report.images.count - indices.count
    text += omitted == 0 ? "Images:\n\n" : "Images (\(omitted) omitted):\n\n"
    let statuses = Dictionary(symbols.map { ($0.imageIndex, $0.status) }, uniquingKeysWith: { first, _ in first })
    let rows = indices.map { index -> (range: String, id: String, name: String, rest: String) in
      let image = report.images[index]
      let end = Address(rawValue: image.address.rawValue.addingReportingOverflow(image.size).partialValue)
      let status = statuses[index].map { "  (\(Printable.line($0)))" } ?? ""
      return (
        "\(image.address)–\(end)", image.buildID?.description ?? "<no build id>", Printable.line(image.name),
        Printable.line(image.path) + (image.isUnloaded ? "  (unloaded before the crash)" : "") + status
      )
    }
    let idWidth = rows.map { $0.id.count }.max() ?? 0
    let nameWidth = rows.map { Printable.width(of: $0.name) }.max() ?? 0
    for row in rows {
      text += "\(row.range) \(row.id.padded(to: idWidth)) \(row.name.padded(to: nameWidth)) \(row.rest)\n"
    }
    text += "\n"
  }

  /// `17 "nightly export", request_id=9f2c`
  private static func task(_ task: TaskInfo) -> String {
    let name = task.name.map { " \"\($0)\"" } ?? ""
    return (["\(task.id)\(name)"] + task.locals.map { "\($0.key)=\($0.value)" }).joined(separator: ", ")
  }

  private func bold(_ text: String) -> String { usesColor ? "\u{1b}[1m\(text)\u{1b}[0m" : text }
  private func colored(_ text: String) -> String { usesColor ? "\u{1b}[36m\(text)\u{1b}[0m" : text }
}

extension String {
  /// With spaces behind it, up to `width` cells of a terminal.
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - Printable.width(of: self)))
  }
}
