package import CrashModel
private import Glibc

/// Turns the records of dead runs into reports. Runs once, at the start of the next run.
///
/// May be ended at any point, by anything: what was not finished is found again. A report's id comes from its record, so
/// that doing a step twice gives one report. The argument, step by step: `docs/spool.md`.
package struct NextStart: ~Copyable {
  private let spool: Spool
  private let limits: SpoolLimits
  private let builder: ReportBuilder
  private let ownRecord: String?
  private let clock: SpoolClock
  private let report: @Sendable (Diagnostic) -> Void

  private let judge: EndingJudge
  private var index: SpoolIndex
  private var history: RunHistory
  private var historyHasChanged = false
  private var store: ReportStore
  /// Records of counted crashes, to be removed once the count is on the disk: name and report id.
  private var counted: [(name: String, id: String)] = []

  /// How many counted records share one write of the index.
  private static let batch = 256
  /// What `suppressed_count` adds to a report, at most.
  private static let countBytes = 40
  /// A file without bytes that is younger than this may belong to a run that is between creating and locking it. Seconds.
  private static let temporaryAge = 3_600

  /// Works through a spool.
  ///
  /// Waits for other processes that do the same, so not to be called on a thread that is needed elsewhere.
  ///
  /// - Parameter ownRunID: 16 bytes; the record of this run is left alone.
  package static func run(
    spool: consuming Spool, limits: SpoolLimits = SpoolLimits(), builder: ReportBuilder? = nil,
    ownRunID: [UInt8]? = nil, clock: SpoolClock = .now(), machine: MachineState = .current(),
    report: @escaping @Sendable (Diagnostic) -> Void
  ) {
    do throws(SystemError) {
      let lock = try spool.lock()
      var work = try NextStart(
        spool: spool, limits: limits, builder: builder ?? ReportBuilder(maximumBytes: limits.reportBytes),
        ownRunID: ownRunID, clock: clock, machine: machine, report: report)
      try work.process()
      _ = consume lock
    } catch {
      report(Diagnostic(.spoolUnavailable, "earlier crashes wait for the next start: \(error)"))
    }
  }

  /// Stores a report that was made while its process lives, under the same limits.
  ///
  package static func store(
    _ original: CrashReport, spool: consuming Spool, limits: SpoolLimits, builder: ReportBuilder,
    clock: SpoolClock = .now(), report: @escaping @Sendable (Diagnostic) -> Void
  ) {
    do throws(SystemError) {
      let lock = try spool.lock()
      var work = try NextStart(
        spool: spool, limits: limits, builder: builder, ownRunID: nil, clock: clock, machine: MachineState(),
        report: report)
      work.index.observe(clock)
      try work.recover()
      let finished = builder.finished(original)
      let what = [finished.type, finished.operation].compactMap { $0 }.joined(separator: ", ")
      if let stored = try work.put(finished) {
        report(Diagnostic(.reportStored, "an error was reported (\(what)): \(work.spool.path)/new/\(stored.fileName)"))
      } else {
        // Nothing is left behind that could be counted twice.
        work.index.forget(original.id)
        report(Diagnostic(.reportSuppressed, "an error was counted, not stored (\(what))"))
      }
      try work.index.save(in: work.spool.root)
      _ = consume lock
    } catch {
      report(Diagnostic(.spoolUnavailable, "a handled error could not be stored: \(error)"))
    }
  }

  /// Writes down how long a hang lasted: in its report, where nobody has taken that away, and in the history.
  static func complete(
    _ hang: StoredHang, milliseconds: Int64, spool: consuming Spool, limits: SpoolLimits,
    report: @escaping @Sendable (Diagnostic) -> Void
  ) {
    do throws(SystemError) {
      let lock = try spool.lock()
      var work = try NextStart(
        spool: spool, limits: limits, builder: ReportBuilder(maximumBytes: limits.reportBytes), ownRunID: nil,
        clock: .now(), machine: MachineState(), report: report)
      try work.complete(hang, milliseconds)
      try work.saveHistory()
      _ = consume lock
    } catch {
      report(Diagnostic(.spoolUnavailable, "a hang's duration is not in its report: \(error)"))
    }
  }

  private init(
    spool: consuming Spool, limits: SpoolLimits, builder: ReportBuilder, ownRunID: [UInt8]?, clock: SpoolClock,
    machine: MachineState, report: @escaping @Sendable (Diagnostic) -> Void
  ) throws(SystemError) {
    let index = try SpoolIndex(in: spool.root)
    let history = try RunHistory(in: spool.root)
    let store = try ReportStore(in: spool.new, limits: limits)
    self.index = index
    self.history = history
    self.judge = EndingJudge(machine: machine)
    self.store = store
    self.spool = spool
    self.limits = limits
    self.builder = builder
    self.ownRecord = ownRunID.map { Hex.string($0) + Self.suffix }
    self.clock = clock
    self.report = report
  }

  private static let suffix = ".crashrecord"

  private mutating func process() throws(SystemError) {
    index.observe(clock)
    try recover()
    for name in store.old(now: index.trustedNow) { try removeReport(name, why: "too old") }
    var attempts = try Attempts(in: spool.root, records: spool.records, ownRecord: ownRecord)
    // Oldest run first: record names begin with the time at which the run began.
    for name in try spool.records.names().sorted() {
      if name.hasSuffix(Self.suffix) {
        if name != ownRecord { attempt(name, &attempts) }
      } else if name.hasPrefix("."), name.hasSuffix(".tmp") {
        removeTemporary(name)
      }
    }
    try flushCounted()
    try attempts.end()
    index.prune(olderThan: max(limits.window, limits.age))
    try index.save(in: spool.root)
    if index.forgotten > 0 {
      report(
        Diagnostic(
          .reportRemoved,
          "the counts of \(index.forgotten) crashes that were not stored were dropped: more than "
            + "\(SpoolIndex.maximumHashes) different crashes"))
    }
  }

  /// Ends what an earlier run began.
  private mutating func recover() throws(SystemError) {
    for id in index.recover(presentIDs: store.ids).sorted() {
      if let name = store.name(ofID: id) { try removeReport(name, why: "the spool was full") }
    }
  }

  // MARK: One record

  /// Works on a record, unless it has ended too many processes that did.
  private mutating func attempt(_ name: String, _ attempts: inout Attempts) {
    do throws(SystemError) {
      guard try attempts.begin(name) else {
        putAside(
          name, reason: "\(Attempts.limit) processes ended while they worked on it, this one would be the next")
        attempts.finish(name)
        return
      }
    } catch {
      report(Diagnostic(.spoolUnavailable, "the record \(name) waits for the next start: \(error)"))
      return
    }
    processRecord(name)
    attempts.finish(name)
  }

  private mutating func processRecord(_ name: String) {
    do throws(RecordClaim.Refusal) {
      let claim = try RecordClaim(name, in: spool.records)
      // Only an allocation: the header is the first thing that is written, and it is never all zeros.
      if claim.bytes.allSatisfy({ $0 == 0 }) {
        // The run's id is the record's name; nothing else is known.
        if let id = Hex.bytes(name.dropLast(Self.suffix.count)), id.count == 16 {
          count(RunHistory.Run(id: UUIDText.string(id), release: nil, ending: .unknown))
        }
        do throws(SystemError) { try removeRecord(name) } catch { throw .unavailable(error) }
        report(
          Diagnostic(
            .runEnded,
            "the record \(name) holds nothing: its run ended in its start, or the machine lost its power soon after"))
        return
      }
      let record: CrashRecord
      do throws(RecordError) {
        record = try CrashRecord.read(bytes: claim.bytes)
      } catch { throw .unusable(error.description) }
      do throws(SystemError) {
        switch record.kind {
        case .snapshot, .hang: try processSnapshot(record, name: name)
        case .run, .unknown:
          if record.hasCrash {
            try processCrash(record, name: name)
          } else {
            try processEnd(record, name: name, modified: claim.modified)
          }
        }
      } catch { throw .unavailable(error) }
    } catch {
      switch error {
      case .taken, .gone: break
      case .unfinished: removeTemporary(name)
      case .unavailable(let error):
        report(Diagnostic(.spoolUnavailable, "the record \(name) waits for the next start: \(error)"))
      case .unusable(let reason): putAside(name, reason: reason)
      }
    }
  }

  private mutating func processCrash(_ record: CrashRecord, name: String) throws(SystemError) {
    let id = record.report().id
    if store.contains(id: id) || index.isCounted(id) {
      // Done by a run that was ended before it could remove the record.
      try removeRecord(name)
      index.forget(id)
      return
    }
    let report = builder.report(of: record)
    count(record, Ending(kind: .crashed), signal: report.signal?.name, hash: report.stackHash?.digits)
    guard let stored = try put(report) else {
      counted.append((name, id))
      let hash = report.stackHash?.digits ?? "no hash"
      self.report(
        Diagnostic(.reportSuppressed, "run \(record.runIDText) ended by a crash that was counted, not stored: \(hash)"))
      if counted.count >= Self.batch { try flushCounted() }
      return
    }
    try removeRecord(name)
    let what = [report.type, report.reason?.rawValue].compactMap { $0 }.joined(separator: ", ")
    self.report(
      Diagnostic(
        .reportStored, "run \(record.runIDText) crashed (\(what)); report \(spool.path)/new/\(stored.fileName)"))
  }

  /// Puts a report into the spool, or counts it where enough with its hash are there; then the result is nil.
  private mutating func put(
    _ original: CrashReport, isUnlimited: Bool = false
  ) throws(SystemError) -> ReportName? {
    var report = original
    let id = report.id
    let hash = report.stackHash?.digits ?? ""
    let remembered = index.entries[hash]?.stored ?? []
    guard
      isUnlimited
        || store.recentCount(hash: hash, around: id, remembered: remembered) < max(1, limits.reportsPerHash)
    else {
      index.count(id, hash: hash)
      return nil
    }
    try flushCounted()
    // Room first: the report that goes may be one of the same hash, whose count then comes along.
    var document = builder.document(report)
    while let victim = store.victim(forSize: document.count + Self.countBytes) {
      try removeReport(victim, why: "the spool is full")
    }
    let suppressed = index.suppressed(hash)
    if suppressed > 0 {
      report.suppressedCount = suppressed
      document = builder.document(report)
      index.setCarrier(id, hash: hash)
      try index.save(in: spool.root)
    }
    let stored = ReportName(id: id, hash: hash)
    try store.store(stored, document, in: spool.new, now: clock.wall)
    index.stored(id, hash: hash, keep: max(1, limits.reportsPerHash))
    return stored
  }

  private mutating func processEnd(
    _ record: CrashRecord, name: String, modified: Timestamp
  ) throws(SystemError) {
    let ending = judge.ending(of: record)
    var original = record.report(on: ending, modified: modified)
    // A run that ended in good order leaves nothing: every deployment ends one.
    guard ending.kind.isReported else {
      count(record, ending, signal: nil, hash: nil)
      return try removeRecord(name)
    }
    let id = original.id
    if store.contains(id: id) || index.isCounted(id) {
      try removeRecord(name)
      index.forget(id)
      return
    }
    original = builder.finished(original)
    count(record, ending, signal: original.signal?.name, hash: nil)
    let how = ending.evidence.first ?? ending.kind.rawValue
    guard let stored = try put(original) else {
      counted.append((name, id))
      report(Diagnostic(.runEnded, "run \(record.runIDText) ended without a crash; counted, not stored: \(how)"))
      if counted.count >= Self.batch { try flushCounted() }
      return
    }
    try removeRecord(name)
    report(
      Diagnostic(
        .runEnded,
        "run \(record.runIDText) ended without a crash: \(how) Report \(spool.path)/new/\(stored.fileName)"))
  }

  // MARK: History

  private mutating func count(_ record: CrashRecord, _ ending: Ending, signal: String?, hash: String?) {
    count(
      RunHistory.Run(
        id: record.runIDText, release: record.release, ending: ending.kind, signal: signal, stackHash: hash))
  }

  private mutating func count(_ run: RunHistory.Run) {
    if history.add(run) { historyHasChanged = true }
  }

  /// Before a record goes: ended in between, the run's id in the history says that it is counted.
  private mutating func saveHistory() throws(SystemError) {
    guard historyHasChanged else { return }
    try spool.root.replace(RunHistory.fileName, with: history.text)
    historyHasChanged = false
  }

  // MARK: Snapshots

  private mutating func processSnapshot(_ record: CrashRecord, name: String) throws(SystemError) {
    var original = record.report()
    guard !store.contains(id: original.id), !index.isCounted(original.id) else {
      try removeRecord(name)
      index.forget(original.id)
      return
    }
    let expected = original.crashedThreadIndex
    original = builder.finished(original)
    if record.kind == .hang { HangBlame(hasher: builder.hasher).chooseThread(in: &original, expected: expected) }
    if record.kind == .hang { original.hang?.durationMilliseconds = HangEnds.shared.milliseconds(of: name) }
    let what = record.kind == .hang ? original.message ?? "a hang" : "a snapshot"
    if record.kind == .snapshot { try makeRoomForSnapshot(original.stackHash?.digits ?? "") }
    let stored = try put(original, isUnlimited: record.kind == .snapshot)
    if record.kind == .hang { try remember(original, stored, name, of: record.snapshot?.ofRun) }
    guard let stored else {
      counted.append((name, original.id))
      report(Diagnostic(.reportSuppressed, "\(what); counted, not stored"))
      return
    }
    try removeRecord(name)
    report(Diagnostic(.reportStored, "\(what): \(spool.path)/new/\(stored.fileName)"))
  }

  private mutating func remember(
    _ hang: CrashReport, _ stored: ReportName?, _ record: String, of run: [UInt8]?
  ) throws(SystemError) {
    let entry = RunHistory.Hang(
      reportID: hang.id, runID: hang.runID ?? "-", release: hang.release, watch: hang.hang?.watch ?? "",
      milliseconds: hang.hang?.durationMilliseconds)
    history.add(entry)
    historyHasChanged = true
    // That of an earlier run has no end that anybody would hear of.
    guard let run, run == CrashReporter.runIDBytes else { return }
    let remembered = StoredHang(name: stored, entry: entry)
    // It may have ended since it was asked for.
    if let milliseconds = HangEnds.shared.stored(record, remembered), entry.milliseconds == nil {
      try complete(remembered, milliseconds)
    }
  }

  private mutating func complete(_ hang: StoredHang, _ milliseconds: Int64) throws(SystemError) {
    var entry = hang.entry
    entry.milliseconds = milliseconds
    history.add(entry)
    historyHasChanged = true
    guard let name = hang.name, let file = try? Descriptor.open(name.fileName, in: spool.new, flags: O_RDONLY) else {
      return
    }
    let size = Int(clamping: try file.status().st_size)
    guard let document = HangInfo.adding(milliseconds: milliseconds, to: try file.read(count: size, at: 0)) else {
      return
    }
    try spool.new.replaceExisting(name.fileName, with: document)
  }

  /// Snapshots are asked for, so that none is refused for being the fourth of a day; the oldest goes instead.
  private mutating func makeRoomForSnapshot(_ hash: String) throws(SystemError) {
    for name in store.oldest(hash: hash, beyond: max(1, limits.snapshots) - 1) {
      try removeReport(name, why: "\(limits.snapshots) snapshots are kept")
    }
  }

  private func putAside(_ name: String, reason: String) {
    do throws(SystemError) {
      try Quarantine.take(
        name, from: spool.records, to: spool.quarantine, reason: reason, limit: max(0, limits.quarantined))
      report(Diagnostic(.quarantined, "the record \(name) was put into quarantine: \(reason)"))
    } catch {
      report(Diagnostic(.spoolUnavailable, "the record \(name) cannot be used (\(reason)) nor put aside: \(error)"))
    }
  }

  // MARK: Removing

  private mutating func removeRecord(_ name: String) throws(SystemError) {
    try saveHistory()
    try spool.records.remove(name)
    try spool.records.synchronize()
  }

  /// First the count, then the records: ended in between, the ids in the index say which ones were counted.
  private mutating func flushCounted() throws(SystemError) {
    try saveHistory()
    guard !counted.isEmpty else { return }
    try index.save(in: spool.root)
    for record in counted { try spool.records.remove(record.name) }
    try spool.records.synchronize()
    for record in counted { index.forget(record.id) }
    counted = []
  }

  private func removeTemporary(_ name: String) {
    guard let file = try? Descriptor.open(name, in: spool.records, flags: O_RDWR), let status = try? file.status(),
      status.st_mode & S_IFMT == S_IFREG, Int64(status.st_mtim.tv_sec) < clock.wall &- Int64(Self.temporaryAge),
      flock(file.raw, LOCK_EX | LOCK_NB) == 0
    else { return }
    unlinkat(spool.records.raw, name, 0)
  }

  /// A report's count of crashes that were not stored stays behind. It is on the disk before the report goes: ended in
  /// between, `recover` removes the report.
  private mutating func removeReport(_ name: ReportName, why: String) throws(SystemError) {
    let hasCount = index.takeBack(name.id, hash: name.hash)
    if hasCount { try index.save(in: spool.root) }
    let wasThere = try store.remove(name, in: spool.new)
    if hasCount { try spool.new.synchronize() }
    index.removed(name.id, hash: name.hash, byUs: wasThere)
    if wasThere {
      report(Diagnostic(.reportRemoved, "report \(spool.path)/new/\(name.fileName) was removed: \(why)"))
    }
  }
}
