internal import CrashFormats
internal import CrashGrouping
internal import CrashModel
private import Glibc

extension GroupCollector {
  typealias Tell = (_ file: String, _ line: Int?, _ message: String) throws(Output.Failure) -> Void

  /// Smaller files are one task each.
  private static let pieceableSize: UInt64 = 4 << 20

  /// Does what `forEach` does, with several processes.
  mutating func collectWithWorkers(_ source: inout ReportSource, _ tell: Tell) throws(Output.Failure) {
    let inputs = source
    let options = options
    let workers = GroupWorkers(count: options.groups.jobs) { tasks, log, state in
      Self.work(options, inputs, tasks: tasks, log: WorkerLogWriter(log), state: state)
    }
    guard let workers else {
      diagnostics.error("--jobs", "the system gives no \(options.groups.jobs) processes; reading with one")
      var collector = self
      try source.forEach {
        collector.take($0, $1, $2)
      } _: { report, place throws(Output.Failure) in
        collector.add(report, place)
        return true
      } onError: { file, line, message throws(Output.Failure) in
        try tell(file, line, message)
      }
      self = collector
      return
    }
    try source.begin(onError: tell)
    /// Of files in pieces: their last task.
    var lastPieces: [Int: Int] = [:]
    var isBroken = false
    var failure: Output.Failure?
    for (index, file) in source.inputs.files.enumerated() where !isBroken && failure == nil {
      progress?.wait("grouping")
      do throws(InputError) {
        if try Self.isForPieces(file) {
          let pieces = try LinePieces(file.path)
          if InputReader.isOfLines(pieces.beginning) {
            while try pieces.next({ line, piece in
              progress?.wait("grouping")
              let sequence = workers.give(.piece(file: index, firstLine: line, piece))
              lastPieces[index] = sequence
              return sequence != nil
            }) {}
            isBroken = lastPieces[index] == nil
            continue
          }
          if file.path == nil {
            // It cannot be read once more, and by nobody else.
            failure = readHere(file, &source, beginning: pieces.beginning, tell)
            continue
          }
        }
      } catch {
        // The worker that reads it says why it cannot be read.
      }
      isBroken = workers.give(.file(index)) == nil
    }
    let finished = workers.finish()
    if let failure { throw failure }
    guard let results = finished, !isBroken else { throw .failed("a process of --jobs ended before its time") }
    defer {
      for (log, state) in results {
        close(log)
        close(state)
      }
    }
    try tellAll(results.map(\.log), &source, lastPieces, tell)
    for (_, state) in results { try addState(state) }
  }

  private static func isForPieces(_ file: Inputs.File) throws(InputError) -> Bool {
    guard let path = file.path else { return true }
    return (try InputFile(path: path).size ?? 0) >= pieceableSize
  }

  private mutating func readHere(
    _ file: Inputs.File, _ source: inout ReportSource, beginning: UnsafeRawBufferPointer, _ tell: Tell
  ) -> Output.Failure? {
    guard let reader = source.makeReader() else { return nil }
    var collector = self
    defer { self = collector }
    do throws(Output.Failure) {
      _ = try source.read(file, with: reader, beginning: beginning) {
        collector.take($0, $1, $2)
      } _: { report, place throws(Output.Failure) in
        collector.add(report, place)
        return true
      } _: { file, line, message throws(Output.Failure) in
        try tell(file, line, message)
      }
      return nil
    } catch {
      return error
    }
  }

  private mutating func addState(_ descriptor: CInt) throws(Output.Failure) {
    var message = "no memory"
    if let reader = GroupStateReader() {
      do throws(GroupStateError) {
        table.formUnion(try reader.table(ofDescriptor: descriptor))
        return
      } catch {
        message = error.message
      }
    }
    throw .failed("what a process of --jobs left cannot be read: \(message)")
  }

  // MARK: In the worker

