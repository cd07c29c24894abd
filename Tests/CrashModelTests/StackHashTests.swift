import CrashModel
import Foundation
import TestSupport
import Testing

@Suite struct StackHashTests {
  /// The algorithm must hold what it reached on the labelled set. Floors a little below the measured figures: a change
  /// that costs more is a worse algorithm, a change that gains raises them.
  @Test func groupsTheLabelledStacks() throws {
    let entries = try LabelledStacks(view: "full").entries
    #expect(entries.count == 1078)
    let hasher = StackHasher()
    let rows = entries.map { entry in
      (bug: entry.bug, group: hasher.analyze(LabelledStacks.report(of: entry)).hash.digits)
    }
    let score = LabelledStacks.score(rows)
    if ProcessInfoEnvironment.wantsPredictions { try predictions(entries, rows.map(\.group)) }
    #expect(score.f1 > 0.90, "\(score)")
    #expect(score.precision > 0.85, "\(score)")
  }

  private func predictions(_ entries: [LabelledStacks.Entry], _ groups: [String]) throws {
    let text = zip(entries, groups).map { "\($0.id)\t\($1)" }.joined(separator: "\n") + "\n"
    try text.write(toFile: "/tmp/predictions.tsv", atomically: true, encoding: .utf8)
  }
}

enum ProcessInfoEnvironment {
  /// Set STACK_HASH_PREDICTIONS to have the groups written for `score.py`.
  static var wantsPredictions: Bool { getenv("STACK_HASH_PREDICTIONS") != nil }
}
