/// Ways on which the blamed function was called: names from it outward, at most `limit` of these lists.
///
/// The alphabetically first ones are kept, whichever came first, so that the order of reports does not matter.
public struct CallPathSet: Hashable, Sendable {
  public static let limit = 4

  public private(set) var paths: [[String]] = []

  public init() {}

  public init(_ paths: some Sequence<[String]>) {
    for path in paths { insert(path) }
  }

  public mutating func insert(_ path: [String]) {
    guard !path.isEmpty else { return }
    // The last that was inserted is most often the next one too; names are mostly shared, and compare by address.
    var index = 0
    while index < paths.count {
      if paths[index] == path { return }
      if path.lexicographicallyPrecedes(paths[index]) { break }
      index += 1
    }
    guard index < Self.limit else { return }
    paths.insert(path, at: index)
    if paths.count > Self.limit { paths.removeLast() }
  }

  public mutating func formUnion(_ other: CallPathSet) {
    for path in other.paths { insert(path) }
  }
}
