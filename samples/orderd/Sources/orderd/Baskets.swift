/// What customers have chosen.
actor Baskets {
  private var lines: [Int: [Line]] = [1: [Line(article: "tea", cents: 450, quantity: 2)]]
  private let discounts = ["WINTER": 10]

  struct Line: Sendable {
    var article: String
    var cents: Int
    var quantity: Int
  }

  func total(ofOrder order: Int) -> Int {
    (lines[order] ?? []).reduce(0) { $0 + Money.times($1.cents, $1.quantity) }
  }

  func discounted(order: Int, code: String) -> Int {
    let total = total(ofOrder: order)
    return total - total * percent(of: code) / 100
  }

  // Bug: a code that has run out is not in the table.
  @inline(never)
  private func percent(of code: String) -> Int {
    discounts[code]!
  }

  func line(_ index: Int, ofOrder order: Int) -> Int {
    let chosen = lines[order] ?? []
    return Receipts.price(of: chosen, at: index)
  }

  func bulkTotal(quantity: Int) -> Int {
    Money.times(620, quantity)
  }
}

enum Money {
  // Bug: nobody checked how much a customer may ask for.
  @inline(never)
  static func times(_ cents: Int, _ quantity: Int) -> Int {
    cents * quantity
  }
}
