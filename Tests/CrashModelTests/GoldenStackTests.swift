import CrashModel
import Foundation
import TestSupport
import Testing

/// What the algorithm makes of frames and stacks, kept so that nobody changes a key without knowing: that would be another
/// algorithm, with another id.
@Suite struct GoldenStackTests {
  /// The first three columns are what a frame is made of, the others what comes out: class and canonical name.
  @Test func framesKeepTheirClassesAndNames() throws {
    let path = LabelledStacks.folder + "/golden-frames.tsv"
    let rows = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
      $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    }
    #expect(rows.count >= 200)
    let hasher = StackHasher()
    var text = ""
    for row in rows {
      let (image, name, file) = (row[0], row[1], row[2])
      let frames = [
        Self.frame(name, image: image == "ordersd" ? 0 : 1, file: file == "-" ? nil : file),
        // The image has debug information, so that a function without any is nobody's.
        Self.frame("$s7ordersd4mainyyF", image: 0, file: "App/main.swift"),
      ]
      let analysis = hasher.analyze(Self.report(frames, library: image))
      let frameClass = try #require(analysis.frames.first).frameClass
      text += "\(image)\t\(name)\t\(file)\t\(frameClass.kind.rawValue)\t\(frameClass.name ?? "-")\n"
    }
    #expect(try GoldenFile.difference(Array(text.utf8), from: path) == nil)
  }

  /// One stack of every bug and build of the labelled set, with debug information and without.
  @Test(arguments: ["full", "symtab"]) func stacksKeepTheirKeys(view: String) throws {
    var seen: Set<String> = []
    var text = ""
    let hasher = StackHasher()
    for entry in try LabelledStacks(view: view).entries where seen.insert("\(entry.bug) \(entry.rel)").inserted {
      let analysis = hasher.analyze(LabelledStacks.report(of: entry))
      let key = analysis.key.replacing("\0", with: "␀")
      let site = analysis.siteLine.map(String.init) ?? "-"
      text += "\(entry.id)\t\(analysis.hash.digits)\t\(analysis.hash.quality.rawValue)\t\(site)\t\(key)\n"
    }
    #expect(seen.count >= 100)
    let path = LabelledStacks.folder + "/golden-hashes.\(view).tsv"
    #expect(try GoldenFile.difference(Array(text.utf8), from: path) == nil)
  }

  private static func frame(_ name: String, image: Int, file: String?) -> Frame {
    .symbolicated(
      SymbolicatedFrame(
        captured: CapturedFrame(
          kind: .returnAddress, address: Address(rawValue: UInt64(image + 1) << 32 + 0x100), imageIndex: image,
          imageOffset: ImageOffset(rawValue: 0x100)),
        status: .resolved, function: Demangler.simplified(name) ?? name, rawFunction: name, file: file,
        line: file == nil ? nil : 3, hasDebugInformation: file != nil))
  }

  private static func report(_ frames: [Frame], library: String) -> CrashReport {
    var report = CrashReport(id: "r")
    report.process = ProcessInfo(executable: "/srv/ordersd")
    report.signal = SignalInfo(number: 4, name: "SIGILL")
    report.images = ["/srv/ordersd", "/usr/lib/\(library)"].enumerated().map { index, path in
      Image(path: path, buildID: BuildID("aa11"), address: Address(rawValue: UInt64(index + 1) << 32), size: 1 << 20)
    }
    report.threads = [ThreadInfo(crashed: true, frames: frames)]
    report.crashedThreadIndex = 0
    return report
  }
}
