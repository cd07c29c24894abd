import CrashReporting
import Glibc

enum SyncError: Error {
  case unreachable(ledger: String, attempts: Int)
}

/// Keeps the ledgers of two shops alike. A failure is no reason to stop serving, and one to know of.
enum Ledgers {
  static func synchronize() {
    do { try synchronize(with: "north") } catch {
      CrashReporter.capture(error, tags: ["job": "sync"])
      print("not synchronized")
    }
  }

  @inline(never)
  private static func synchronize(with ledger: String) throws {
    throw SyncError.unreachable(ledger: ledger, attempts: 3)
  }
}

/// Counts up a month, by a library that knows nothing of tasks.
struct MonthlyReports {
  var milliseconds: Int

  // Bug: each of them waits in its thread, and there are as many threads for tasks as processors.
  func all() async {
    let printed = ContinuousClock.now.advanced(by: .milliseconds(milliseconds))
    await withTaskGroup(of: Void.self) { group in
      for _ in 1...64 { group.addTask { render(until: printed) } }
    }
    print("reports done")
  }

  @inline(never)
  private func render(until printed: ContinuousClock.Instant) {
    let left = (printed - ContinuousClock.now).components
    // Those that find a thread later find the printer ready.
    guard left.seconds >= 0, left.attoseconds > 0 else { return }
    waitForPrinter(UInt32(left.seconds) * 1_000_000 + UInt32(left.attoseconds / 1_000_000_000_000))
  }

  @inline(never)
  private func waitForPrinter(_ microseconds: UInt32) { usleep(microseconds) }
}
