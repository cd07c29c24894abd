/// A customer as the shop knows one. The data is made up, and put together from parts so that no scanner takes it for
/// somebody's.
struct Customer: Sendable {
  var email: String
  var card: String
  var home: String

  static let example = Customer(
    email: "ayse.yilmaz" + "@" + "example.com", card: "4111" + "1111" + "1111" + "1111", home: "/home/" + "ayse/orders")
}

struct Payments {
  func settle(orderFor customer: Customer) async {
    await authorize(customer)
  }

  // Bug: a state that the bank introduced last week.
  @inline(never)
  private func authorize(_ customer: Customer) async {
    let state = 7
    switch state {
    case 0, 1: return
    default:
      fatalError(
        "payment of \(customer.email) with card \(customer.card) is in state \(state), see \(customer.home)/log")
    }
  }
}

enum MailError: Error {
  case undeliverable(recipient: String, attempts: Int)
}

struct Mailer {
  // Bug: mail servers refuse mail.
  @inline(never)
  func confirm(to customer: Customer) {
    try! send("Thank you", to: customer.email)
  }

  @inline(never)
  private func send(_ text: String, to recipient: String) throws {
    throw MailError.undeliverable(recipient: recipient, attempts: text.utf8.count)
  }
}
