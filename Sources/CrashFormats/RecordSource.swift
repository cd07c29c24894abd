internal import CrashModel

/// Turns the bytes of a record into a report: the one place where this module meets the record reader.
enum RecordSource {
  static let sizeLimit = Int(clamping: CrashRecord.maximumFileSize)

  enum Outcome {
    case crash(CrashReport)
    /// Nothing is wrong, and there is nothing to show: why.
    case noCrash(String)
    case damaged(String)
  }

  static func read(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    let record: CrashRecord
    do { record = try CrashRecord.read(bytes: bytes) } catch { return .damaged(error.description) }
    guard record.hasCrash else {
      switch record.runState {
      case .exited, .stopped: return .noCrash("the record of a run that ended without a crash")
      default: return .noCrash("the record of a run in which nothing has crashed (so far)")
      }
    }
    return .crash(record.report())
  }
}
