/// Which of many owners an address belongs to, where their ranges may overlap: the lowest one that claims it.
///
/// Units overlap where a linker kept one copy of an inline function and let the debug information of each copy point to it.
/// The overlapping ranges are cut into segments with one owner each, by one sweep with a heap of the open ranges:
/// n log n, also for a file made to overlap everywhere.
struct RangeOwners {
  /// From `start` up to the next segment's start, the address belongs to `owner`; -1 for none.
  struct Segment {
    var start: UInt64
    var owner: Int32
  }

  /// Sorted by address; each ends where the next begins, and the last one belongs to nobody.
  private(set) var segments: [Segment] = []

  init(_ ranges: [(range: AddressRange, owner: Int32)]) {
    let sorted = ranges.filter { $0.range.low < $0.range.high }.sorted {
      ($0.range.low, $0.owner) < ($1.range.low, $1.owner)
    }
    var open = OpenRanges()
    var index = 0
    while true {
      // Where the owner's range ends before the next one begins, the next open one takes over, or nobody.
      while let owner = open.first, index == sorted.count || owner.end <= sorted[index].range.low {
        while let other = open.first, other.end <= owner.end { open.removeFirst() }
        append(owner.end, open.first?.owner ?? -1)
      }
      guard index < sorted.count else { return }
      let start = sorted[index].range.low
      while index < sorted.count, sorted[index].range.low == start {
        open.insert(.init(owner: sorted[index].owner, end: sorted[index].range.high))
        index += 1
      }
      // Ranges that ended while a lower owner covered them come to light only now.
      while let first = open.first, first.end <= start { open.removeFirst() }
      if let first = open.first { append(start, first.owner) }
    }
  }

  private mutating func append(_ start: UInt64, _ owner: Int32) {
    if let last = segments.last {
      if last.owner == owner { return }
      if last.start == start {
        segments[segments.count - 1].owner = owner
        return
      }
    }
    segments.append(Segment(start: start, owner: owner))
  }

  /// The owner of an address; nil where nobody claims it.
  func owner(of address: UInt64) -> Int? {
    let index = segments.partitioningIndex { $0.start > address }
    guard index > 0 else { return nil }
    let owner = segments[index - 1].owner
    return owner >= 0 ? Int(owner) : nil
  }
}

/// A binary heap of the ranges that the sweep is in, the lowest owner first.
private struct OpenRanges {
  struct Entry {
    var owner: Int32
    var end: UInt64
  }

  private var entries: [Entry] = []

  var first: Entry? { entries.first }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var child = entries.count - 1
    while child > 0, entries[child].owner < entries[(child - 1) / 2].owner {
      entries.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func removeFirst() {
    guard let last = entries.popLast(), !entries.isEmpty else { return }
    entries[0] = last
    var parent = 0
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < entries.count && entries[child].owner < entries[smallest].owner { smallest = child }
      if smallest == parent { return }
      entries.swapAt(parent, smallest)
      parent = smallest
    }
  }
}
