/// Addresses from `low` up to and without `high`, as an ELF file numbers them.
struct AddressRange: Hashable {
  var low: UInt64
  var high: UInt64

  @inline(__always)
  func contains(_ address: UInt64) -> Bool { low <= address && address < high }
}

/// The parts of a file that hold code, which is what a range must lie in to be believed.
///
/// A linker that drops a function leaves its debug information behind and gives it an address that no code has: 0 (GNU ld,
/// gold), 1 (GNU ld in `.debug_ranges`, where a 0 would end the list), or all ones (lld). Such a range, `[0, size)`, may
/// well reach into real code, and then names it wrongly: llvm/llvm-project#58641.
struct CodeRanges {
  /// Sorted by address, without overlaps.
  let ranges: [AddressRange]

  init(_ ranges: [AddressRange]) {
    var merged: [AddressRange] = []
    for range in ranges.sorted(by: { $0.low < $1.low }) where range.low < range.high {
      if let last = merged.last, range.low < last.high {
        merged[merged.count - 1].high = max(last.high, range.high)
      } else {
        merged.append(range)
      }
    }
    self.ranges = merged
  }

  /// The part that `address` lies in.
  func range(of address: UInt64) -> AddressRange? {
    let index = ranges.partitioningIndex { $0.high > address }
    return index < ranges.count && ranges[index].contains(address) ? ranges[index] : nil
  }

  /// Whether the range can be one of code that is in the file.
  @inline(__always)
  func isLive(_ range: AddressRange) -> Bool {
    range.low > 1 && range.low < range.high && self.range(of: range.low) != nil
  }
}

extension RandomAccessCollection where Index == Int {
  /// The first index whose element fulfils `predicate`, where all that fulfil it follow those that do not.
  @inline(__always)
  func partitioningIndex(where predicate: (Element) -> Bool) -> Int {
    var low = startIndex
    var high = endIndex
    while low < high {
      let middle = low &+ (high &- low) / 2
      if predicate(self[middle]) { high = middle } else { low = middle &+ 1 }
    }
    return low
  }
}
