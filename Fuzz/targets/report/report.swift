// Every format that `symbolicate` reads, on any bytes in a file: an event or an error with a reason for each, never a trap,
// never silence. What was read as a report is written, and read again: the same bytes come out.

import CrashFormats
import CrashModel
import Glibc

/// One file for all inputs, which lives in memory and has a name for as long as this process.
private let file = memfd("fuzz")
private let path = "/proc/self/fd/\(file)"

/// For all inputs, as they are for all files of a run.
nonisolated(unsafe) private let readers: (input: InputReader, again: ReportReader)? = {
  guard let input = InputReader(), let again = ReportReader() else { return nil }
  return (input, again)
}()

private func memfd(_ name: String) -> CInt {
  let descriptor = memfd_create(name, 0)
  precondition(descriptor >= 0, "no file in memory")
  return descriptor
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  ftruncate(file, 0)
  precondition(pwrite(file, start, count, 0) == count, "the file in memory is full")
  guard let readers else { fatalError("no memory") }
  var events = 0
  do throws(InputError) {
    try readers.input.read(path: path) { event in
      events += 1
      switch event {
      case .report(let report, _): check(report, with: readers.again)
      case .skipped(let why, _), .problem(let why, _): precondition(!why.isEmpty, "an event without a reason")
      }
      return true
    }
    precondition(events > 0, "silence")
  } catch {
    precondition(!error.description.isEmpty, "an error without a reason")
  }
  return 0
}

private func check(_ report: CrashReport, with reader: ReportReader) {
  let bytes = report.json()
  do throws(ReportError) {
    let second = try reader.report(from: bytes)
    precondition(
      second.json() == bytes, "another report when it is read again: \(String(decoding: bytes, as: UTF8.self))")
  } catch {
    fatalError("a report of ours is not read: \(error)")
  }
}
