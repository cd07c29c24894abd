import CrashModel
import Foundation
import TestSupport
import Testing

/// What one run left, read back.
struct CapturedRecord {
  var record: CrashRecord
  var report: CrashReport
  var bytes: [UInt8]

  /// The only record in a folder; nil where there is none.
  init?(in directory: TemporaryDirectory, folder: String = "spool") throws {
    let names = directory.names(in: folder).filter { $0.hasSuffix(".crashrecord") }
    guard names.count == 1, let bytes = contents(of: "\(directory.path)/\(folder)/\(names[0])") else { return nil }
    self.bytes = bytes
    record = try bytes.withUnsafeBytes { try CrashRecord.read(bytes: $0) }
    report = record.report()
  }

  /// Addresses on the stack of the crashing thread, innermost first, without the callers that await.
  var addresses: [UInt64] {
    (report.crashedThread?.frames ?? []).compactMap { $0.captured }.filter { $0.kind != .asyncResume }
      .map(\.address.rawValue)
  }

  /// Expects these functions among the crashing thread's frames, in this order; others may stand between.
  func expectFunctions(
    _ functions: [String], addr2line: String = "addr2line", by matches: (String, String) -> Bool = { $0 == $1 },
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let names = try names(addr2line: addr2line)
    var position = 0
    for function in functions {
      guard let found = names[position...].firstIndex(where: { matches($0, function) }) else {
        Issue.record("\(function) is not in \(names.prefix(60))", sourceLocation: sourceLocation)
        return
      }
      position = found + 1
    }
  }

  /// Linker names of the crashing thread's frames, by binutils: an opinion that is not ours.
  func names(addr2line: String = "addr2line") throws -> [String] {
    try report.crashedThread.map { try names(of: $0, addr2line: addr2line) } ?? []
  }

  func names(of thread: ThreadInfo, addr2line: String = "addr2line") throws -> [String] {
    let frames = thread.frames.map { frame -> (path: String, address: String)? in
      guard let captured = frame.captured, let index = captured.imageIndex else { return nil }
      let image = report.images[index]
      guard image.path.hasPrefix("/") else { return nil }
      let address = image.virtualAddress(of: image.offset(of: captured.lookupAddress))
      return (image.path, String(address, radix: 16))
    }
    // One process for each image: it reads the image's symbols before it answers.
    var known: [String: [String: String]] = [:]
    for (path, frames) in Dictionary(grouping: frames.compactMap { $0 }, by: \.path) {
      let addresses = Set(frames.map(\.address)).sorted()
      let outcome = try ChildProcess(["/usr/bin/env", addr2line, "-f", "-e", path] + addresses).run()
      // Two lines for each: the function, and its place.
      let lines = outcome.text.split(separator: "\n")
      for (index, address) in addresses.enumerated() where lines.indices.contains(2 * index) {
        known[path, default: [:]][address] = String(lines[2 * index])
      }
    }
    return frames.map { frame in frame.flatMap { known[$0.path]?[$0.address] } ?? "?" }
  }
}
