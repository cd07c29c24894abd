import CrashModel
import Foundation
import TestSupport

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

  /// Linker names of the crashing thread's frames, by binutils: an opinion that is not ours.
  func names(addr2line: String = "addr2line") throws -> [String] {
    try report.crashedThread.map { try names(of: $0, addr2line: addr2line) } ?? []
  }

  func names(of thread: ThreadInfo, addr2line: String = "addr2line") throws -> [String] {
    var result: [String] = []
    var cache: [String: String] = [:]
    for frame in thread.frames {
      guard let captured = frame.captured, let index = captured.imageIndex else {
        result.append("?")
        continue
      }
      let image = report.images[index]
      let address = image.virtualAddress(of: image.offset(of: captured.lookupAddress))
      let key = "\(image.path) \(address)"
      if cache[key] == nil, image.path.hasPrefix("/") {
        let outcome = try ChildProcess(
          ["/usr/bin/env", addr2line, "-f", "-e", image.path, "0x" + String(address, radix: 16)]
        ).run()
        cache[key] = outcome.text.split(separator: "\n").first.map(String.init) ?? "?"
      }
      result.append(cache[key] ?? "?")
    }
    return result
  }
}
