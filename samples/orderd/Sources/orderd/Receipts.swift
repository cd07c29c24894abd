class Document {
  let number: Int
  init(number: Int) { self.number = number }
}

final class Receipt: Document {}
final class Voucher: Document {}

struct Receipts {
  private let documents: [Document] = [Receipt(number: 1), Voucher(number: 2)]

  // Bug: the latest document may be a voucher.
  @inline(never)
  func latest(for customer: Customer) -> Receipt {
    documents[documents.count - 1] as! Receipt
  }

  // Bug: the index comes from the request as it is.
  @inline(never)
  static func price(of lines: [Baskets.Line], at index: Int) -> Int {
    lines[index].cents
  }
}
