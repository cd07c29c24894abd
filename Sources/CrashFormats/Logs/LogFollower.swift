private import CLogScan
package import CrashModel

/// Tells of each line of a log, as it comes, which crash it belongs to: for whoever writes the log on with names in it.
package final class LogFollower {
  /// A line that belongs to a crash.
  package struct Line {
    /// Counts from 0.
    package var crash: Int
    /// The crash has frames that can be named only when it has ended, as what lists the images comes last.
    package var waits: Bool
    /// The line is a frame without a name that can be named now: a report of this frame alone.
    package var frame: CrashReport?
  }

  /// A crash that has ended, with its report unless it came to nothing.
  package struct Ended {
    package var crash: Int
    package var report: CrashReport?
  }

  private let reader: LogReader
  private var count = 0

  /// - Returns: nil without memory.
  package init?() {
    guard let contents = JSONContentReader() else { return nil }
    reader = LogReader(json: contents, isFollowed: true)
  }

  /// Passes over whole lines, if nothing begins in them and none of them can belong to a crash.
  ///
  /// - Returns: false where they have to be read.
  package func skip(_ lines: UnsafeRawBufferPointer) -> Bool {
    guard reader.isIdle else { return false }
    guard let start = lines.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return true }
    guard CLogScan_find(start, lines.count) == lines.count else { return false }
    count += CLogScan_count_lines(start, lines.count)
    return true
  }

  /// - Returns: the crash that the line belongs to, if any, and the crashes that ended with it.
  package func read(_ line: UnsafeRawBufferPointer) -> (line: Line?, ended: [Ended]) {
    count += 1
    reader.read(line, number: count)
    _ = reader.takeEvents()
    return (reader.lastTaken, reader.takeEnded())
  }

  /// Ends the crashes that are being read: what lacks of them does not come.
  package func finish() -> [Ended] {
    reader.finish()
    _ = reader.takeEvents()
    return reader.takeEnded()
  }
}
