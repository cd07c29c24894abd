private import CCrashFormat
internal import CrashModel

/// Redacts the texts of a report that was read from outside: the one place where the tool meets redaction.
///
/// Redaction changes nothing in what it made before, so that reports of our own stay what they are.
enum ReportRedaction {
  static func apply(to report: inout CrashReport) {
    redact(&report.message)
    redact(&report.operation)
    for index in report.tags.indices { report.tags[index].value = redacted(report.tags[index].value) }
    for index in report.breadcrumbs.indices {
      redact(&report.breadcrumbs[index].category)
      report.breadcrumbs[index].message = redacted(report.breadcrumbs[index].message)
    }
    for index in report.notes.indices { report.notes[index] = redacted(report.notes[index]) }
  }

  private static func redact(_ text: inout String?) { text = text.map(redacted) }

  private static func redacted(_ text: String) -> String {
    var text = text
    return text.withUTF8 { bytes in
      // `[redacted]` can be longer than what it stands for, at most by the factor that the shortest match gives.
      let capacity = 4 * bytes.count + 64
      return String(unsafeUninitializedCapacity: capacity) { output in
        var truncated: CInt = 0
        return output.withMemoryRebound(to: CChar.self) { output in
          bytes.withMemoryRebound(to: CChar.self) { input in
            crash_redact_base(input.baseAddress, input.count, output.baseAddress, output.count, &truncated)
          }
        }
      }
    }
  }
}
