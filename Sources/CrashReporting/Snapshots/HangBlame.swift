internal import CrashModel

/// Finds the thread that a hang is about, where the watch could not tell: a queue's or an actor's work is done now by this
/// thread and now by that.
struct HangBlame {
  let hasher: StackHasher

  /// Frames of whoever runs the work of queues, actors and tasks.
  private static let workers = [
    "_dispatch_worker_thread", "_dispatch_root_queue_drain", "_dispatch_client_callout", "swift_job_run",
    "runJobInEstablishedExecutorContext",
  ]

  private struct Candidate {
    var thread: Int
    var analysis: StackAnalysis
    var isWorker: Bool
  }

  /// Among the threads that stand in code of the application's in every sample, the ones that do queue's work come first,
  /// then what most of them stand in: a pool that is used up has all its threads in one place.
  ///
  /// - Parameter expected: index of the thread that answered before. The main thread is the one, where it stands in such
  ///   code; another one only where it does nothing for queues.
  func chooseThread(in report: inout CrashReport, expected: Int?) {
    var candidates: [Candidate] = []
    for index in report.threads.indices {
      let thread = report.threads[index]
      // Our own threads have nothing to do with it.
      guard thread.stayingFrames != 0, !(thread.name ?? "").hasPrefix("crash-") else { continue }
      var copy = report
      copy.crashedThreadIndex = index
      let analysis = hasher.analyze(copy)
      guard analysis.frames.contains(where: { $0.isBlamed && $0.frameClass.kind == .app }) else { continue }
      let isWorker = thread.frames.contains { frame in
        frame.symbolicated?.rawFunction.map { name in Self.workers.contains { name.contains($0) } } ?? false
      }
      candidates.append(Candidate(thread: index, analysis: analysis, isWorker: isWorker))
    }
    let counts = Dictionary(candidates.map { ($0.analysis.hash.digits, 1) }, uniquingKeysWith: +)
    func rank(_ candidate: Candidate) -> (Int, Int, Int) {
      let isMain = report.threads[candidate.thread].id.map { Int64($0) } == report.process?.id.map { Int64($0) }
      let isExpected = candidate.thread == expected && (isMain || !candidate.isWorker)
      return (
        isExpected ? 2 : candidate.isWorker ? 1 : 0, counts[candidate.analysis.hash.digits] ?? 0, -candidate.thread
      )
    }
    report.crashedThreadIndex = nil
    guard let best = candidates.max(by: { rank($0) < rank($1) }) else {
      report.notes.append("No thread stands in code of the application: what the hang waits for is not in a stack.")
      report.crashedThreadIndex = expected
      return
    }
    report.crashedThreadIndex = best.thread
    report.reason = best.analysis.reason
    report.stackHash = best.analysis.hash
    best.analysis.decideOwnership(in: &report)
    let same = counts[best.analysis.hash.digits] ?? 1
    if same > 1 { report.notes.append("\(same) threads stand in the same place.") }
  }
}
