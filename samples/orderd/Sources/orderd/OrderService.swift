import CrashReporting
import Dispatch
import Glibc

/// Takes requests one at a time and hands them to whoever is responsible.
actor OrderService {
  private let baskets = Baskets()
  private let settlement = Settlement()

  func handle(_ request: String) async {
    switch request {
    case "GET /orders/1": print(await baskets.total(ofOrder: 1))
    case "POST /discount": print(await baskets.discounted(order: 1, code: "SPRING"))
    case "GET /orders/1/lines/9": print(await baskets.line(9, ofOrder: 1))
    case "POST /bulk": print(await baskets.bulkTotal(quantity: Int.max / 2))
    case "POST /payment": await Payments().settle(orderFor: Customer.example)
    case "POST /mail": Mailer().confirm(to: Customer.example)
    case "GET /receipt": print(Receipts().latest(for: Customer.example).number)
    case "POST /ledger": settlement.closeMonth(into: nil)
    case "POST /ledger/reset": settlement.reset()
    case "GET /price": print(Prices.quote("mate", 3))
    case "POST /categories": settlement.categories()
    case "POST /checkout": print(await Checkout(baskets: baskets).run(order: 1))
    default: complain("orderd: no such request: \(request)")
    }
  }
}

/// Ends only by a signal.
func waitForSignal() -> Never {
  while true { pause() }
}
