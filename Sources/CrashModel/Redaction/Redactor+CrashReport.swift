extension Redactor {
  /// Redacts every text of a report that can hold a user's words.
  ///
  /// The one list of such fields, for the report that the library makes and for the one that a tool reads. Whatever is
  /// not here is on the list of `docs/redaction.md` that says why; a test fills every text of a report and fails for one
  /// that is on neither. Applying it again changes nothing.
  ///
  /// - Note: the path of the executable is redacted, those of the images are not: by them the debug files are found.
  public func redact(_ report: inout CrashReport) {
    report.id = redact(report.id)
    redact(&report.type)
    if let reason = report.reason { report.reason = Reason(rawValue: redact(reason.rawValue)) }
    redact(&report.message)
    if var signal = report.signal {
      signal.name = redact(signal.name)
      redact(&signal.codeName)
      report.signal = signal
    }
    if var process = report.process {
      redact(&process.executable)
      redact(&process.host)
      redact(&process.architecture)
      report.process = process
    }
    redact(&report.runID)
    redact(&report.operation)
    if var task = report.task {
      redact(&task.name)
      for index in task.locals.indices { redact(&task.locals[index]) }
      report.task = task
    }
    redact(&report.userID)
    for index in report.tags.indices { redact(&report.tags[index]) }
    for index in report.breadcrumbs.indices {
      redact(&report.breadcrumbs[index].category)
      report.breadcrumbs[index].message = redact(report.breadcrumbs[index].message)
    }
    for index in report.threads.indices {
      redact(&report.threads[index].name)
      for register in report.threads[index].registers.indices {
        report.threads[index].registers[register].name = redact(report.threads[index].registers[register].name)
      }
    }
    for index in report.notes.indices { report.notes[index] = redact(report.notes[index]) }
  }

  private func redact(_ text: inout String?) { text = text.map { redact($0) } }

  /// A tag's key may be what makes its value a secret: the tag `password` is the pair `password=…`, written apart.
  private func redact(_ tag: inout Tag) {
    tag.key = redact(tag.key)
    let alone = redact(tag.value)
    let pair = tag.key + "=" + tag.value
    tag.value = alone == tag.value && redact(pair) != pair ? Self.token : alone
  }
}
