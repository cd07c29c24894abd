package import CrashModel

/// Makes of a record the report that is stored: redacted, named as far as symbol tables allow, hashed, not too large.
package struct ReportBuilder: Sendable {
  package var redactor: Redactor
  package var hasher: StackHasher
  /// Bytes of the JSON document; see `SpoolLimits.reportBytes`.
  package var maximumBytes: Int

  package init(redactor: Redactor = Redactor(), hasher: StackHasher = StackHasher(), maximumBytes: Int) {
    self.redactor = redactor
    self.hasher = hasher
    self.maximumBytes = maximumBytes
  }

  package func report(of record: CrashRecord) -> CrashReport { finished(record.report()) }

  /// Redacts, names and hashes.
  package func finished(_ original: CrashReport) -> CrashReport {
    var report = original
    SymbolNames.resolve(&report)
    // The base rules were applied before anything reached the disk; here come the others, which know more and take
    // longer. Behind the names, whose look-up leaves notes.
    redactor.redact(&report)
    let analysis = hasher.analyze(report)
    report.reason = analysis.reason
    report.stackHash = analysis.hash
    analysis.decideOwnership(in: &report)
    return report
  }

  /// The stored document, trimmed where it is too large.
  ///
  /// What goes first is what tells least about the bug: other threads, then images that no frame lies in, then
  /// breadcrumbs. A report that is still too large stays as it is: half a report is better than none, a whole one too.
  ///
  /// Of a snapshot or a hang the threads are what it is about: those have eight times the room.
  package func document(_ report: CrashReport) -> [UInt8] {
    var bytes = report.json()
    let isAboutThreads = report.kind == .snapshot || report.kind == .hang
    let maximumBytes = isAboutThreads ? maximumBytes.multipliedReportingOverflow(by: 8).partialValue : maximumBytes
    guard bytes.count > maximumBytes else { return bytes }
    var report = report
    for step in [dropOtherThreads, dropUnreferencedImages, dropBreadcrumbs] {
      guard let note = step(&report) else { continue }
      report.notes.append(note)
      bytes = report.json()
      if bytes.count <= maximumBytes { break }
    }
    return bytes
  }

  private func dropOtherThreads(_ report: inout CrashReport) -> String? {
    let crashed = report.crashedThread
    let dropped = report.threads.count - (crashed == nil ? min(1, report.threads.count) : 1)
    guard dropped > 0 else { return nil }
    report.threads = crashed.map { [$0] } ?? Array(report.threads.prefix(1))
    report.crashedThreadIndex = crashed == nil ? nil : 0
    return "\(dropped) other threads were left out, as the report was too large."
  }

  private func dropUnreferencedImages(_ report: inout CrashReport) -> String? {
    let used = Set(report.threads.flatMap(\.frames).compactMap { $0.captured?.imageIndex })
    let kept = report.images.indices.filter(used.contains)
    guard kept.count < report.images.count else { return nil }
    let dropped = report.images.count - kept.count
    let places = Dictionary(uniqueKeysWithValues: kept.enumerated().map { ($1, $0) })
    func moved(_ frame: CapturedFrame) -> CapturedFrame {
      var frame = frame
      frame.imageIndex = frame.imageIndex.flatMap { places[$0] }
      return frame
    }
    for thread in report.threads.indices {
      report.threads[thread].frames = report.threads[thread].frames.map { frame in
        switch frame {
        case .captured(let captured): return .captured(moved(captured))
        case .symbolicated(var named):
          named.captured = moved(named.captured)
          return .symbolicated(named)
        case .omitted: return frame
        }
      }
    }
    report.images = kept.map { report.images[$0] }
    return "\(dropped) images that no frame lies in were left out, as the report was too large."
  }

  private func dropBreadcrumbs(_ report: inout CrashReport) -> String? {
    guard !report.breadcrumbs.isEmpty else { return nil }
    let dropped = report.breadcrumbs.count
    report.breadcrumbs = []
    return "\(dropped) breadcrumbs were left out, as the report was too large."
  }
}
