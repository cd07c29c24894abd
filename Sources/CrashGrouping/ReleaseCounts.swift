public import CrashModel

/// How many crashes each release had, and when.
public struct ReleaseCounts: Hashable, Sendable {
  /// So many releases are told apart: the newest by `ReleaseVersion`. A service whose release is a commit has a new one
  /// every day.
  public static let limit = 128

  public struct Release: Hashable, Sendable {
    public var name: String
    public var count: Int
    public var firstSeen: Timestamp?
    public var lastSeen: Timestamp?

    package init(name: String, count: Int, firstSeen: Timestamp?, lastSeen: Timestamp?) {
      (self.name, self.count, self.firstSeen, self.lastSeen) = (name, count, firstSeen, lastSeen)
    }

    fileprivate mutating func add(_ other: Release) {
      count = count.addingClamped(other.count)
      firstSeen = Timestamp.earlier(firstSeen, other.firstSeen)
      lastSeen = Timestamp.later(lastSeen, other.lastSeen)
    }
  }

  /// By name.
  public private(set) var entries: [Release] = []
  /// Crashes of the releases that are not among the entries.
  public private(set) var otherCount = 0
  /// The first of the entries by `ReleaseOrder`, where it was looked for.
  private var oldestName: String?

  public static func == (left: ReleaseCounts, right: ReleaseCounts) -> Bool {
    left.entries == right.entries && left.otherCount == right.otherCount
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(entries)
    hasher.combine(otherCount)
  }

  public init() {}

  package init(entries: [Release], otherCount: Int) {
    self.otherCount = max(otherCount, 0)
    for entry in entries { add(entry) }
  }

  /// nil for a release without a crash, or one that is not told apart.
  public subscript(name: String) -> Int? { entries.first { $0.name == name }?.count }

  public var isEmpty: Bool { entries.isEmpty && otherCount == 0 }

  /// Most crashes first, then by name.
  public var byCount: [Release] { entries.sorted { ($1.count, $0.name) < ($0.count, $1.name) } }

  mutating func add(_ name: String, count: Int, at moment: Timestamp?) {
    // One after the other: short names are compared in no time, and few groups have seen many releases.
    for index in entries.indices where entries[index].name == name {
      entries[index].count = entries[index].count.addingClamped(count)
      if let moment {
        if moment > entries[index].lastSeen ?? Timestamp(rawValue: .min) { entries[index].lastSeen = moment }
        if moment < entries[index].firstSeen ?? Timestamp(rawValue: .max) { entries[index].firstSeen = moment }
      }
      return
    }
    add(Release(name: name, count: count, firstSeen: moment, lastSeen: moment))
  }

  private mutating func add(_ release: Release) {
    var place = 0
    while place < entries.count, entries[place].name < release.name { place += 1 }
    if place < entries.count, entries[place].name == release.name {
      entries[place].add(release)
      return
    }
    // The oldest goes, by an order of names alone. What went once is older than all that stayed, so that it would go
    // again, and the result is the same whatever came first.
    guard entries.count >= Self.limit, let oldest = oldestIndex else {
      entries.insert(release, at: place)
      return
    }
    if ReleaseOrder.isBefore(release.name, entries[oldest].name) {
      otherCount = otherCount.addingClamped(release.count)
    } else {
      otherCount = otherCount.addingClamped(entries[oldest].count)
      entries.remove(at: oldest)
      entries.insert(release, at: oldest < place ? place - 1 : place)
      oldestName = nil
    }
  }

  /// Searched for when it is not known any more: names are taken apart for each comparison.
  private var oldestIndex: Int? {
    mutating get {
      if let oldestName, let index = entries.firstIndex(where: { $0.name == oldestName }) { return index }
      let oldest = entries.indices.min { ReleaseOrder.isBefore(entries[$0].name, entries[$1].name) }
      oldestName = oldest.map { entries[$0].name }
      return oldest
    }
  }

  mutating func formUnion(_ other: ReleaseCounts) {
    otherCount = otherCount.addingClamped(other.otherCount)
    for entry in other.entries { add(entry) }
  }

  /// Takes back crashes that were counted more than once.
  mutating func remove(_ count: Int, of name: String) {
    if let index = entries.firstIndex(where: { $0.name == name }) {
      entries[index].count = max(entries[index].count - count, 0)
    } else {
      otherCount = max(otherCount - count, 0)
    }
  }
}

extension Timestamp {
  static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
    guard let left, let right else { return left ?? right }
    return min(left, right)
  }

  static func later(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
    guard let left, let right else { return left ?? right }
    return max(left, right)
  }

  /// Days since 1970-01-01, UTC.
  package var day: Int32 {
    let length: Int64 = 86_400_000_000_000
    let (quotient, remainder) = rawValue.quotientAndRemainder(dividingBy: length)
    // The first day that 64 bits reach begins before them; it is counted to the second.
    return Int32(clamping: max(remainder < 0 ? quotient - 1 : quotient, Int64.min / length))
  }
}

extension Int {
  /// Counts from outside can be anything up to the largest number. As none is negative, the order of additions does not
  /// matter.
  func addingClamped(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(Swift.max(other, 0))
    return overflow ? .max : sum
  }
}
