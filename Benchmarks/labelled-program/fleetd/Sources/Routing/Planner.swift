import Geometry

/// Plans tours: a module of the service's own package.
public final class Planner {
  private var legs: [String: [Int]] = ["north": [3, 5, 8], "south": [2]]
  private var depots = ["north": "Alster", "south": "Elbe"]

  public init() {}

  // Bug 1: a tour that no depot serves.
  public func depot(of tour: String) -> String {
    depots[tour]!
  }

  // Bugs 2 and 3: two of the legs may be missing, in one function.
  public func span(of tour: String, first: Int, second: Int) -> Int {
    let legs = legs[tour] ?? []
    let start = legs[first]
    let distance = start * 10
    let end = legs[second]
    return distance + end
  }

  // Bug 4: the step over the largest number.
  public func shifted(_ tour: String, by step: Int) -> Int {
    let sum = (legs[tour] ?? []).reduce(0, +)
    return sum + step
  }

  // Bug 5: closures within one function, each with its own way to fail.
  public func summary(of tours: [String], numbers: [String]) -> [String] {
    let names = tours.map { tour in depots[tour]! + "/" + tour }
    // Bug 6.
    let counted = numbers.map { number in String(Int(number)! + 1) }
    return names + counted
  }

  // Bug 7: the caller's mistake, found by the library.
  public func corner(_ index: Int) -> Int {
    Polyline([(1, 2), (3, 4)]).point(index).x
  }

  // Bug 8: another caller of the same library, another mistake.
  public func detour(_ extra: Int) -> Int {
    traced("detour") { Polyline([(5, 5)]).point(extra).y + extra }
  }

  // Bug 9.
  public func distance(_ count: Int) -> Int {
    Polyline((0..<count).map { ($0, $0) }).length()
  }

  // Bug 20, by one of two callers.
  public func middle() -> Int { Polyline([]).centre() }

  // Bug 20, by the other one.
  public func balance(_ seed: Int) -> Int {
    let line = Polyline((0..<seed).map { ($0, 1) })
    return traced("balance") { line.centre() * 2 }
  }

  // Bug 10: a route that contains itself.
  public func depth(_ node: Int) -> Int {
    guard node > 0 else { return 0 }
    let next = node % 7 + 1
    return depth(next) + descend(next)
  }

  @inline(never)
  private func descend(_ node: Int) -> Int { node < 0 ? 0 : depth(node + 1) + 1 }
}
