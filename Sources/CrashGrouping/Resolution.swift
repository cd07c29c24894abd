public import CrashModel

/// That somebody called a bug mended, or took that back.
public struct Resolution: Hashable, Sendable {
  /// The release that it was mended in; nil where the bug was opened again.
  public var release: String?
  /// When it was said. Of two that were said of one group, the later one holds.
  public var moment: Timestamp

  public init(release: String?, moment: Timestamp) {
    self.release = release
    self.moment = moment
  }

  /// The one that holds. Said at the same time, the greater name, so that the order does not matter.
  static func latest(_ left: Resolution?, _ right: Resolution?) -> Resolution? {
    guard let left, let right else { return left ?? right }
    if left.moment != right.moment { return left.moment > right.moment ? left : right }
    return (left.release ?? "") >= (right.release ?? "") ? left : right
  }
}

extension GroupTable {
  /// Notes what somebody said of a group.
  ///
  /// - Parameter group: one of `groups`, with all places within its function. Only where it was not said later of it, or at the same time of a greater release.
  public mutating func resolve(_ group: CrashGroup, _ resolution: Resolution) {
    updateParts(group.hash, scope: group.scope) { part in
      part.resolution = Resolution.latest(part.resolution, resolution)
    }
  }
}
