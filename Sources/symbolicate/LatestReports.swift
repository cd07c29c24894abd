internal import CrashModel

/// The latest reports of all inputs, however they are spread over files and lines.
///
/// A file's time says little about the crashes in it (a log of a month is one file), so every report is looked at; only
/// those that stay are kept, and only they are given names.
struct LatestReports {
  private struct Entry {
    var report: CrashReport
    var place: String
    var number: Int
  }

  private let limit: Int
  private var entries: [Entry] = []
  private var count = 0

  /// - Parameter limit: at least 1.
  init(limit: Int) { self.limit = limit }

  mutating func add(_ report: CrashReport, place: String) {
    entries.append(Entry(report: report, place: place, number: count))
    count += 1
    // Seldom, so that each report costs little; soon enough, so that memory stays near the limit.
    if entries.count - limit >= max(64, min(limit, 1_024)) { cut() }
  }

  /// Newest first; those without a time last, and equal ones in the order in which they were read.
  mutating func take() -> [(report: CrashReport, place: String)] {
    cut()
    return entries.map { ($0.report, $0.place) }
  }

  private mutating func cut() {
    entries.sort { left, right in
      (left.report.timestamp?.rawValue ?? .min, right.number) > (right.report.timestamp?.rawValue ?? .min, left.number)
    }
    entries.removeSubrange(min(limit, entries.count)...)
  }
}
