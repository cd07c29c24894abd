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

  /// Addresses of the crashing thread, innermost first.
  var addresses: [UInt64] {
    report.crashedThread?.frames.compactMap { $0.captured?.address.rawValue } ?? []
  }

  /// Linker names of the crashing thread's frames, by binutils: an opinion that is not ours.
  func names() throws -> [String] {
    var result: [String] = []
    var cache: [String: String] = [:]
    for frame in report.crashedThread?.frames ?? [] {
      guard let captured = frame.captured, let index = captured.imageIndex else {
        result.append("?")
        continue
      }
      let image = report.images[index]
      let address = image.virtualAddress(of: image.offset(of: captured.lookupAddress))
      let key = "\(image.path) \(address)"
      if cache[key] == nil, image.path.hasPrefix("/") {
        let outcome = try ChildProcess(
          ["/usr/bin/env", "addr2line", "-f", "-e", image.path, "0x" + String(address, radix: 16)]
        ).run()
        cache[key] = outcome.text.split(separator: "\n").first.map(String.init) ?? "?"
      }
      result.append(cache[key] ?? "?")
    }
    return result
  }
}

/// Program counters of the crashed thread as gdb finds them in a core, innermost first. Frames that gdb makes up from
/// debug information (inlined functions, tail calls) are left out: they are on no stack.
func gdbProgramCounters(executable: String, core: String) throws -> [UInt64] {
  let script = """
    f = gdb.newest_frame()
    n = 0
    while f is not None and n < 400:
      if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): print('pc %x' % f.pc())
      f = f.older()
      n += 1
    """
  let directory = try TemporaryDirectory("gdb")
  try script.write(toFile: "\(directory.path)/frames.py", atomically: true, encoding: .utf8)
  let outcome = try ChildProcess([
    "/usr/bin/env", "gdb", "-batch", "-nx", "-iex", "set auto-load off", "-ex", "set debuginfod enabled off",
    "-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on", executable, core, "-x",
    "\(directory.path)/frames.py",
  ]).run()
  var counters: [UInt64] = []
  for line in outcome.text.split(separator: "\n") where line.hasPrefix("pc ") {
    guard let pc = UInt64(line.dropFirst(3), radix: 16), pc != 0 || counters.isEmpty else { continue }
    counters.append(pc)
  }
  return counters
}
