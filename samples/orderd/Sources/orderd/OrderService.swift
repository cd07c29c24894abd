import CrashReporting
import Dispatch
import Glibc

/// Takes requests one at a time and hands them to whoever is responsible.
actor OrderService {
  fileprivate let baskets = Baskets()
  private let settlement = Settlement()
  /// In milliseconds.
  private let hangLimit: Int

  init(hangLimit: Int) { self.hangLimit = hangLimit }

  func handle(_ request: Request) async {
    switch request {
    case .order: print(await baskets.total(ofOrder: 1))
    case .discount: print(await baskets.discounted(order: 1, code: "SPRING"))
    case .line: print(await baskets.line(9, ofOrder: 1))
    case .bulk: print(await baskets.bulkTotal(quantity: Int.max / 2))
    case .payment: await Payments().settle(orderFor: Customer.example)
    case .mail: Mailer().confirm(to: Customer.example)
    case .receipt: print(Receipts().latest(for: Customer.example).number)
    case .ledger: settlement.closeMonth(into: nil)
    case .ledgerReset: settlement.reset()
    case .price: print(Prices.quote("mate", 3))
    case .categories: settlement.categories()
    case .checkout: print(await Checkout(baskets: baskets).run(order: 1))
    case .sync: Ledgers.synchronize()
    case .threads: print("snapshot \(CrashReporter.captureSnapshot())")
    case .reports: await MonthlyReports(milliseconds: hangLimit * 6).all()
    // These two need the main thread, which no actor has.
    case .tree, .wait: break
    }
  }
}

extension OrderService {
  /// The same for a request whose answer somebody waits for.
  func answer(_ request: Request) async -> String {
    guard request == .order else {
      await handle(request)
      return "done"
    }
    return "\(await baskets.total(ofOrder: 1))"
  }
}

/// Ends only by a signal.
func waitForSignal() -> Never {
  while true { pause() }
}
