internal import CrashModel

/// LLVM's symbolizer markup: `{{{module:0:api:elf:a4b7…}}}`, `{{{mmap:0x5580c144e000:0x7000:load:0:rx:0x0}}}`,
/// `{{{bt:0:0x5580c14539e0:ra}}}`.
struct SymbolizerMarkup: TraceReader {
  static let name = "symbolizer markup"
  static let patience = 20

  private struct Module {
    var name: String
    var buildID: BuildID?
    var start: UInt64?
    var end: UInt64 = 0
    /// The address that the file gives its beginning.
    var virtual: UInt64 = 0
  }

  private(set) var draft = ReportDraft()
  private var modules: [UInt64: Module] = [:]

  init?(beginning line: ArraySlice<UInt8>) {
    guard
      line.contains("{{{reset") || line.contains("{{{module:") || line.contains("{{{bt:") || line.contains("{{{mmap:")
    else { return nil }
    _ = read(line)
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine {
    var scanner = LineScanner(line)
    var isKnown = false
    while scanner.up(to: "{{{") != nil, let element = scanner.up(to: "}}}") {
      let fields = element.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard let tag = fields.first else { continue }
      if tag.equals("reset") {
        if draft.hasFrames { return .behind }
        modules = [:]
        isKnown = true
      } else if tag.equals("module"), fields.count >= 4, let id = Self.number(fields[1]) {
        if modules.count < ReportDraft.imageLimit {
          modules[id] = Module(name: fields[2].string, buildID: fields.count > 4 ? BuildID(fields[4].string) : nil)
        }
        isKnown = true
      } else if tag.equals("mmap"), fields.count >= 5, let start = Self.number(fields[1]),
        let size = Self.number(fields[2]),
        let id = Self.number(fields[4])
      {
        map(id, start, size, virtual: fields.count > 6 ? Self.number(fields[6]) ?? 0 : 0)
        isKnown = true
      } else if tag.equals("bt"), fields.count >= 3, let index = Self.number(fields[1]),
        let address = Self.number(fields[2])
      {
        let kind = fields.count > 3 ? fields[3] : [][...]
        let isCall = kind.equals("ra") || kind.isEmpty && index > 0
        if index == 0 || draft.report.threads.isEmpty { draft.beginThread(crashed: draft.report.threads.isEmpty) }
        draft.add(
          SymbolicatedFrame(
            captured: CapturedFrame(
              kind: isCall ? .returnAddress : .programCounter, address: Address(rawValue: address)),
            status: .noSymbols))
        isKnown = true
      }
    }
    return isKnown ? .taken : .foreign
  }

  private mutating func map(_ id: UInt64, _ start: UInt64, _ size: UInt64, virtual: UInt64) {
    guard var module = modules[id] else { return }
    let (end, overflow) = start.addingReportingOverflow(size)
    if module.start.map({ start < $0 }) ?? true { (module.start, module.virtual) = (start, virtual) }
    module.end = max(module.end, overflow ? .max : end)
    modules[id] = module
  }

  private static func number(_ text: ArraySlice<UInt8>) -> UInt64? {
    var scanner = LineScanner(text)
    return scanner.hex() ?? scanner.decimal()
  }

  mutating func finish() -> CrashReport? {
    guard draft.hasFrames else { return nil }
    for (_, module) in modules.sorted(by: { $0.key < $1.key }) {
      draft.add(
        Image(
          path: module.name, buildID: module.buildID, address: Address(rawValue: module.start ?? 0),
          size: module.end - (module.start ?? 0), firstVirtualAddress: module.virtual))
    }
    return draft.finished(format: "markup")
  }
}
