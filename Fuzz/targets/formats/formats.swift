// Every text and JSON format that other tools write, alone and in logs, on any bytes: an event or an error with a reason for
// each, never a trap, never silence. What was read as a crash is redacted, hashed and shown, written and read again as the
// tool does: the same bytes come out, and redacting once more changes nothing.

import CrashFormats
import CrashModel
import Glibc

/// One file for all inputs, which lives in memory and has a name for as long as this process.
private let file = memfd("formats")
private let path = "/proc/self/fd/\(file)"

/// For all inputs, as they are for all files of a run.
nonisolated(unsafe) private let readers: (input: InputReader, again: ReportReader)? = {
  guard let input = InputReader(), let again = ReportReader() else { return nil }
  return (input, again)
}()
private let hasher = StackHasher()
private let redactor = Redactor()

private func memfd(_ name: String) -> CInt {
  let descriptor = memfd_create(name, 0)
  precondition(descriptor >= 0, "no file in memory")
  return descriptor
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  // Most inputs that the fuzzer makes are no JSON, and a line of text in front makes a log of every one.
  let isLog = count > 0 && start?[0] == UInt8(ascii: "\n")
  ftruncate(file, 0)
  var offset = 0
  if isLog {
    precondition(pwrite(file, "a log\n", 6, 0) == 6, "the file in memory is full")
    offset = 6
  }
  precondition(pwrite(file, start, count, off_t(offset)) == count, "the file in memory is full")
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

private func check(_ original: CrashReport, with reader: ReportReader) {
  var report = original
  redactor.redact(&report)
  var twice = report
  redactor.redact(&twice)
  precondition(twice == report, "redacted once more, it is another")
  let analysis = hasher.analyze(report)
  precondition(analysis.hash.digits.utf8.count == 32, "no hash")
  precondition(report.threads.count <= 16_384 && report.images.count <= 16_384 + 16_384, "too much is kept")
  precondition(!TextReportWriter().text(of: report, symbols: []).isEmpty, "nothing to show")
  let bytes = report.json()
  do throws(ReportError) {
    let second = try reader.report(from: bytes)
    precondition(
      second.json() == bytes, "another report when it is read again: \(String(decoding: bytes, as: UTF8.self))")
  } catch {
    fatalError("a report of ours is not read: \(error)")
  }
}
