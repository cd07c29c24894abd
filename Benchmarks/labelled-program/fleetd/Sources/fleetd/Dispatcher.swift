import CTelemetry
import Routing

/// Brings a request to the code that has the bug, on one of two ways.
struct Dispatcher {
  let planner = Planner()
  let vehicles = Vehicles()
  let mailbox = Mailbox()
  let ledger = Ledger()

  func handle(_ bug: Int, way: Int) async -> Int {
    switch bug {
    case 29: return await (way == 0 ? ledger.withdraw(5, from: "zz") : refund(5))
    case 30: return await (way == 0 ? ledger.settle(9) : monthly(12))
    default: return way == 0 ? direct(bug) : nightly(bug)
    }
  }

  @inline(never)
  func direct(_ bug: Int) -> Int { route(bug) }

  /// The same work, from a job that runs at night.
  func nightly(_ bug: Int) -> Int {
    let results = [bug].map { number in route(number) }
    return results.reduce(0, +) + 1
  }

  private func refund(_ cents: Int) async -> Int {
    let left = await ledger.withdraw(-cents, from: "unknown")
    return left + cents
  }

  private func monthly(_ rounds: Int) async -> Int {
    var total = 0
    for _ in 0..<2 { total += await ledger.settle(rounds) }
    return total
  }

  private func route(_ bug: Int) -> Int {
    switch bug {
    case 1...10, 20: plan(bug)
    case 27, 28: price(bug)
    case 31: mailbox.deliver("hello")
    default: drive(bug)
    }
  }

  private func plan(_ bug: Int) -> Int {
    switch bug {
    case 1: planner.depot(of: "west").count
    case 2: planner.span(of: "north", first: 7, second: 0)
    case 3: planner.span(of: "north", first: 1, second: 9)
    case 4: planner.shifted("north", by: .max)
    case 5: planner.summary(of: ["north", "west"], numbers: []).count
    case 6: planner.summary(of: ["north"], numbers: ["1", "x"]).count
    case 7: planner.corner(2)
    case 8: planner.detour(3)
    case 9: planner.distance(1)
    case 20: Int.random(in: 0...1) == 0 ? planner.middle() : planner.balance(0)
    default: planner.depth(1)
    }
  }

  private func drive(_ bug: Int) -> Int {
    switch bug {
    case 11: return vehicles.checksum(12)
    case 12: return vehicles.ratio(0)
    case 13: return vehicles.openDoor(7)
    case 14: return vehicles.unlockTrunk(8)
    case 15:
      telemetry_free_twice(64)
      return 0
    case 16: return Int(telemetry_follow(4))
    case 17: return vehicles.teacher("b").count
    case 18: return vehicles.position("lorry")
    case 19: return vehicles.window(2, 1)
    case 21: return Int(vehicles.encoded(50))
    case 22: return vehicles.index(["a", "b", "a"])
    case 23: return vehicles.audit(3)
    case 24: return vehicles.brake(-1)
    case 25: return vehicles.lesson().count
    default: return vehicles.callback(5)
    }
  }

  private func price(_ bug: Int) -> Int {
    bug == 27
      ? (try? perform(Price(table: [1, 2]), times: 2, with: 6))?.count ?? 0
      : (try? perform(Label(names: [1: "a"]), times: 1, with: 2))?.count ?? 0
  }
}
