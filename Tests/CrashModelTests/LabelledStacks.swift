import CrashModel
import Foundation
import TestSupport

/// The labelled set: real stacks of seeded bugs over several builds of one daemon.
struct LabelledStacks {
  struct Entry: Decodable {
    struct FrameEntry: Decodable {
      var img: String?
      var off: UInt64?
      var fn: String?
      var name: String?
      var file: String?
      var line: Int?
      var col: Int?
      var decl: Int?
      var inl: Int?
      var elided: UInt64?
    }
    var id: String
    var bug: Int
    var rel: String
    var sig: Int32
    var code: UInt32
    var depth: UInt64
    var msg: String
    var frames: [FrameEntry]
  }

  let entries: [Entry]
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
    "Resources/grouping"
  ).path

  init(view: String) throws {
    let outcome = try ChildProcess(["/usr/bin/env", "gzip", "-dc", "\(Self.folder)/dev.\(view).jsonl.gz"]).run()
    let decoder = JSONDecoder()
    entries = try outcome.text.split(separator: "\n").map { try decoder.decode(Entry.self, from: Data($0.utf8)) }
  }

  static let signalNames: [Int32: String] = [4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"]

  static func report(of entry: Entry) -> CrashReport {
    var report = CrashReport(id: entry.id)
    if entry.sig == 27 { report.kind = .hang }  // the sampler's signal
    report.service = "ordersd"
    report.process = ProcessInfo(executable: "/srv/ordersd")
    report.signal = SignalInfo(
      number: entry.sig, name: signalNames[entry.sig] ?? "SIG\(entry.sig)", code: Int32(bitPattern: entry.code))
    report.type = report.signal?.name
    report.message = entry.msg.isEmpty ? nil : entry.msg
    var images: [String: Int] = [:]
    for name in ["ordersd"] + entry.frames.compactMap(\.img) where images[name] == nil {
      images[name] = report.images.count
      let path = name == "ordersd" ? "/srv/ordersd" : name
      let base = Address(rawValue: UInt64(report.images.count + 1) << 32)
      report.images.append(
        Image(path: path, buildID: BuildID(Hex.string(Array("\(entry.rel)\(name)".utf8))), address: base, size: 1 << 30)
      )
    }
    var frames: [Frame] = []
    for (index, frame) in entry.frames.enumerated() {
      if let elided = frame.elided {
        frames.append(.omitted(count: elided))
        continue
      }
      let image = frame.img.flatMap { images[$0] }
      let offset = frame.off ?? 0
      let captured = CapturedFrame(
        kind: index == 0 ? .programCounter : .returnAddress,
        address: Address(rawValue: (image.map { report.images[$0].address.rawValue } ?? 0) &+ offset),
        imageIndex: image,
        imageOffset: ImageOffset(rawValue: offset))
      guard let raw = frame.fn else {
        frames.append(.captured(captured))
        continue
      }
      frames.append(
        .symbolicated(
          SymbolicatedFrame(
            captured: captured, status: .resolved, function: frame.name ?? raw, rawFunction: raw, file: frame.file,
            line: frame.line, column: frame.col, declarationLine: frame.decl, inlined: frame.inl == 1,
            hasDebugInformation: frame.file != nil)))
    }
    report.threads = [ThreadInfo(crashed: true, depth: entry.depth, frames: frames)]
    report.crashedThreadIndex = 0
    return report
  }

  /// Pairwise precision, recall and F1 of a grouping against the bugs.
  static func score(_ rows: [(bug: Int, group: String)]) -> (precision: Double, recall: Double, f1: Double) {
    func pairs(_ counts: [some Hashable: Int]) -> Double {
      counts.values.reduce(0) { $0 + Double($1) * Double($1 - 1) / 2 }
    }
    let both = Dictionary(rows.map { ("\($0.bug) \($0.group)", 1) }, uniquingKeysWith: +)
    let bugs = Dictionary(rows.map { ($0.bug, 1) }, uniquingKeysWith: +)
    let groups = Dictionary(rows.map { ($0.group, 1) }, uniquingKeysWith: +)
    let precision = pairs(both) / pairs(groups)
    let recall = pairs(both) / pairs(bugs)
    return (precision, recall, 2 * precision * recall / (precision + recall))
  }
}
