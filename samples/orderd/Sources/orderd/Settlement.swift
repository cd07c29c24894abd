import CLedger
import CPricing
import CrashReporting
import Dispatch

/// The settlement worker: a Dispatch queue over the C ledger.
final class Settlement: Sendable {
  private let queue = DispatchQueue(label: "settlement")

  // Bug: nobody asks whether there is somewhere to write the total.
  func closeMonth(into total: UnsafeMutablePointer<Int64>?) {
    let address = UInt(bitPattern: total)
    queue.sync {
      CrashReporter.addBreadcrumb("closing the month", category: "ledger")
      guard let ledger = ledger_open(4) else { return }
      _ = ledger_post(ledger, 1, 900)
      ledger_close_month(ledger, UnsafeMutablePointer(bitPattern: address))
      ledger_free(ledger)
    }
  }

  // Frees the balances twice, with the bug of the library.
  func reset() {
    queue.sync {
      guard let ledger = ledger_open(4) else { return }
      _ = ledger_post(ledger, 1, 900)
      ledger_drop_balances(ledger)
      ledger_free(ledger)
    }
  }

  func categories() {
    queue.async { print(Categories.discount(in: Categories.makeCyclic())) }
    waitForSignal()
  }
}

enum Prices {
  static func quote(_ article: String, _ quantity: Int) -> Int {
    pricing_quote(article, quantity)
  }
}
