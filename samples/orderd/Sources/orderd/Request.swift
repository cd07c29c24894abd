/// What can be asked of the service.
enum Request: String, CaseIterable, Sendable {
  case order = "GET /orders/1"
  case discount = "POST /discount"
  case line = "GET /orders/1/lines/9"
  case bulk = "POST /bulk"
  case payment = "POST /payment"
  case mail = "POST /mail"
  case receipt = "GET /receipt"
  case ledger = "POST /ledger"
  case ledgerReset = "POST /ledger/reset"
  case price = "GET /price"
  case tree = "POST /tree"
  case categories = "POST /categories"
  case checkout = "POST /checkout"
  case sync = "POST /sync"
  case threads = "GET /threads"
  case reports = "GET /reports"
  case wait = "WAIT"

  /// What happens.
  var summary: String {
    switch self {
    case .order: "the total of an order"
    case .discount: "force unwrap of nil"
    case .line: "an index out of range"
    case .bulk: "arithmetic overflow"
    case .payment: "fatalError with a customer's data in its message"
    case .mail: "try! with an error that carries a customer's data"
    case .receipt: "as! to the wrong class"
    case .ledger: "a null pointer given to the C library, on a Dispatch queue"
    case .ledgerReset: "a double free in the C library"
    case .price: "a C++ exception that nobody catches"
    case .tree: "endless recursion on the main thread"
    case .categories: "endless recursion on a Dispatch worker"
    case .checkout: "division by zero inside nested awaits"
    case .sync: "an error that is handled and reported; lives on"
    case .threads: "a snapshot of all threads; lives on"
    case .reports: "blocks all threads that run tasks, for six times the hang limit; lives on"
    case .wait: "prints its process id and waits for a signal: kill -SEGV"
    }
  }
}

/// What is known about the request that is being handled.
enum RequestContext {
  @TaskLocal static var id: String?
}
