/// The order in which queries are looked up: by where their answers lie, so that neighbours read the same memory.
///
/// A radix sort in three passes over 24 bits: it looks at each query six times, however many there are. Equal keys keep
/// their order.
struct QueryOrder {
  /// With fewer there is nothing to win.
  static let minimum = 1_024

  /// Key in the upper half, index in the lower one.
  private var entries: [UInt64] = []
  private var spare: [UInt64] = []
  private var isSorted = false

  /// Begins with the order in which the queries came.
  mutating func begin() {
    isSorted = false
    entries.removeAll(keepingCapacity: true)
  }

  /// Index of the query at a position.
  @inline(__always)
  subscript(position: Int) -> Int {
    isSorted ? Int(truncatingIfNeeded: entries[position] & 0xffff_ffff) : position
  }

  /// - Parameter key: of a query, 24 bits.
  mutating func sort(count: Int, by key: (Int) -> UInt32) {
    isSorted = true
    for index in 0..<count {
      entries.append(UInt64(key(index)) << 32 | UInt64(truncatingIfNeeded: index))
    }
    spare = Array(repeating: 0, count: count)
    for shift in [UInt64(32), 40, 48] {
      var ends = [Int](repeating: 0, count: 256)
      for entry in entries { ends[Int(entry >> shift & 0xff)] += 1 }
      var start = 0
      for bucket in 0..<256 {
        let size = ends[bucket]
        ends[bucket] = start
        start += size
      }
      for entry in entries {
        let bucket = Int(entry >> shift & 0xff)
        spare[ends[bucket]] = entry
        ends[bucket] += 1
      }
      swap(&entries, &spare)
    }
  }
}
