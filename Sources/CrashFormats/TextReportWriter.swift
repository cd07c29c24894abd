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
  /// Two and more frames in a row that are not the application's become one line, in a stack that has frames of its.
  public var foldsRuntimeFrames = false
  /// SGR escapes of a terminal.
  public var usesColor = false
  /// So many frames of a stack are shown, the first half of them and the last; nil for all.
  var frameLimit: Int?

  public init() {}

  /// - Parameters:
  ///   - symbols: what is known of the symbols of the report's images.
  ///   - source: reads the lines around the frames of the application.
  /// - Returns: lines, the last one ended.
  public func text(of report: CrashReport, symbols: [ImageSymbols] = [], source: SourceReader? = nil) -> String {
    var text = ""
    header(of: report, to: &text)
    var used: Set<Int> = []
    for (index, thread) in report.threads.enumerated() {
      let crashed = index == report.crashedThreadIndex || thread.crashed
      guard crashed || showsAllThreads || report.crashedThreadIndex == nil else { continue }
      text += bold(Self.title(of: thread, number: index, kind: crashed ? report.kind : nil) + ":") + "\n"
      text += Self.remark(on: thread) + "\n"
      text += stack(of: thread, in: report, source: source) + "\n"
      for frame in thread.frames { if let image = frame.captured?.imageIndex { used.insert(image) } }
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
    let rows = Self.facts(of: report)
    let width = (rows.map(\.name.count).max() ?? 0) + 2
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

  /// What is known of the crash besides its stack, in the order in which people want it.
  static func facts(of report: CrashReport) -> [(name: String, value: String)] {
    var rows: [(name: String, value: String)] = []
    func row(_ name: String, _ value: String?) {
      if let value, !value.isEmpty { rows.append((name, value)) }
    }
    row("Reason", report.reason?.rawValue)
    row("Message", report.message)
    if let duration = report.hang?.durationMilliseconds {
      row("Lasted", "\(duration / 1_000).\(duration / 100 % 10) s")
    }
    if let ending = report.ending {
      row("Exit status", ending.exitStatus.map { String($0) })
      row("Evidence", ending.evidence.joined(separator: "\n"))
      row("Could also be", ending.couldAlsoBe.joined(separator: "\n"))
    }
    row("Service", [report.service, report.release].compactMap { $0 }.joined(separator: " "))
    row("Environment", report.environment)
    row("Time", report.timestamp?.rfc3339)
    row("Run", report.runID)
    row("Host", report.process?.host)
    row("Process", process(report.process))
    row("Operation", report.operation)
    row("Task", report.task.map(task))
    row("User", report.userID)
    row("Tags", report.tags.map { "\($0.key)=\($0.value)" }.joined(separator: ", "))
    row("Stack hash", report.stackHash.map { "\($0.digits) (\($0.quality.rawValue))" })
    row("Report", report.id)
    if let count = report.suppressedCount, count > 0 { row("Not stored", "\(count) more of the same before it") }
    if let process = report.process {
      let machine = [process.architecture, process.system.map { "Linux (\($0))" }].compactMap { $0 }
      row("Platform", machine.joined(separator: " "))
    }
    return rows
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
    case .hang: return report.hang.map { "Program hung: \($0.watch)" } ?? "Program hung"
    case .exception: return "Error captured: \(report.type ?? "of unknown type")"
    case .snapshot: return "Snapshot of all threads"
    case .termination:
      return "Program ended: " + (report.signal.map(description) ?? report.ending?.kind.words ?? "cause unknown")
    }
  }

  /// What a log of the Swift runtime has behind `Program crashed: `.
  static func failure(of report: CrashReport) -> String {
    report.signal.flatMap { words(for: $0) ?? $0.name } ?? report.type ?? "cause unknown"
  }

  /// The Swift runtime's words for a signal.
  private static func words(for signal: SignalInfo) -> String? {
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
  }

  /// The Swift runtime's words for a signal, and its name.
  private static func description(of signal: SignalInfo) -> String {
    let name = signal.codeName.map { "\(signal.name), \($0)" } ?? signal.name
    let user = signal.senderUID.map { " of user \($0)" } ?? ""
    let sender = signal.senderPID.map { ", sent by process \($0)\(user)" } ?? ""
    return words(for: signal).map { "\($0) (\(name)\(sender))" } ?? name + sender
  }

  private static func process(_ process: ProcessInfo?) -> String? {
    guard let process else { return nil }
    var parts = [process.id.map(String.init), process.executable].compactMap { $0 }
    if let start = process.startTime { parts.append("(started \(start.rfc3339))") }
    return parts.joined(separator: " ")
  }

  // MARK: Threads

  /// `Thread 0 (4711) "orderd" crashed`
  ///
  /// - Parameter kind: the report's, for the thread that it is about.
  static func title(of thread: ThreadInfo, number: Int, kind: ReportKind?) -> String {
    var title = "Thread \(number)"
    if let id = thread.id { title += " (\(id))" }
    if let name = thread.name, !name.isEmpty { title += " \(Printable.quoted(name))" }
    switch kind {
    case .crash, .termination: return title + " crashed"
    case .hang: return title + " hung"
    case .exception: return title + " captured the error"
    case .snapshot, nil: return title
    }
  }

  /// A line for a stack that is not whole; empty for one that is.
  private static func remark(on thread: ThreadInfo) -> String {
    switch thread.status {
    case .noAnswer: "  (did not answer in time)\n"
    case .partial: "  (the walk of this stack ended early)\n"
    case .overCap: "  (no room in the record)\n"
    case .captured, nil: ""
    }
  }

  /// The frames of a thread, a line each, the last one ended.
  func stack(of thread: ThreadInfo, in report: CrashReport, source: SourceReader? = nil) -> String {
    guard !thread.frames.isEmpty else { return "(no frames)\n" }
    let rows = shortened(folded(rows(of: thread, in: report)))
    let numberWidth = rows.map(\.number.count).max() ?? 0
    let attributeWidth = rows.map(\.attributes.count).max() ?? 0
    var text = ""
    var windows = 0
    for row in rows {
      let number = String(repeating: " ", count: numberWidth - row.number.count) + row.number
      let attributes = attributeWidth == 0 ? "" : " " + row.attributes.padded(to: attributeWidth)
      text += "\(colored(number, .index))\(colored(attributes, .attribute)) \(row.rest)\n"
      guard windows < SourceReader.framesOfThread, let names = row.names, names.inApp != false,
        let window = SourceReader.window(for: names, from: source)
      else { continue }
      windows += 1
      text += "\n" + lines(of: window, column: names.column) + "\n"
    }
    return text
  }

  private struct Row {
    var number: String
    var attributes = ""
    var rest: String
    /// nil while undecided.
    var isApplication: Bool?
    var names: SymbolicatedFrame?
    /// Frames that the process had, for a row that stands for some of them.
    var isOmission = false
  }

  private func rows(of thread: ThreadInfo, in report: CrashReport) -> [Row] {
    var rows: [Row] = []
    var next: UInt64 = 0
    for frame in thread.frames {
      if case .omitted(let count) = frame {
        rows.append(Row(number: "...", rest: "(\(count) frames not kept)", isOmission: true))
        next = next.addingReportingOverflow(count).partialValue
        continue
      }
      guard let captured = frame.captured else { continue }
      let inlined = frame.symbolicated?.inlined ?? false
      if inlined, !showsInlined { continue }
      rows.append(
        Row(
          number: String(next), attributes: attributes(of: captured, inlined: inlined),
          rest: place(of: frame, captured, in: report), isApplication: report.isApplicationCode(frame),
          names: frame.symbolicated))
      if !inlined { next = next.addingReportingOverflow(1).partialValue }
    }
    return rows
  }

  private func folded(_ rows: [Row]) -> [Row] {
    // Nothing would be left of a stack that is all the runtime's.
    guard foldsRuntimeFrames, rows.contains(where: { $0.isApplication == true }) else { return rows }
    var result: [Row] = []
    var rest = rows[...]
    while let row = rest.first {
      let run = rest.prefix { $0.isApplication == false && !$0.isOmission }
      if run.count >= 2 {
        result.append(Row(number: "...", rest: "(\(run.count) runtime frames)", isOmission: true))
        rest = rest.dropFirst(run.count)
      } else {
        result.append(row)
        rest = rest.dropFirst()
      }
    }
    return result
  }

  private func shortened(_ rows: [Row]) -> [Row] {
    guard let frameLimit, rows.count > frameLimit else { return rows }
    let (first, last) = (rows.prefix((frameLimit + 1) / 2), rows.suffix(frameLimit / 2))
    let between = Row(number: "...", rest: "(\(rows.count - first.count - last.count) frames not shown)")
    return first + [between] + last
  }

  /// In the look of the Swift runtime's: `*  7| code`, and a mark below the column.
  private func lines(of window: SourceReader.Window, column: Int?) -> String {
    let last = window.firstLine + window.lines.count - 1
    let width = String(last).count
    var text = ""
    for (index, line) in window.lines.enumerated() {
      let number = window.firstLine + index
      let isNamed = number == window.line
      let head = (isNamed ? "    * " : "      ") + String(repeating: " ", count: width - String(number).count)
      text += colored("\(head)\(number)|", .index) + " " + Self.visible(line) + "\n"
      guard isNamed, let column, column > 0, column <= line.utf8.count + 1 else { continue }
      let before = String(decoding: line.utf8.prefix(column - 1), as: UTF8.self)
      let cells = Printable.width(of: Self.visible(before))
      text += colored(String(repeating: " ", count: 6 + width) + "|", .index)
      text += " " + String(repeating: " ", count: cells) + colored("^", .mark) + "\n"
    }
    return text
  }

  /// A line of source code with its tabs as spaces.
  private static func visible(_ line: String) -> String {
    guard line.utf8.contains(UInt8(ascii: "\t")) else { return Printable.line(line) }
    var text = ""
    for part in line.unicodeScalars.split(separator: "\t", omittingEmptySubsequences: false) {
      if !text.isEmpty || part.startIndex != line.unicodeScalars.startIndex {
        text += String(repeating: " ", count: 4 - Printable.width(of: text) % 4)
      }
      text += Printable.line(String(String.UnicodeScalarView(part)))
    }
    return text
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
    let names = frame.symbolicated
    var line = captured.hasAddress ? colored(captured.address.description, .address) : "-"
    let image = report.image(of: captured)
    let offset = report.offset(of: captured).map { Hex.prefixed($0.rawValue) }
    if let function = (showsRawNames ? names?.rawFunction : nil) ?? names?.function {
      line += " " + colored(Printable.line(function), .function)
      if let image { line += " in " + colored(Printable.line(image.name), .image) }
      if let file = names?.file {
        var place = Printable.line(file)
        // The compiler gives code that it made up the line 0.
        if let number = names?.line, number > 0 {
          place += ":\(number)"
          if let column = names?.column, column > 0 { place += ":\(column)" }
        }
        line += " at " + colored(place, .place)
        if names?.approximate == true, let number = names?.line, number > 0 { line += " (nearest line)" }
      } else if let offset {
        line += " (\(offset))"
      }
      return line
    }
    if let image { line += " in " + colored(Printable.line(image.name), .image) + (offset.map { " + \($0)" } ?? "") }
    if let remark = names?.status.remark ?? (image == nil ? FrameStatus.noImage.remark : nil) {
      line += " (\(remark))"
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

  /// The colors of the Swift runtime's logs.
  private enum Ink: Int {
    case index = 90
    case address = 32
    case attribute = 34
    case function = 95
    case place = 33
    case image = 36
    case mark = 91
  }

  private func colored(_ text: String, _ ink: Ink) -> String {
    usesColor && !text.isEmpty ? "\u{1b}[\(ink.rawValue)m\(text)\u{1b}[0m" : text
  }
}

extension String {
  /// With spaces behind it, up to `width` cells of a terminal.
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - Printable.width(of: self)))
  }
}
