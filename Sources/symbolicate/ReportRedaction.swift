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

  private static func redacted(_ text: String) -> String { redactor.redact(text) }

  private static let redactor = Redactor()
}
