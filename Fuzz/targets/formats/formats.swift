// Every text and JSON format that other tools write, alone and in logs, on any bytes: an event or an error with a reason for
// each, never a trap, never silence. What was read as a crash is redacted, hashed and shown, written and read again as the
// tool does: the same bytes come out, and redacting once more changes nothing.

import CrashFormats
import CrashModel

nonisolated(unsafe) private let input = InputInMemory()
private let hasher = StackHasher()
private let redactor = Redactor()

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  // Most inputs that the fuzzer makes are no JSON, and a line of text in front makes a log of every one.
  let isLog = count > 0 && start?[0] == UInt8(ascii: "\n")
  input.read(isLog ? "a log\n" : "", start, count, check)
  return 0
}

private func check(_ original: CrashReport) {
  var report = original
  redactor.redact(&report)
  var twice = report
  redactor.redact(&twice)
  precondition(twice == report, "redacted once more, it is another")
  let analysis = hasher.analyze(report)
  precondition(analysis.hash.digits.utf8.count == 32, "no hash")
  precondition(report.threads.count <= 16_384 && report.images.count <= 16_384 + 16_384, "too much is kept")
  precondition(!TextReportWriter().text(of: report, symbols: []).isEmpty, "nothing to show")
  input.checkThatItIsReadAgain(report)
}
