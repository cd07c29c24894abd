import CrashGrouping
import CrashModel
import TestSupport
import Testing

/// However reports are spread over tables and in whichever order these are joined: the same bytes.
struct GroupUnionTests {
  @Test(arguments: [false, true], [1, 2, 3] as [UInt64])
  func anySharding(keepsMembers: Bool, seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let members = GroupMember.random(6_000, using: &generator)
    let whole = GroupTable(members, keepsMembers: keepsMembers)
    let (state, groups) = (whole.stateText, whole.groups())
    #expect(groups.contains { $0.releases.otherCount > 0 && $0.days.earlierCount > 0 && $0.moreHosts })
    if keepsMembers { #expect(groups.contains { $0.members.entries.count == GroupMembers.limit }) }
    for _ in 0..<6 {
      let count = Int.random(in: 1...9, using: &generator)
      var shards = [[GroupMember]](repeating: [], count: count)
      for member in members.shuffled(using: &generator) {
        shards[Int.random(in: 0..<count, using: &generator)].append(member)
      }
      // A tree of unions of any shape.
      var tables = shards.map { GroupTable($0, keepsMembers: keepsMembers) }
      while tables.count > 1 {
        let other = tables.remove(at: Int.random(in: tables.indices, using: &generator))
        tables[Int.random(in: tables.indices, using: &generator)].formUnion(other)
      }
      #expect(tables[0].stateText == state)
      #expect(tables[0].groups() == groups)
    }
  }

  @Test func emptyTableIsNeutral() {
    var generator = SeededGenerator(seed: 9)
    let table = GroupTable(GroupMember.random(200, using: &generator), keepsMembers: true)
    var left = GroupTable()
    left.formUnion(table)
    var right = table
    right.formUnion(GroupTable())
    #expect(left.stateText == table.stateText && right.stateText == table.stateText)
    #expect(
      GroupTable().stateText
        == "{\"schema\":\"crash-groups/1\",\"algorithm\":\"g1\",\"groups\":[\n],\"group_count\":0}\n")
  }

  /// With ids, a report that is in both tables counts once; without, it counts twice.
  @Test func repeatsAreKnownByTheirIDs() throws {
    var generator = SeededGenerator(seed: 4)
    var members = GroupMember.random(300, using: &generator)
    for index in members.indices { members[index].reportID = "r\(index)" }
    let once = GroupTable(members, keepsMembers: true)
    var twice = once
    twice.formUnion(once)
    twice.formUnion(GroupTable(Array(members.prefix(100)), keepsMembers: true))
    #expect(twice.groups() == once.groups())
    var blind = GroupTable(members, keepsMembers: false)
    blind.formUnion(blind)
    #expect(blind.groups().reduce(0) { $0 + $1.count } == 2 * once.groups().reduce(0) { $0 + $1.count })
  }

  @Test func idsComeOutAsTheyWentIn() throws {
    let ids = [
      "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b", "0192A3B4-C5D6-7E8F-9A0B-1C2D3E4F5A6B", "",
      "0192a3b4c5d67e8f9a0b1c2d3e4f5a6b", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6",
    ]
    let members = ids.map { GroupMember(reportID: $0, scope: "", hash: GroupMember.hash(1, .dwarf)) }
    let group = try #require(GroupTable(members, keepsMembers: true).groups().first)
    #expect(Set(group.members.entries.map(\.id)) == Set(ids))
  }

  @Test func theLatestWordOnAGroupHolds() throws {
    let member = GroupMember(reportID: "r", scope: "", hash: GroupMember.hash(1, .dwarf))
    var (left, right) = (GroupTable([member], keepsMembers: false), GroupTable([member], keepsMembers: false))
    let group = try #require(left.groups().first)
    left.resolve(group, Resolution(release: "1.0", moment: Timestamp(rawValue: 5)))
    right.resolve(group, Resolution(release: nil, moment: Timestamp(rawValue: 6)))
    var (first, second) = (left, right)
    first.formUnion(right)
    second.formUnion(left)
    #expect(first.stateText == second.stateText)
    #expect(first.groups().first?.resolution == Resolution(release: nil, moment: Timestamp(rawValue: 6)))
  }

  /// Every report with a release, a host and a day of its own.
  @Test func memoryIsBounded() throws {
    var table = GroupTable(keepsMembers: true)
    for index in 0..<5_000 {
      let moment = Timestamp(rawValue: Int64(index * 7_919 % 5_000) * 86_400_000_000_000)
      table.add(
        GroupMember(
          reportID: "r\(index)", scope: "", hash: GroupMember.hash(1, .dwarf), timestamp: moment,
          release: "\(index * 31 % 5_000).0", host: "h\(index)"))
    }
    let group = try #require(table.groups().first)
    #expect(group.count == 5_000)
    #expect(
      group.releases.entries.count == ReleaseCounts.limit && group.releases.otherCount == 5_000 - ReleaseCounts.limit)
    #expect(group.releases["4999.0"] == 1 && group.releases["10.0"] == nil)
    #expect(group.days.days.count == DayCounts.limit && group.days.earlierCount == 5_000 - DayCounts.limit)
    #expect(group.days.days.last?.number == 4_999)
    #expect(group.members.entries.count == GroupMembers.limit)
    #expect(group.members.entries.first?.timestamp == group.lastSeen)
  }
}
