import CrashGrouping
import CrashModel
import TestSupport

extension GroupMember {
  static func hash(_ number: Int, _ quality: StackHash.Quality) -> StackHash {
    let digits = String(number, radix: 16)
    return StackHash(digits: String(repeating: "0", count: 32 - digits.count) + digits, quality: quality)
  }

  /// Reports of few bugs, in which everything that has a limit goes beyond it, and many things are equal.
  static func random(_ count: Int, using generator: inout SeededGenerator) -> [GroupMember] {
    (0..<count).map { _ in
      // Half of all are of one bug.
      let bug = max(Int.random(in: -6..<6, using: &generator), 0)
      let quality = StackHash.Quality.allCases.randomElement(using: &generator) ?? .dwarf
      var member = GroupMember(
        reportID: Bool.random(using: &generator) ? uuid(&generator) : "r\(Int.random(in: 0..<40, using: &generator))",
        scope: bug == 5 ? "maild" : "orderd", hash: hash(bug + 1, quality))
      // Two bugs share a hash of lower quality.
      if quality == .dwarf { member.previousHashes = [hash(bug / 2 + 1, .symtab)] }
      if quality == .symtab { member.previousHashes = [hash(Int.random(in: 0..<9, using: &generator), .offsets)] }
      member.reason = .bounds
      member.message = Bool.random(using: &generator) ? "m\(Int.random(in: 0..<3, using: &generator))" : nil
      member.blame = Blame(function: "f\(bug)", file: "a.swift", line: Int.random(in: 0..<4, using: &generator))
      if Int.random(in: 0..<10, using: &generator) > 0 {
        // Before 1970, and far from now; some equal to the nanosecond.
        let day = Int64.random(in: -30..<200, using: &generator)
        member.timestamp = Timestamp(rawValue: day * 86_400_000_000_000 + Int64.random(in: 0..<3, using: &generator))
      }
      member.release = ["\(Int.random(in: 0..<200, using: &generator)).0", "main", nil].randomElement(
        using: &generator)!
      member.host = "h\(Int.random(in: 0..<100, using: &generator))"
      member.suppressedCount = Int.random(in: 0..<3, using: &generator)
      return member
    }
  }

  private static func uuid(_ generator: inout SeededGenerator) -> String {
    let digits = String(Int.random(in: 0..<3_000, using: &generator), radix: 16)
    return "01900000-0000-7000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
  }
}

extension GroupTable {
  /// Each report with a stack, of which the group's sample keeps one.
  init(_ members: [GroupMember], keepsMembers: Bool) {
    self.init(keepsMembers: keepsMembers)
    for member in members { add(member) { "0 \(member.blame?.function ?? "") \(member.reportID)" } }
  }

  var stateText: String {
    var bytes: [UInt8] = []
    writeState { bytes += $0 }
    return String(decoding: bytes, as: UTF8.self)
  }
}
