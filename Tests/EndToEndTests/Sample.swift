import Foundation
import TestSupport
import Testing

/// The sample service and the tool, as they were built.
enum Sample {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path

  static let ways = ["debug-dynamic", "release-dynamic", "debug-static", "release-static"]

  /// `make samples` puts them there.
  static func service(_ way: String) -> String { "\(root)/.build/orderd/\(way)/orderd" }

  /// Built beside the tests.
  static var symbolicate: String { builtProduct("symbolicate") }

  /// A bug of the service, and what a report must say about it.
  struct Bug: Sendable, CustomTestStringConvertible {
    var request: String
    var reason: String
    var function: String
    /// Source file, and the code on the line that is to blame.
    var file: String
    var code: String

    var testDescription: String { request }

    /// Whether the thread that crashes runs the request's task: the main thread and a queue's worker do not.
    var isInTask: Bool { !["POST /tree", "POST /categories"].contains(request) }

    /// The line of `code` in the sample's sources, 1-based.
    func line() throws -> Int {
      let text = try String(contentsOfFile: "\(Sample.root)/samples/orderd/Sources/\(file)", encoding: .utf8)
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      guard let index = lines.firstIndex(where: { $0.contains(code) }) else {
        throw ChildProcess.LaunchFailure(description: "\(file) has no line with \(code)")
      }
      return index + 1
    }
  }

  static let bugs = [
    Bug(
      request: "POST /discount", reason: "nil-unwrap", function: "Baskets.percent(of:)", file: "orderd/Baskets.swift",
      code: "discounts[code]!"),
    Bug(
      request: "GET /orders/1/lines/9", reason: "bounds", function: "Receipts.price(of:at:)",
      file: "orderd/Receipts.swift", code: "lines[index].cents"),
    Bug(
      request: "POST /bulk", reason: "overflow", function: "Money.times(_:_:)", file: "orderd/Baskets.swift",
      code: "    cents * quantity"),
    Bug(
      request: "POST /payment", reason: "fatal", function: "Payments.authorize(_:)", file: "orderd/Payments.swift",
      code: "fatalError("),
    Bug(
      request: "POST /mail", reason: "try", function: "Mailer.confirm(to:)", file: "orderd/Payments.swift",
      code: "try! send("),
    Bug(
      request: "GET /receipt", reason: "cast", function: "Receipts.latest(for:)", file: "orderd/Receipts.swift",
      code: "as! Receipt"),
    Bug(
      request: "POST /ledger", reason: "segv", function: "ledger_close_month", file: "CLedger/ledger.c",
      code: "*total = sum("),
    Bug(
      request: "POST /ledger/reset", reason: "heap", function: "ledger_free", file: "CLedger/ledger.c",
      code: "  free(ledger->balances);"),
    Bug(
      request: "POST /tree", reason: "stack-overflow", function: "Categories.depth(of:)",
      file: "orderd/Categories.swift", code: "static func depth("),
    Bug(
      request: "POST /categories", reason: "stack-overflow", function: "Categories.discount(in:)",
      file: "orderd/Categories.swift", code: "static func discount("),
    Bug(
      request: "POST /checkout", reason: "div0", function: "Checkout.slotNumber(total:slots:)",
      file: "orderd/Checkout.swift", code: "slots[total % slots.count]"),
    Bug(
      request: "GET /price", reason: "cxx-terminate", function: "pricing_quote", file: "CPricing/pricing.cpp",
      code: "extern \"C\" long pricing_quote("),
  ]
}

/// A JSON object, as the tool prints it.
struct JSONObject {
  var fields: [String: Any]

  init(_ bytes: [UInt8]) throws {
    let value = try JSONSerialization.jsonObject(with: Data(bytes))
    guard let fields = value as? [String: Any] else {
      throw ChildProcess.LaunchFailure(
        description: "no JSON object: \(String(decoding: bytes.prefix(200), as: UTF8.self))")
    }
    self.fields = fields
  }

  func string(_ key: String) -> String? { fields[key] as? String }

  /// Frames of the crashed thread.
  var crashedFrames: [[String: Any]] {
    let threads = fields["threads"] as? [[String: Any]] ?? []
    return threads.first { $0["crashed"] as? Bool == true }?["frames"] as? [[String: Any]] ?? []
  }
}
