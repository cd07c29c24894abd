extension CrashRecord {
  /// The report of the crash, without names and stack hash.
  ///
  /// A record without a crash gives a report of the kind `termination`. The id is made from the time of the crash and
  /// the record's own random bytes: however often and by whomever a record is read, the id is the same.
  public func report() -> CrashReport {
    var report = CrashReport(id: UUIDText.string(reportID), kind: reportKind)
    report.fatal = hasCrash
    report.timestamp = crashTime ?? snapshot?.time
    report.type = signal?.name
    report.signal = signal
    report.process = process
    report.service = service
    report.release = release
    report.environment = environment
    report.runID = snapshot.map { UUIDText.string($0.ofRun) } ?? runIDText
    report.operation = operation
    report.task = task
    report.userID = userID
    report.tags = tags
    report.breadcrumbs = breadcrumbs
    report.threads = threads
    report.crashedThreadIndex = threads.firstIndex(where: \.crashed)
    report.images = images
    report.notes = notes
    if let snapshot { describe(snapshot, in: &report) }
    if let message = bestMessage {
      report.message = message.kind == .cxxExceptionType ? Self.exceptionSentence(message.text) : message.text
      if message.truncated { report.notes.append("The message was longer than the record has room for.") }
    }
    return report
  }

  private var reportKind: ReportKind {
    switch kind {
    case .snapshot: .snapshot
    case .hang: .hang
    case .run, .unknown: hasCrash ? .crash : .termination
    }
  }

  private func describe(_ snapshot: Snapshot, in report: inout CrashReport) {
    if snapshot.stoppedNanoseconds > 0 {
      let hundredths = snapshot.stoppedNanoseconds / 10_000
      report.notes.append(
        "The threads stood still for \(hundredths / 100).\(hundredths / 10 % 10)\(hundredths % 10) ms.")
    }
    report.crashedThreadIndex = snapshot.threadID.flatMap { id in threads.firstIndex { $0.id == id } }
    guard kind == .hang else { return }
    let milliseconds = Int64(clamping: snapshot.silentNanoseconds / 1_000_000)
    report.hang = HangInfo(
      watch: snapshot.watch, silentMilliseconds: milliseconds, samples: Int(snapshot.samples))
    report.type = "Hang"
    let tenths = milliseconds / 100
    report.message = "\(snapshot.watch) has not answered for \(tenths / 10).\(tenths % 10) s"
  }

  /// UUIDv7 of the report, 16 bytes.
  var reportID: [UInt8] {
    if let crashTime = crashTime ?? snapshot?.time {
      return UUIDText.version7(milliseconds: crashTime.rawValue / 1_000_000, entropy: reportEntropy)
    }
    // Without the signal's section: the run's own id starts with the time at which the run began.
    let milliseconds = runID.prefix(6).reduce(Int64(0)) { $0 << 8 | Int64($1) }
    return UUIDText.version7(milliseconds: milliseconds, entropy: reportEntropy)
  }

  /// The Swift runtime's own words before the C library's: it is the runtime that called `abort`.
  private var bestMessage: Message? {
    for kind in [Message.Kind.swiftFatalError, .abort, .cxxExceptionType] {
      if let message = messages.first(where: { $0.kind == kind }) { return message }
    }
    return nil
  }

  /// The type is recorded as `typeid` names it, without the prefix by which a demangler knows a symbol; `_ZTS` ("typeinfo
  /// name for") makes one of it.
  private static func exceptionSentence(_ name: String) -> String {
    let prefix = "typeinfo name for "
    var type = name
    if let readable = Demangler.simplified("_ZTS" + name), readable.hasPrefix(prefix) {
      type = String(readable.dropFirst(prefix.count))
    }
    // libstdc++'s own words, by which the reason is known too.
    return "terminate called after throwing an instance of '\(type)'"
  }
}
