extension Redactor {
  /// Redacts every text of a report that can hold a user's words.
  ///
  /// The one list of such fields, for the report that the library makes and for the one that a tool reads. Whatever is
  /// not here is on the list of `docs/redaction.md` that says why; a test fills every text of a report and fails for one
  /// that is on neither. Applying it again changes nothing.
  ///
  /// - Note: the path of the executable is redacted, those of the images are not: by them the debug files are found.
  public func redact(_ report: inout CrashReport) {
    redactSummary(of: &report)
    redactDetails(of: &report)
  }

  /// What of it says which crash it was. For whoever keeps nothing else: a group of crashes has a sample, and no breadcrumbs.
  package func redactSummary(of report: inout CrashReport) {
    redact(&report.id)
    redact(&report.type)
    if let reason = report.reason, let text = redacted(reason.rawValue) { report.reason = Reason(rawValue: text) }
    redact(&report.message)
    if var signal = report.signal {
      redact(&signal.name)
      redact(&signal.codeName)
      report.signal = signal
    }
    if var ending = report.ending {
      for index in ending.evidence.indices { redact(&ending.evidence[index]) }
      for index in ending.couldAlsoBe.indices { redact(&ending.couldAlsoBe[index]) }
      report.ending = ending
    }
    if var hang = report.hang {
      redact(&hang.watch)
      report.hang = hang
    }
    if var process = report.process {
      redact(&process.executable)
      redact(&process.host)
      redact(&process.architecture)
      report.process = process
    }
    redact(&report.runID)
    redact(&report.operation)
    redact(&report.userID)
    // It goes into the stack hash, which must be the same for whoever needs nothing else of the tags.
    for index in report.tags.indices where report.tags[index].key == StackHasher.groupTag {
      redact(&report.tags[index].value)
    }
  }

  private func redactDetails(of report: inout CrashReport) {
    if var task = report.task {
      redact(&task.name)
      for index in task.locals.indices { task.locals[index] = redacted(task.locals[index]) }
      report.task = task
    }
    // Looked at before they are reached for: an array that is shared is copied as soon as an element may change.
    for (index, tag) in report.tags.enumerated() {
      let redacted = redacted(tag)
      if redacted != tag { report.tags[index] = redacted }
    }
    for index in report.breadcrumbs.indices {
      if let text = report.breadcrumbs[index].category.flatMap(redacted) { report.breadcrumbs[index].category = text }
      if let text = redacted(report.breadcrumbs[index].message) { report.breadcrumbs[index].message = text }
    }
    for index in report.threads.indices {
      if let text = report.threads[index].name.flatMap(redacted) { report.threads[index].name = text }
      for register in report.threads[index].registers.indices {
        if let text = redacted(report.threads[index].registers[register].name) {
          report.threads[index].registers[register].name = text
        }
      }
    }
    for index in report.notes.indices {
      if let text = redacted(report.notes[index]) { report.notes[index] = text }
    }
  }

  private func redact(_ text: inout String) {
    if let changed = redacted(text) { text = changed }
  }

  private func redact(_ text: inout String?) {
    if let changed = text.flatMap(redacted) { text = changed }
  }

  /// A tag's key may be what makes its value a secret: the tag `password` is the pair `password=…`, written apart.
  private func redacted(_ tag: Tag) -> Tag {
    let key = redact(tag.key)
    if let alone = redacted(tag.value) { return Tag(key: key, value: alone) }
    let isSecret = redacted(key + "=" + tag.value) != nil
    return Tag(key: key, value: isSecret ? Self.token : tag.value)
  }
}
