public import CrashModel

/// Which build of a program crashed: the first eight bytes of the executable's build id.
///
/// Small, as every group holds many. Two builds of one program meet by chance once in 2³² pairs.
public struct BuildKey: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
  public var rawValue: UInt64

  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Of the executable that crashed, or, where its build id is not known, of the release.
  ///
  /// - Returns: nil where a report says neither.
  public init?(_ report: CrashReport) {
    if let index = report.executableImageIndex, let id = report.images[index].buildID {
      rawValue = Self.firstBytes(of: id.bytes)
    } else if let release = report.release {
      rawValue = Self.firstBytes(of: SHA256.digest(Array(release.utf8)))
    } else {
      return nil
    }
  }

  private static func firstBytes(of bytes: [UInt8]) -> UInt64 {
    // Shorter ids are padded, so that `01` and `0100` are one: no linker writes such.
    (0..<8).reduce(0) { $0 << 8 | UInt64($1 < bytes.count ? bytes[$1] : 0) }
  }

  public static func < (left: BuildKey, right: BuildKey) -> Bool { left.rawValue < right.rawValue }

  /// 16 hex digits.
  public var description: String { Hex.padded(rawValue) }
}

/// The builds that a group was seen in, in order, at most `limit` of them.
///
/// The smallest keys are kept, whichever came first, so that the order of reports does not matter.
public struct BuildSet: Hashable, Sendable {
  public static let limit = 64

  public private(set) var keys: [BuildKey] = []
  /// There were more, or reports that did not say.
  public private(set) var isIncomplete = false

  public init() {}

  public init(_ key: BuildKey?) {
    if let key { keys = [key] } else { isIncomplete = true }
  }

  /// - Parameter keys: in any order.
  public init(keys: some Sequence<BuildKey>, isIncomplete: Bool) {
    let sorted = Set(keys).sorted()
    self.keys = Array(sorted.prefix(Self.limit))
    self.isIncomplete = isIncomplete || sorted.count > Self.limit
  }

  public mutating func insert(_ key: BuildKey?) {
    guard let key else {
      isIncomplete = true
      return
    }
    if keys.count == 1, keys[0] == key { return }
    formUnion(BuildSet(key))
  }

  public mutating func formUnion(_ other: BuildSet) {
    if other == self { return }
    self = BuildSet(keys: keys + other.keys, isIncomplete: isIncomplete || other.isIncomplete)
  }

  /// Whether no build is in both; false where one of them is not complete, as nobody knows.
  public func isKnownDisjoint(with other: BuildSet) -> Bool {
    guard !isIncomplete, !other.isIncomplete else { return false }
    var (left, right) = (keys[...], other.keys[...])
    while let one = left.first, let two = right.first {
      if one == two { return false }
      if one < two { left.removeFirst() } else { right.removeFirst() }
    }
    return true
  }
}
