// What the targets that read files of any format have in common.

import CrashFormats
import CrashModel
import Glibc

/// One file for all inputs, which lives in memory and has a name for as long as this process.
struct InputInMemory {
  private let descriptor: CInt
  private let path: String
  private let input: InputReader
  private let again: ReportReader

  init() {
    descriptor = memfd_create("input", 0)
    precondition(descriptor >= 0, "no file in memory")
    path = "/proc/self/fd/\(descriptor)"
    guard let input = InputReader(), let again = ReportReader() else { fatalError("no memory") }
    // For all inputs, as they are for all files of a run.
    (self.input, self.again) = (input, again)
  }

  /// Reads `first` and the input behind it as one file: an event or an error with a reason, never silence.
  func read(_ first: StaticString, _ start: UnsafePointer<UInt8>?, _ count: Int, _ check: (CrashReport) -> Void) {
    ftruncate(descriptor, 0)
    let length = first.utf8CodeUnitCount
    precondition(pwrite(descriptor, first.utf8Start, length, 0) == length, "the file in memory is full")
    precondition(pwrite(descriptor, start, count, off_t(length)) == count, "the file in memory is full")
    var events = 0
    do throws(InputError) {
      try input.read(path: path) { event in
        events += 1
        switch event {
        case .report(let report, _): check(report)
        case .skipped(let why, _), .problem(let why, _): precondition(!why.isEmpty, "an event without a reason")
        }
        return true
      }
      precondition(events > 0, "silence")
    } catch {
      precondition(!error.description.isEmpty, "an error without a reason")
    }
  }

  /// A report that is written and read again is the same, to the byte.
  func checkThatItIsReadAgain(_ report: CrashReport) {
    let bytes = report.json()
    do throws(ReportError) {
      let second = try again.report(from: bytes)
      precondition(
        second.json() == bytes, "another report when it is read again: \(String(decoding: bytes, as: UTF8.self))")
    } catch {
      fatalError("a report of ours is not read: \(error)")
    }
  }
}
