/// Which image an address lies in, in time that does not grow with their number.
///
/// ```swift
/// let map = ImageMap(report.images)
/// let index = map.index(of: frame.lookupAddress)
/// ```
package struct ImageMap {
  /// Sorted by address.
  private let starts: [(address: UInt64, end: UInt64, index: Int)]
  /// For each of them, the highest end of it and all before.
  private let ends: [UInt64]
  /// So many images before the place are looked at: where one is unloaded, and another came in its place, they lie over each
  /// other, and of some tools' logs a size is only a guess. It keeps the search short in a document that somebody made up.
  private static let maximumOverlap = 1024

  package init(_ images: [Image]) {
    starts = images.enumerated()
      .map { (address: $1.address.rawValue, end: $1.address.rawValue.addingReportingOverflow($1.size), index: $0) }
      .map { (address: $0.address, end: $0.end.overflow ? .max : $0.end.partialValue, index: $0.index) }
      .sorted { ($0.address, $0.index) < ($1.address, $1.index) }
    var highest: UInt64 = 0
    ends = starts.map {
      highest = max(highest, $0.end)
      return highest
    }
  }

  /// The first of the images, in their order, that has the address; nil for none.
  package func index(of address: Address) -> Int? {
    let address = address.rawValue
    var low = 0
    var high = starts.count
    while low < high {
      let middle = (low + high) / 2
      if starts[middle].address > address { high = middle } else { low = middle + 1 }
    }
    var found: Int?
    var place = low - 1
    let last = max(low - Self.maximumOverlap, 0)
    while place >= last, ends[place] > address {
      if starts[place].end > address { found = min(found ?? .max, starts[place].index) }
      place -= 1
    }
    return found
  }
}
