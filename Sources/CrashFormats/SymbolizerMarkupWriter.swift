public import CrashModel

/// Writes a report's addresses as LLVM symbolizer markup, which `llvm-symbolizer --filter-markup` gives names anew: a
/// second opinion, and a form in which a stack can be passed on without any names in it.
///
/// Inlined functions are not written, as whoever resolves the markup finds them again. Images without a build id cannot be
/// named in it; their frames stay addresses.
///
/// ```swift
/// print(SymbolizerMarkupWriter().text(of: report), terminator: "")
/// ```
public struct SymbolizerMarkupWriter: Sendable {
  /// Every thread, not only the one that crashed.
  public var showsAllThreads = true

  public init() {}

  /// - Returns: lines, the last one ended.
  public func text(of report: CrashReport) -> String {
    var text = "{{{reset}}}\n"
    var end: UInt64 = 0
    var module = 0
    // A mapping that overlaps one before it is an error to the filter: what was unloaded is left out, and of two images that
    // claim one address the first stays.
    for image in report.images.sorted(by: { $0.address < $1.address }) where !image.isUnloaded {
      guard let id = image.buildID, image.size > 0, image.address.rawValue >= end else { continue }
      let (last, overflow) = image.address.rawValue.addingReportingOverflow(image.size)
      guard !overflow else { continue }
      end = last
      text += "{{{module:\(module):\(Self.field(image.name)):elf:\(id)}}}\n"
      text += "{{{mmap:\(image.address):\(Hex.prefixed(image.size)):load:\(module):rx:"
      text += "\(Hex.prefixed(image.firstVirtualAddress))}}}\n"
      module += 1
    }
    for (index, thread) in report.threads.enumerated() {
      let crashed = index == report.crashedThreadIndex || thread.crashed
      guard crashed || showsAllThreads || report.crashedThreadIndex == nil else { continue }
      let name = thread.name.map { $0.isEmpty ? "" : " \(Self.plain(Printable.quoted($0)))" } ?? ""
      text += "Thread \(index)\(name)\(crashed ? " crashed" : ""):\n"
      var number: UInt64 = 0
      for frame in thread.frames {
        guard let captured = frame.captured else {
          if case .omitted(let count) = frame {
            text += "(\(count) frames not kept)\n"
            number = number.addingReportingOverflow(count).partialValue
          }
          continue
        }
        if frame.symbolicated?.inlined == true || !captured.hasAddress { continue }
        text += "{{{bt:\(number):\(captured.address):\(captured.kind == .returnAddress ? "ra" : "pc")}}}\n"
        number = number.addingReportingOverflow(1).partialValue
      }
    }
    return text
  }

  /// A field ends at a colon and an element at `}}}`, and neither can be escaped.
  private static func field(_ text: String) -> String {
    let printable = Printable.line(text)
    return String(printable.map { ":{}".contains($0) ? "_" : $0 })
  }

  /// Text beside the elements must not look like one.
  private static func plain(_ text: String) -> String { String(text.map { "{}".contains($0) ? "_" : $0 }) }
}
