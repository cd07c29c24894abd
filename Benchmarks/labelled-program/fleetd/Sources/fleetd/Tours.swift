import Dispatch
import Routing

/// What is asked of tours, over protocols and generics as services do.
protocol Job {
  associatedtype Output
  func run(_ input: Int) throws -> Output
}

struct Price: Job {
  var table: [Int]

  // Bug 27: behind a witness and a generic function.
  func run(_ input: Int) throws -> Int { table[input] * 2 }
}

struct Label: Job {
  var names: [Int: String]

  // Bug 28: the same shape, another type.
  func run(_ input: Int) throws -> String { names[input]!.uppercased() }
}

func perform<Work: Job>(_ job: Work, times: Int, with input: Int) throws -> [Work.Output] {
  try (0..<times).map { _ in try job.run(input) }
}

actor Ledger {
  private var accounts = ["a": 100]

  // Bug 29: in an actor.
  func withdraw(_ cents: Int, from account: String) -> Int {
    let left = accounts[account]! - cents
    accounts[account] = left
    return left
  }

  // Bug 30: behind a suspension.
  func settle(_ rounds: Int) async -> Int {
    await Task.yield()
    var sum = 1
    for _ in 0..<rounds { sum *= 1_000_000_007 }
    return sum
  }
}

/// Does not come back to the queue that it is on.
final class Mailbox: @unchecked Sendable {
  private let queue = DispatchQueue(label: "mailbox")
  private var letters: [String] = []

  // Bug 31: waits for the queue that it runs on.
  func deliver(_ letter: String) -> Int {
    queue.sync { store(letter) }
  }

  private func store(_ letter: String) -> Int {
    letters.append(letter)
    return letter.isEmpty ? letters.count : count()
  }

  private func count() -> Int { queue.sync { letters.count } }
}
