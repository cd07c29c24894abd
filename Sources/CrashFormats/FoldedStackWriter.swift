public import CrashModel

/// Adds up the stacks of reports as folded lines, from which flame graphs are made: `orderd;main;Store.load(id:) 12`.
///
/// Outermost first: service, then the frames of the thread that crashed. A function that was inlined ends in `_[i]`, as
/// `perf`'s stack collapser marks it. Memory grows with the number of different stacks.
///
/// ```swift
/// var stacks = FoldedStackWriter()
/// for report in reports { stacks.add(report) }
/// print(stacks.text(), terminator: "")
/// ```
public struct FoldedStackWriter: Sendable {
  private var counts: [String: UInt64] = [:]

  public init() {}

  /// Whether any report had a stack.
  public var isEmpty: Bool { counts.isEmpty }

  /// Adds the stack of a report, and once more for each crash that was counted with it and not stored.
  ///
  /// - Returns: false for a report without a stack, which adds nothing.
  @discardableResult
  public mutating func add(_ report: CrashReport) -> Bool {
    guard let stack = Self.stack(of: report) else { return false }
    let weight = UInt64(clamping: report.suppressedCount ?? 0)
    counts[stack, default: 0].add(weight)
    counts[stack, default: 0].add(1)
    return true
  }

  /// Lines in the order of the stacks' text, the last one ended; equal reports in any order give equal text.
  public func text() -> String {
    counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)\n" }.joined()
  }

  /// The stack without the count; nil where there is none.
  static func stack(of report: CrashReport) -> String? {
    guard let frames = report.crashedThread?.frames, !frames.isEmpty else { return nil }
    var names = [field(report.service ?? report.process?.executable.map(lastComponent) ?? "unknown")]
    for frame in frames.reversed() {
      if case .omitted(let count) = frame {
        names.append("(\(count) frames not kept)")
      } else if let name = report.functionName(of: frame) {
        names.append(field(name) + (frame.symbolicated?.inlined == true ? "_[i]" : ""))
      }
    }
    return names.joined(separator: ";")
  }

  private static func lastComponent(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  /// A semicolon would end the frame, and a number at the end of the line would be taken for the count.
  private static func field(_ text: String) -> String {
    let name = String(Printable.line(text).unicodeScalars.map { $0 == ";" ? ":" : Character($0) })
    return name.isEmpty ? "unknown" : name
  }
}

extension UInt64 {
  fileprivate mutating func add(_ other: UInt64) {
    let (sum, overflow) = addingReportingOverflow(other)
    self = overflow ? .max : sum
  }
}
