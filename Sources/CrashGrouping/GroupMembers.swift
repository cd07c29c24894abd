public import CrashModel

/// The reports of a group, by their ids: the latest ones.
///
/// A report that is added twice is known to be the same as long as it is among them. Which ones are kept follows from the
/// reports alone, and how often each was added is kept with it; so the order in which tables are joined does not matter.
public struct GroupMembers: Hashable, Sendable {
  /// So many reports of a group are kept, some 80 bytes each.
  public static let limit = 1_000

  /// A report, as far as it is told apart from others.
  public struct Entry: Hashable, Sendable {
    /// A UUID as the number that it is: a group holds a thousand, and as text each would have memory of its own.
    enum ID: Hashable, Comparable, Sendable {
      case uuid(UInt64, UInt64)
      case text(String)
    }

    var storedID: ID
    public var timestamp: Timestamp?
    public var release: String?
    /// Those included that were counted and not stored.
    public var crashes: Int
    /// How often the report was added.
    public package(set) var times: Int

    init(_ id: ID, timestamp: Timestamp?, release: String?, crashes: Int) {
      storedID = id
      (self.timestamp, self.release, self.crashes, times) = (timestamp, release, crashes, 1)
    }

    package init(id: String, timestamp: Timestamp?, release: String?, crashes: Int, times: Int = 1) {
      storedID = ID(id)
      (self.timestamp, self.release, self.crashes, self.times) = (timestamp, release, crashes, times)
    }

    public var id: String { storedID.string }

    func isSame(as other: Entry) -> Bool {
      storedID == other.storedID && timestamp == other.timestamp && release == other.release
        && crashes == other.crashes
    }

    /// Latest first, then by what else there is: a total order, but for `times`.
    static func isBefore(_ left: Entry, _ right: Entry) -> Bool {
      if left.timestamp != right.timestamp {
        return (left.timestamp?.rawValue ?? .min, left.timestamp == nil ? 0 : 1)
          > (right.timestamp?.rawValue ?? .min, right.timestamp == nil ? 0 : 1)
      }
      if left.storedID != right.storedID { return left.storedID < right.storedID }
      if left.crashes != right.crashes { return left.crashes < right.crashes }
      return (left.release == nil ? 0 : 1, left.release ?? "") < (right.release == nil ? 0 : 1, right.release ?? "")
    }
  }

  /// More than the limit while entries come in, so that sorting is rare.
  private var pending: [Entry] = []
  private static let room = limit + limit / 4

  public init() {}

  package init(_ entries: [Entry]) {
    pending = entries
    settle()
  }

  public var isEmpty: Bool { pending.isEmpty }

  /// Latest first, at most `limit`.
  public var entries: [Entry] {
    var members = self
    members.settle()
    return members.pending
  }

  mutating func add(_ entry: Entry) {
    pending.append(entry)
    if pending.count > Self.room { settle() }
  }

  mutating func formUnion(_ other: GroupMembers) {
    pending += other.pending
    settle()
  }

  /// What is cut off has `limit` others before it, and would have them in every union: no later one brings it back.
  mutating func settle() {
    pending.sort(by: Entry.isBefore)
    var count = 0
    for index in pending.indices {
      if count > 0, pending[count - 1].isSame(as: pending[index]) {
        pending[count - 1].times = pending[count - 1].times.addingClamped(pending[index].times)
      } else {
        pending[count] = pending[index]
        count += 1
      }
    }
    pending.removeSubrange(min(count, Self.limit)...)
  }

  /// Each report once; calls `body` for each that was there more often.
  mutating func removeRepeats(_ body: (_ entry: Entry, _ extraTimes: Int) -> Void) {
    settle()
    for index in pending.indices where pending[index].times > 1 {
      body(pending[index], pending[index].times - 1)
      pending[index].times = 1
    }
  }
}

extension GroupMembers.Entry.ID {
  init(_ text: String) {
    var text = text
    self = text.withUTF8 { Self.uuid(UnsafeRawBufferPointer($0)) } ?? .text(text)
  }

  init(_ text: UnsafeRawBufferPointer) { self = Self.uuid(text) ?? .text(String(decoding: text, as: UTF8.self)) }

  private static func uuid(_ bytes: UnsafeRawBufferPointer) -> Self? {
    guard bytes.count == 36 else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for (index, byte) in bytes.enumerated() {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      // Lower case only, so that the text comes out as it went in.
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      default: return nil
      }
      high = high << 4 | low >> 60
      low = low << 4 | UInt64(digit)
    }
    return .uuid(high, low)
  }

  var string: String {
    switch self {
    case .text(let text): return text
    case .uuid(let high, let low):
      let digits = Array((Hex.padded(high) + Hex.padded(low)).utf8)
      var text: [UInt8] = []
      text.reserveCapacity(36)
      for (index, digit) in digits.enumerated() {
        if index == 8 || index == 12 || index == 16 || index == 20 { text.append(UInt8(ascii: "-")) }
        text.append(digit)
      }
      return String(decoding: text, as: UTF8.self)
    }
  }
}
