internal import CrashModel

/// The lines of glibc's `backtrace_symbols`, which C and C++ daemons print by themselves:
/// `./api(main+0x1b)[0x55d0c0a0a1b2]`, `/lib/x86_64-linux-gnu/libc.so.6(+0x27249) [0x7fc41fa45249]`.
struct BacktraceSymbols: TraceReader {
  static let name = "backtrace_symbols lines"
  static let patience = 3

  private(set) var draft = ReportDraft()
  private var count = 0

  init?(beginning line: ArraySlice<UInt8>) {
    draft.beginThread(crashed: true)
    guard readFrame(line.trimmed) else { return nil }
  }

  mutating func read(_ line: ArraySlice<UInt8>) -> TraceLine { readFrame(line.trimmed) ? .taken : .foreign }

  private mutating func readFrame(_ text: ArraySlice<UInt8>) -> Bool {
    guard text.last == UInt8(ascii: "]"), let bracket = text.lastIndex(of: "[0x") else { return false }
    var scanner = LineScanner(text[(bracket + 1)...])
    guard let address = scanner.hex(), scanner.rest.count == 1 else { return false }
    let before = text[..<bracket].trimmed
    // Taken from inside: the addresses are those that calls return to.
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: .returnAddress, address: Address(rawValue: address)), status: .noSymbols)
    guard before.last == UInt8(ascii: ")"), let open = before.lastIndex(of: UInt8(ascii: "(")), open > before.startIndex
    else { return false }
    let path = before[..<open]
    guard !path.contains(0x20) || path.first == UInt8(ascii: "/") else { return false }
    let symbol = before[(open + 1)...].dropLast()
    guard symbol.isEmpty || symbol.contains("+0x") || symbol.contains("-0x") else { return false }
    let name = symbol.prefix { $0 != UInt8(ascii: "+") }
    var offset = LineScanner(symbol[name.endIndex...].dropFirst())
    if name.isEmpty, let value = offset.hex() {
      frame.captured.imageIndex = draft.image(path: path.string, address: address, offset: value, isVirtual: true)
    } else {
      frame.captured.imageIndex = draft.image(named: path.string)
    }
    if !name.isEmpty {
      let text = name.string
      (frame.status, frame.function) = (.resolved, Demangler.simplified(text) ?? text)
      if frame.function != text { frame.rawFunction = text }
    }
    draft.add(frame)
    count += 1
    return true
  }

  mutating func finish() -> CrashReport? {
    // One such line is no stack.
    guard count > 1 else { return nil }
    return draft.finished(format: "stack trace")
  }
}
