import CrashGrouping
import CrashModel
import Testing

struct GroupBaselineTests {
  private func member(
    _ bug: Int, _ release: String?, day: Int64 = 1, quality: StackHash.Quality = .dwarf, previous: [StackHash] = [],
    scope: String = "orderd"
  ) -> GroupMember {
    GroupMember(
      reportID: "r\(bug)-\(release ?? "-")-\(day)", scope: scope, hash: GroupMember.hash(bug, quality),
      previousHashes: previous, timestamp: Timestamp(rawValue: day * 86_400_000_000_000), release: release)
  }

  private func groups(_ members: GroupMember..., resolving release: String? = nil, on day: Int64 = 10) -> [CrashGroup] {
    var table = GroupTable(members, keepsMembers: false)
    if let release {
      for group in table.groups() {
        table.resolve(group, Resolution(release: release, moment: Timestamp(rawValue: day * 86_400_000_000_000)))
      }
    }
    return table.groups()
  }

  private func status(_ current: [CrashGroup], beside earlier: [CrashGroup]) -> [GroupStatus?] {
    GroupBaseline(earlier).compare(current).map(\.status)
  }

  @Test func newKnownGone() {
    let result = GroupBaseline(groups(member(1, "1.0"), member(2, "1.0")))
      .compare(groups(member(1, "1.0"), member(1, "1.1", day: 2), member(3, "1.1")))
    #expect(result.map(\.status) == [.known, .new, .gone])
    #expect(result.map { $0.comparison?.earlierCount } == [1, 0, 1])
    #expect(result[0].comparison?.newReleases == ["1.1"])
    #expect(result[0].comparison?.earlierLastSeen == Timestamp(rawValue: 86_400_000_000_000))
    // The same hash of another service is another bug.
    #expect(status(groups(member(1, "1.0", scope: "maild")), beside: groups(member(1, "1.0"))) == [.new, .gone])
    #expect(status([], beside: []) == [])
  }

  /// Seen in a newer release than the one that it was mended in.
  @Test(arguments: [
    ("1.10.0", "1.9.0", GroupStatus.regressed), ("1.9.0", "1.10.0", .known), ("1.9.0", "1.9.0", .known),
    ("1.9", "1.9.0", .known), ("2.0.0-rc.1", "2.0.0", .known), ("orderd@2.0", "1.9", .regressed),
  ])
  func byVersion(seen: String, mended: String, expected: GroupStatus) {
    #expect(
      status(groups(member(1, seen, day: 20)), beside: groups(member(1, "1.0"), resolving: mended)) == [expected])
  }

  @Test func byTimeWhereNamesAreNoVersions() {
    let earlier = groups(member(1, "aaa", day: 1), member(2, "mended", day: 5), resolving: "mended")
    // Seen first before the one that it was mended in, and after it.
    #expect(status(groups(member(1, "aaa", day: 20)), beside: earlier) == [.known, .gone])
    #expect(status(groups(member(1, "zzz", day: 6)), beside: earlier) == [.regressed, .gone])
    // Nothing crashed in the release: it was there when it was named, on day 10.
    let unseen = groups(member(1, "aaa", day: 1), resolving: "never-crashed")
    #expect(status(groups(member(1, "bbb", day: 9)), beside: unseen) == [.known])
    #expect(status(groups(member(1, "bbb", day: 11)), beside: unseen) == [.regressed])
    // Without releases, the last crash.
    #expect(status(groups(member(1, nil, day: 9)), beside: unseen) == [.known])
    #expect(status(groups(member(1, nil, day: 11)), beside: unseen) == [.regressed])
  }

  @Test func foundAgainByABetterHashAndByAPoorerOne() {
    let poor = member(7, "1.0", quality: .symtab)
    let good = member(1, "1.0", previous: [GroupMember.hash(7, .symtab)])
    #expect(status(groups(good), beside: groups(poor)) == [.known])
    #expect(status(groups(poor), beside: groups(good)) == [.known])
    // Two bugs that once had the same poor hash are two bugs.
    let other = member(2, "1.0", previous: [GroupMember.hash(7, .symtab)])
    #expect(status(groups(other), beside: groups(good)) == [.new, .gone])
  }

  @Test func orders() {
    let groups = groups(
      member(1, "1.0", day: 1), member(1, "1.0", day: 9), member(2, "1.0", day: 5), member(3, "1.0", day: 7),
      GroupMember(reportID: "x", scope: "", hash: GroupMember.hash(4, .dwarf)))
    func bugs(_ order: GroupOrder) -> [String] {
      order.sorted(groups.shuffled()).map { String($0.hash.digits.suffix(1)) }
    }
    #expect(bugs(.count) == ["1", "3", "2", "4"])
    #expect(bugs(.lastSeen) == ["1", "3", "2", "4"])
    #expect(bugs(.firstSeen) == ["3", "2", "1", "4"])
  }
}
