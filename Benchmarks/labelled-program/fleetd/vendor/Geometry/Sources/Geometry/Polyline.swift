/// A dependency of the service: what it checks is for its callers to hold, what it gets wrong is its own.
public struct Polyline: Sendable {
  public private(set) var points: [(x: Int, y: Int)]

  public init(_ points: [(x: Int, y: Int)]) { self.points = points }

  /// The caller must not ask for points that are not there.
  public func point(_ index: Int) -> (x: Int, y: Int) {
    precondition(index >= 0 && index < points.count, "no such point")
    return points[index]
  }

  /// The caller must give at least two points.
  public func length() -> Int {
    guard points.count > 1 else { fatalError("a line needs two points") }
    return zip(points, points.dropFirst()).reduce(0) { $0 + abs($1.0.x - $1.1.x) + abs($1.0.y - $1.1.y) }
  }

  // Bug 20: the mean of nothing.
  public func centre() -> Int {
    let sum = points.reduce(0) { $0 + $1.x }
    return sum / points.count
  }
}

/// Runs the work and hands on what it gives.
public func traced<Value>(_ name: String, _ work: () throws -> Value) rethrows -> Value {
  defer { lastTraced = name }
  return try work()
}

nonisolated(unsafe) public var lastTraced = ""
