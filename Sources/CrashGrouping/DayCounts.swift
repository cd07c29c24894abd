/// How many crashes each day had, UTC.
///
/// Of the days that had one, the latest are kept apart and all earlier ones are one number. Which they are depends on the
/// days alone, so that the order in which crashes are added, or tables joined, does not matter; and a clock that was wrong
/// once costs one day of the list and not its resolution.
public struct DayCounts: Hashable, Sendable {
  /// So many days with crashes are told apart: three months, if every day has one.
  public static let limit = 92

  public struct Day: Hashable, Sendable {
    /// Days since 1970-01-01, UTC.
    public var number: Int32
    public var count: Int

    package init(number: Int32, count: Int) { (self.number, self.count) = (number, count) }
  }

  /// Earliest first.
  public private(set) var days: [Day] = []
  /// Crashes before the first of `days`.
  public private(set) var earlierCount = 0

  public init() {}

  package init(days: [Day], earlierCount: Int) {
    self.earlierCount = max(earlierCount, 0)
    for day in days { add(day.count, on: day.number) }
  }

  mutating func add(_ count: Int, on number: Int32) {
    // Streams are mostly in the order of time.
    if let last = days.last, last.number == number {
      days[days.count - 1].count = last.count.addingClamped(count)
      return
    }
    let place = place(of: number)
    if place < days.count, days[place].number == number {
      days[place].count = days[place].count.addingClamped(count)
    } else if place == 0, days.count == Self.limit {
      earlierCount = earlierCount.addingClamped(count)
    } else {
      days.insert(Day(number: number, count: count), at: place)
      if days.count > Self.limit { earlierCount = earlierCount.addingClamped(days.removeFirst().count) }
    }
  }

  mutating func formUnion(_ other: DayCounts) {
    earlierCount = earlierCount.addingClamped(other.earlierCount)
    for day in other.days { add(day.count, on: day.number) }
  }

  /// Takes back crashes that were counted more than once.
  mutating func remove(_ count: Int, on number: Int32) {
    let place = place(of: number)
    if place < days.count, days[place].number == number {
      days[place].count = max(days[place].count - count, 0)
    } else {
      earlierCount = max(earlierCount - count, 0)
    }
  }

  private func place(of number: Int32) -> Int {
    var (low, high) = (0, days.count)
    while low < high {
      let middle = low + (high - low) / 2
      if days[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
