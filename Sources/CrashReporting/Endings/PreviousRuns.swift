internal import CrashModel

/// How the runs before this one ended: for a service that starts in a safe mode after it crashed the same way too often.
public struct PreviousRuns: Hashable, Sendable {
  public struct Run: Hashable, Sendable {
    /// UUIDv7 of the run.
    public var id: String
    public var release: String?
    /// `clean`, `crashed`, `killed`, `out_of_memory`, …: the words of `docs/endings.md`.
    public var ending: String
    /// Name of the signal that ended it: `SIGTERM`.
    public var signal: String?
    /// Of the crash that ended it.
    public var stackHash: String?

    public var crashed: Bool { ending == "crashed" }
  }

  /// The last one first; at most 512.
  public var runs: [Run]
  /// How many of the last runs in a row ended by the crash that ended the last one; 0 where the last one did not crash.
  public var sameCrashesInARow: Int
  /// False where the records of earlier runs were not worked on in time: the last ones may be missing.
  public var isComplete: Bool

  public var last: Run? { runs.first }
}

extension CrashReporter {
  /// How the runs of this spool ended. May be asked as soon as `start` has returned.
  ///
  /// Waits until the records of earlier runs have been worked on, at most for `timeout`: some milliseconds where the last
  /// run ended in good order, up to a tenth of a second where it crashed. `start` itself does not wait for it. Empty where
  /// nothing was started.
  ///
  /// ```swift
  /// try CrashReporter.start(configuration)
  /// let safeMode = CrashReporter.previousRuns().sameCrashesInARow >= 3
  /// ```
  public static func previousRuns(timeout: Duration = .seconds(1)) -> PreviousRuns {
    guard let run = ActiveRun.current else { return PreviousRuns(runs: [], sameCrashesInARow: 0, isComplete: false) }
    let isComplete = flush(timeout: timeout)
    let history = RunHistory(inSpool: run.directory)
    return PreviousRuns(
      runs: history.runs.reversed().map {
        PreviousRuns.Run(
          id: $0.id, release: $0.release, ending: $0.ending.rawValue, signal: $0.signal, stackHash: $0.stackHash)
      }, sameCrashesInARow: history.sameCrashesInARow, isComplete: isComplete)
  }
}