  private static func work(
    _ options: Options, _ inputs: ReportSource, tasks: CInt, log: WorkerLogWriter, state: CInt
  ) {
    let diagnostics = Diagnostics(verbosity: options.verbosity)
    diagnostics.recorder = { kind, texts in log.add(kind, texts) }
    var collector = GroupCollector(options: options, diagnostics: diagnostics, progress: nil)
    var source = ReportSource(inputs, diagnostics: diagnostics, symbolicator: collector.pipeline.symbolicator)
    var queue = GroupTasks(tasks)
    let reader = source.makeReader()
    func tell(_ file: String, _ line: Int?, _ message: String) {
      log.add(.line, file, message, number: line ?? -1)
    }
    while queue.next({ sequence, task in
      guard let reader else { return }
      log.sequence = sequence
      collector.pipeline.given.sequence = sequence
      switch task {
      case .file(let index):
        guard source.inputs.files.indices.contains(index) else { return }
        do throws(Output.Failure) {
          _ = try source.read(source.inputs.files[index], with: reader) {
            collector.take($0, $1, $2)
          } _: { report, place in
            collector.add(report, place)
            return true
          } _: { file, line, message in
            tell(file, line, message)
          }
        } catch {
          // Nothing is written here that could fail.
        }
      case .piece(let index, let firstLine, let bytes):
        guard source.inputs.files.indices.contains(index) else { return }
        let name = source.inputs.files[index].name
        var reports = 0
        let number = String(index)
        let takenBefore = reader.takenCount
        do throws(InputError) {
          try reader.readLines(bytes, firstLine: firstLine) {
            collector.take($0, name, $1)
          } _: { event in
            switch event {
            case .report(let report, let line):
              reports += 1
              collector.add(report, line.map { $0 > 1 ? "\(name):\($0)" : name } ?? name)
            case .skipped(let why, let line): log.add(.skipped, number, why, number: line ?? -1)
            case .problem(let why, let line): log.add(.problem, number, why, number: line ?? -1)
            }
            return true
          }
        } catch {
          log.add(.problem, number, error.description)
        }
        log.add(.reports, number, number: reports + reader.takenCount - takenBefore)
      }
    }) {}
    // Behind all that was said of reports.
    log.sequence = .max
    collector.totals.errors = source.errorCount
    collector.totals.skipped = source.skippedCount
    log.add(.end, collector.totals.numbers.map { String($0) })
    let findings = collector.pipeline.given.findings
    if findings.hasReports { log.add(.unmatched, findings.unmatched) }
    for entry in findings.wanted {
      log.add(.wanted, entry.id.description, entry.name, number: entry.sequence)
    }
    log.flush()
    collector.table.writeState { piece in
      guard piece.withUnsafeBytes({ GroupWorkers.write($0, to: state) }) else { _exit(1) }
    }
  }

  // MARK: In the parent

  /// Tells what the workers had to say, in the order of the input.
  private mutating func tellAll(
    _ logs: [CInt], _ source: inout ReportSource, _ lastPieces: [Int: Int], _ tell: Tell
  ) throws(Output.Failure) {
    var readers = logs.map { WorkerLogReader($0) }
    var account: (file: Int, account: ReportSource.Account)?
    var findings = logs.map { _ in
      (hasReports: false, unmatched: [String](), wanted: [(sequence: Int, id: BuildID, name: String)]())
    }
    while let index = readers.indices.filter({ readers[$0].next != nil }).min(by: {
      (readers[$0].next?.sequence ?? .max) < (readers[$1].next?.sequence ?? .max)
    }), let message = readers[index].next {
      readers[index].advance()
      if let open = account, message.sequence > lastPieces[open.file] ?? 0 {
        try source.finish(open.account, tell)
        account = nil
      }
      let line = message.number >= 0 ? message.number : nil
      let first = message.texts.first ?? ""
      let second = message.texts.dropFirst().first ?? ""
      switch message.kind {
      case .fatal: diagnostics.fatal(first)
      case .error: diagnostics.error(first, second)
      case .detail: diagnostics.detail(first, second)
      case .once: diagnostics.errorOnce(first)
      case .line: try tell(first, line, second)
      case .problem, .skipped, .reports:
        guard let file = Int(first), source.inputs.files.indices.contains(file) else { continue }
        if account?.file != file { account = (file, ReportSource.Account(source.inputs.files[file])) }
        guard var open = account else { continue }
        switch message.kind {
        case .problem: try source.fail(second, line: line, in: &open.account, tell)
        case .skipped: source.skip(second, line: line, in: &open.account)
        default: open.account.add(reports: max(message.number, 0))
        }
        account = open
      case .end: totals.add(message.texts.map { Int($0) ?? 0 })
      case .unmatched:
        findings[index].hasReports = true
        findings[index].unmatched = message.texts
      case .wanted:
        if let bytes = Hex.bytes(first), let id = BuildID(bytes: bytes) {
          findings[index].wanted.append((message.number, id, second))
        }
      }
    }
    if let open = account { try source.finish(open.account, tell) }
    pipeline.given.add(findings)
  }
}

extension Totals {
  /// All of them, in an order of their own.
  var numbers: [Int] { [reports, incomplete, errors, skipped, frames, unresolvedFrames, older, undated] }

  mutating func add(_ numbers: [Int]) {
    guard numbers.count == 8 else { return }
    reports += numbers[0]
    incomplete += numbers[1]
    errors += numbers[2]
    skipped += numbers[3]
    frames += numbers[4]
    unresolvedFrames += numbers[5]
    older += numbers[6]
    undated += numbers[7]
  }
}
