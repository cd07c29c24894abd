import CrashModel
import TestSupport

/// Texts that somebody might choose so that a format breaks.
enum Hostile {
  static let pieces = [
    "`", "``````", "```\n# owned\n", "~~~", "\n", "\r\n", "\r", "\u{0}", "\u{1b}]0;owned\u{7}", "\u{9b}31m", "\u{202e}",
    "\u{2028}", "\u{200b}", "\u{feff}", "\u{e0041}", "; ", ";", "}}}", "{{{reset}}}", "{{{bt:0:0x1:pc}}}", "\"", "\\",
    "'",
    "<script>", "</details>", "![x](http://e.example)", "[a](b)", "@everyone", "#1", "| a |", "https://e.example/",
    " 12",
    "\t", "日本", "🚀", "e\u{301}", "$(id)", "%s%n", "..", "/", "a", "--", "---\n", "===\n", "&lt;", "EVIL",
  ]

  static func text(_ generator: inout SeededGenerator) -> String {
    (0..<Int.random(in: 0...6, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
  }
}

/// A report with hostile text in every field, and numbers at their ends.
func hostileReport(seed: UInt64) -> CrashReport {
  var generator = SeededGenerator(seed: seed)
  func text() -> String { Hostile.text(&generator) }
  func number() -> UInt64 { [0, 1, 0x1000, 0x7fff_ffff_ffff_ffff, .max].randomElement(using: &generator) ?? 0 }
  func flip() -> Bool { Bool.random(using: &generator) }
  var report = CrashReport(
    id: text(), kind: ReportKind.allCases.randomElement(using: &generator) ?? .crash, fatal: flip())
  report.timestamp = flip() ? Timestamp(rawValue: [.min, -1, 0, .max].randomElement(using: &generator) ?? 0) : nil
  report.type = flip() ? text() : nil
  report.reason = flip() ? Reason(rawValue: "trap:" + text()) : nil
  report.message = flip() ? text() : nil
  report.stackHash = flip() ? StackHash(digits: text(), quality: .dwarf) : nil
  report.signal =
    flip()
    ? SignalInfo(
      number: .min, name: text(), code: .max, codeName: text(), address: Address(rawValue: number()), senderPID: -1)
    : nil
  report.process =
    flip()
    ? ProcessInfo(
      id: .min, executable: text(), host: text(), system: text(), architecture: text(), startTime: report.timestamp)
    : nil
  (report.service, report.release, report.environment) = (text(), text(), flip() ? text() : nil)
  (report.runID, report.operation, report.userID) = (text(), text(), text())
  report.task =
    flip() ? TaskInfo(id: .max, name: text(), locals: [Tag(key: text(), value: text()), Tag(key: "", value: "")]) : nil
  report.tags = (0..<3).map { _ in Tag(key: text(), value: text()) }
  report.breadcrumbs = (0..<2).map { _ in
    Breadcrumb(timestamp: Timestamp(rawValue: .min), category: text(), message: text())
  }
  report.suppressedCount = flip() ? [.min, -1, 0, .max].randomElement(using: &generator) : nil
  report.notes = [text()]
  report.images = (0..<3).map { _ in
    Image(
      path: text(),
      buildID: flip() ? BuildID(bytes: [UInt8](repeating: 7, count: Int.random(in: 1...40, using: &generator))) : nil,
      address: Address(rawValue: number()), size: number(), firstVirtualAddress: number(), isUnloaded: flip())
  }
  report.threads = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
    ThreadInfo(
      id: flip() ? 7 : nil, name: text(), crashed: flip(), depth: number(), status: .partial,
      registers: [.init(name: text(), value: number()), .init(name: "", value: 0), .init(name: "", value: 1)],
      frames: (0..<Int.random(in: 0...5, using: &generator)).map { _ in
        let captured = CapturedFrame(
          kind: FrameKind.allCases.randomElement(using: &generator) ?? .programCounter, trust: .scan,
          address: Address(rawValue: number()), imageIndex: [nil, 0, 2, 9, -1].randomElement(using: &generator) ?? nil,
          imageOffset: flip() ? ImageOffset(rawValue: number()) : nil)
        switch Int.random(in: 0...3, using: &generator) {
        case 0: return .captured(captured)
        case 1: return .omitted(count: number())
        default:
          return .symbolicated(
            SymbolicatedFrame(
              captured: captured, status: FrameStatus.allCases.randomElement(using: &generator) ?? .resolved,
              function: flip() ? text() : nil, rawFunction: flip() ? text() : nil, file: flip() ? text() : nil,
              line: [nil, .min, 0, 1, .max].randomElement(using: &generator) ?? nil, column: .max, inlined: flip(),
              inApp: [nil, true, false].randomElement(using: &generator) ?? nil))
        }
      })
  }
  report.crashedThreadIndex = [nil, 0, 1, .max, .min].randomElement(using: &generator) ?? nil
  return report
}
