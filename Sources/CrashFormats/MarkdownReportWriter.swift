public import CrashModel

/// Writes a report as Markdown (CommonMark) for an issue tracker: what failed, the facts, the stack, and the rest folded
/// away.
///
/// Text from a report stands in code spans and fenced code only, each longer than any run of backticks in it, so that it
/// makes no links, mentions, pictures or HTML, and ends nothing.
///
/// ```swift
/// let issue = MarkdownReportWriter().text(of: report)
/// ```
public struct MarkdownReportWriter: Sendable {
  /// Characters that the text may have: trackers take 65,536. What does not fit is left out, and said so.
  public var limit = 60_000

  private static let frameLimit = 200

  public init() {}

  /// - Parameters:
  ///   - symbols: what is known of the symbols of the report's images.
  ///   - source: reads the lines around the frames of the application.
  /// - Returns: lines, the last one ended.
  public func text(of report: CrashReport, symbols: [ImageSymbols] = [], source: SourceReader? = nil) -> String {
    var text = "## \(Self.code(Self.cut(report.failureTitle, to: 200)))"
    if let function = firstApplicationFunction(of: report) { text += " in \(Self.code(Self.cut(function, to: 500)))" }
    text += "\n\n"
    if let message = report.message, !message.isEmpty {
      text += Self.fence(Self.cut(Printable.block(message, indentation: ""), to: 8_000))
    }
    facts(of: report, to: &text)

    var stacks = TextReportWriter()
    stacks.frameLimit = Self.frameLimit
    if let thread = report.crashedThread {
      text += "### Stack\n\n" + Self.fence(Self.cut(stacks.stack(of: thread, in: report, source: source), to: 30_000))
    } else if report.threads.isEmpty {
      text += "No stack was captured.\n\n"
    }
    if !report.breadcrumbs.isEmpty {
      let lines = report.breadcrumbs.suffix(20).map { crumb in
        let category = crumb.category.map { "[\(Printable.line($0))] " } ?? ""
        return "\(crumb.timestamp.rfc3339)  \(category)\(Printable.line(crumb.message))\n"
      }
      text += "### Before it\n\n" + Self.fence(Self.cut(lines.joined(), to: 8_000))
    }
    let problems = symbols.compactMap(\.problem)
    if !problems.isEmpty {
      text +=
        problems.count == 1
        ? "### 1 image without full names\n\n" : "### \(problems.count) images without full names\n\n"
      text += problems.prefix(20).map { "- \(Self.code(Self.cut($0, to: 500)))\n" }.joined() + "\n"
    }
    if !report.notes.isEmpty {
      text +=
        "### Notes\n\n" + report.notes.prefix(20).map { "- \(Self.code(Self.cut($0, to: 500)))\n" }.joined() + "\n"
    }
    var leftOut: [String] = []
    func fold(_ title: String, _ content: String) {
      let details = "<details>\n<summary>\(title)</summary>\n\n\(Self.fence(content))</details>\n\n"
      if text.unicodeScalars.count + details.unicodeScalars.count <= limit {
        text += details
      } else {
        leftOut.append(title)
      }
    }
    let others = report.threads.indices.filter { $0 != report.crashedThreadIndex }
    if !others.isEmpty {
      let blocks = others.map { index in
        let thread = report.threads[index]
        return TextReportWriter.title(of: thread, number: index, kind: thread.crashed ? report.kind : nil)
          + ":\n\n" + stacks.stack(of: thread, in: report)
      }
      fold(
        report.crashedThread == nil ? "Threads (\(others.count))" : "Other threads (\(others.count))",
        blocks.joined(separator: "\n"))
    }
    if let registers = report.crashedThread?.registers, !registers.isEmpty {
      fold("Registers", registers.map { "\(Printable.line($0.name)) 0x\(Hex.padded($0.value))\n" }.joined())
    }
    if !report.images.isEmpty {
      let lines = report.images.map {
        "\($0.address) \($0.buildID?.description ?? "<no build id>") \(Printable.line($0.path))\n"
      }
      fold("Images (\(report.images.count))", lines.joined())
    }
    if !leftOut.isEmpty {
      text += "Left out, as it would be too long for an issue: \(leftOut.joined(separator: ", ")).\n\n"
    }
    while text.hasSuffix("\n\n") { text.removeLast() }
    return text
  }

  private func firstApplicationFunction(of report: CrashReport) -> String? {
    let frames = report.crashedThread?.frames ?? []
    return (frames.first { $0.symbolicated?.inApp == true } ?? frames.first).flatMap { report.functionName(of: $0) }
  }

  private func facts(of report: CrashReport, to text: inout String) {
    let rows = TextReportWriter.facts(of: report).filter { $0.name != "Message" }
    text += "- What: \(Self.code(Self.cut(TextReportWriter.headline(of: report), to: 500)))\n"
    for row in rows { text += "- \(row.name): \(Self.code(Self.cut(row.value, to: 500)))\n" }
    text += "\n"
  }

  /// The beginning of a text that is too long.
  package static func cut(_ text: String, to count: Int) -> String {
    let scalars = text.unicodeScalars
    guard let end = scalars.index(scalars.startIndex, offsetBy: count, limitedBy: scalars.endIndex),
      end < scalars.endIndex
    else { return text }
    return String(scalars[..<end]) + "…"
  }

  /// A code span, in which nothing but its own delimiter means anything.
  package static func code(_ text: String) -> String {
    let line = Printable.line(text)
    guard !line.isEmpty else { return "—" }
    let ticks = String(repeating: "`", count: longestRun(in: line) + 1)
    // A space within each end: a backtick there would belong to the delimiter, and of a span that begins and ends with
    // spaces one each is taken away.
    let edges: Set<UInt8> = [UInt8(ascii: "`"), UInt8(ascii: " ")]
    let needsSpace = [line.utf8.first, line.utf8.last].contains { $0.map(edges.contains) ?? false }
    return needsSpace ? "\(ticks) \(line) \(ticks)" : ticks + line + ticks
  }

  /// Fenced code, with an empty line behind it.
  package static func fence(_ content: String) -> String {
    let ticks = String(repeating: "`", count: max(3, longestRun(in: content) + 1))
    let end = content.isEmpty || content.utf8.last == UInt8(ascii: "\n") ? "" : "\n"
    return "\(ticks)text\n\(content)\(end)\(ticks)\n\n"
  }

  /// Backticks that stand in one row.
  private static func longestRun(in text: String) -> Int {
    var longest = 0
    var run = 0
    for byte in text.utf8 {
      run = byte == UInt8(ascii: "`") ? run + 1 : 0
      longest = max(longest, run)
    }
    return longest
  }
}
