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
    await withTaskGroup(of: Void.self) { group in
      for day in 1...256 { group.addTask { render(day) } }
    }
    print("reports done")
  }

  @inline(never)
  private func render(_ day: Int) {
    // Only the first ones find a thread to wait in.
    guard day <= 128, !Task.isCancelled else { return }
    waitForPrinter(UInt32(milliseconds) * 1_000)
  }

  @inline(never)
  private func waitForPrinter(_ microseconds: UInt32) { usleep(microseconds) }
}
