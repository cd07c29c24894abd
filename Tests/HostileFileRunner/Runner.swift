private import CrashModel
private import Glibc
private import Symbolication

// HostileFileRunner FILE FOLDER COUNT SEED [flip|cut|none] [--in-process] [--tables] [--seconds N] [--memory BYTES] < ADDRESSES
//
// Makes COUNT files from FILE, with bytes changed, one after the other in FOLDER, and asks each for the names of the
// addresses (hex, one a line), all by one symbolicator. With `none` FILE is asked as it is. Prints, separated by tabs, a line
// for each file that is not simply answered: its number, `refused` or `ended`, and the reason; and at last
// `done`, how many were answered, refused, and ended a reader. Files that end one stay in FOLDER.
//
// A program of its own because only one with a single thread can start a reader.

/// What came of one file.
private enum Outcome {
  case answered
  /// With a reason for what is missing, which is nothing that ended a reader.
  case refused(String)
  /// It ended a reader, and there are names nevertheless, or not.
  case ended(String)
}

private func outcome(of path: String, addresses: [UInt64], _ symbolicator: Symbolicator) -> Outcome {
  let base: UInt64 = 0x7000_0000_0000
  var report = CrashReport(id: "0190a000-0000-7000-8000-000000000000")
  report.images = [Image(path: path, buildID: nil, address: Address(rawValue: base), size: 1 << 40)]
  report.threads = [
    ThreadInfo(
      crashed: true,
      frames: addresses.map {
        .captured(CapturedFrame(kind: .programCounter, address: Address(rawValue: base &+ $0), imageIndex: 0))
      })
  ]
  report.crashedThreadIndex = 0
  let result = symbolicator.symbolicate(report)
  for refusal in result.images[0].refusals {
    if case .unreadable(.endedReader(_, let detail)) = refusal.reason { return .ended(detail) }
    if case .debugInformation(let text) = refusal.reason, text.hasPrefix("reading it ") { return .ended(text) }
  }
  let hasNames = result.report.threads[0].frames.contains { $0.symbolicated?.function != nil }
  switch result.images[0].status {
  case .debugInformation: return .answered
  case .symbolsOnly(let reason), .dynamicSymbolsOnly(let reason):
    return .refused(reason ?? (hasNames ? "symbols only" : "no symbol there"))
  case .notFound(let places): return .refused("not found in \(places)")
  case .buildIDMismatch: return .refused("build id")
  case .unreadable(_, let reason): return .refused(reason)
  case .noNames: return .refused("no names")
  }
}

/// The command line.
private struct Arguments {
  var words: [String]

  mutating func take(flag: String) -> Bool {
    guard let index = words.firstIndex(of: flag) else { return false }
    words.remove(at: index)
    return true
  }

  mutating func take(option: String) -> Int? {
    guard let index = words.firstIndex(of: option), index + 1 < words.count else { return nil }
    defer { words.removeSubrange(index...index + 1) }
    return Int(words[index + 1])
  }
}

enum Runner {
  static func run() -> CInt {
    var arguments = Arguments(words: Array(CommandLine.arguments.dropFirst()))
    let isInProcess = arguments.take(flag: "--in-process")
    let tables = AddressTables(use: arguments.take(flag: "--tables") ? .always : .never)
    var limits = ReaderLimits(processorSeconds: arguments.take(option: "--seconds") ?? 20)
    if let memory = arguments.take(option: "--memory") { limits.memory = UInt64(memory) }
    let words = arguments.words
    guard words.count >= 4, let original = readAll(words[0]), let count = Int(words[2]), let seed = UInt64(words[3])
    else {
      print("usage: HostileFileRunner FILE FOLDER COUNT SEED [flip|cut|none] [OPTION]... < ADDRESSES")
      return 64
    }
    let kind = words.count > 4 ? words[4] : "flip"
    var addresses: [UInt64] = []
    while let line = readLine() { if let address = Hex.value(line) { addresses.append(address) } }
    let symbolicator =
      isInProcess
      ? Symbolicator(search: DebugFileSearch(systemDirectory: nil), tables: tables)
      : Symbolicator(isolating: { DebugFileSearch(systemDirectory: nil) }, limits: limits, tables: tables)
    var variants = Variants(original, seed: seed)
    var (answered, refused, ended) = (0, 0, 0)
    for number in 0..<count {
      let path = kind == "none" ? words[0] : "\(words[1])/\(number)"
      if kind != "none", !write(variants.next(cut: kind == "cut"), to: path) {
        print("cannot write \(path)")
        return 1
      }
      switch outcome(of: path, addresses: addresses, symbolicator) {
      case .answered: answered += 1
      case .refused(let reason):
        refused += 1
        print("\(number)\trefused\t\(reason)")
      case .ended(let reason):
        ended += 1
        print("\(number)\tended\t\(reason)")
        continue
      }
      if kind != "none" { unlink(path) }
    }
    print("done\t\(answered)\t\(refused)\t\(ended)")
    return 0
  }
}
