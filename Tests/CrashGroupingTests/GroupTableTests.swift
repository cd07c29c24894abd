import CrashGrouping
import CrashModel
import Testing

struct GroupTableTests {
  private func hash(_ digit: Character, _ quality: StackHash.Quality) -> StackHash {
    StackHash(digits: String(repeating: digit, count: 32), quality: quality)
  }

  private func members() -> [GroupMember] {
    let good = hash("a", .dwarf)
    let other = hash("b", .dwarf)
    let symtab = hash("1", .symtab)
    let shared = hash("2", .symtab)
    let offsets = hash("3", .offsets)
    func member(_ id: Int, _ hash: StackHash, _ previous: [StackHash], scope: String = "orderd") -> GroupMember {
      GroupMember(
        reportID: "r\(id)", scope: scope, hash: hash, previousHashes: previous, reason: .bounds,
        blame: Blame(function: "f\(hash.digits.first ?? "-")", file: "a.swift", line: id),
        timestamp: Timestamp(rawValue: Int64(id) * 1_000_000), release: "1.\(id % 2)", host: "h\(id % 3)",
        suppressedCount: id == 1 ? 5 : 0)
    }
    return [
      member(1, good, [symtab, shared]), member(2, good, []), member(3, symtab, [offsets]), member(4, offsets, []),
      member(5, other, [shared]), member(6, shared, []), member(7, good, [], scope: "maild"),
    ]
  }

  private func groups(_ members: [GroupMember]) -> [CrashGroup] {
    var table = GroupTable()
    for member in members { table.add(member) }
    return table.groups()
  }

  @Test func lowerQualityJoinsTheOnlyOwner() throws {
    let groups = groups(members())
    #expect(groups.map(\.count) == [9, 1, 1, 1])
    let first = groups[0]
    #expect(first.hash == hash("a", .dwarf))
    #expect(first.hashes.count == 4)
    #expect(first.sample.reportID == "r2")
    #expect(first.firstSeen == Timestamp(rawValue: 1_000_000))
    #expect(first.lastSeen == Timestamp(rawValue: 4_000_000))
    #expect(first.releases["1.1"] == 7 && first.releases["1.0"] == 2 && first.releases.entries.count == 2)
    #expect(first.hosts == ["h0", "h1", "h2"])
    // The hash that both bugs had proves neither.
    #expect(groups.contains { $0.hash == hash("2", .symtab) && $0.count == 1 })
  }

  @Test func orderDoesNotMatter() {
    var generator = SystemRandomNumberGenerator()
    let expected = groups(members())
    for _ in 0..<200 { #expect(groups(members().shuffled(using: &generator)) == expected) }
  }

  @Test func hostsAreBounded() throws {
    var members = (0..<1_000).map { index in
      GroupMember(reportID: "r\(index)", scope: "", hash: hash("a", .dwarf), host: "pod-\(index)")
    }
    let group = try #require(groups(members).first)
    #expect(group.hosts.count == CrashGroup.hostLimit)
    #expect(group.moreHosts)
    members.shuffle()
    #expect(groups(members).first == group)
  }

  @Test func countsDoNotOverflow() {
    let member = GroupMember(reportID: "r", scope: "", hash: hash("a", .dwarf), suppressedCount: .max)
    #expect(groups([member, member]).first?.count == .max)
  }

  @Test func json() throws {
    var writer = JSONWriter()
    try #require(groups(members()).first).write(to: &writer)
    let a = String(repeating: "a", count: 32)
    #expect(
      String(decoding: writer.bytes, as: UTF8.self)
        == #"{"schema":"crash-group/1","stack_hash":"\#(a)","stack_hashes":[{"stack_hash":"\#(a)","stack_hash_quality":"dwarf"},{"stack_hash":"11111111111111111111111111111111","stack_hash_quality":"symtab"},{"stack_hash":"22222222222222222222222222222222","stack_hash_quality":"symtab"},{"stack_hash":"33333333333333333333333333333333","stack_hash_quality":"offsets"}],"quality":"dwarf","title":"bounds in fa","service":"orderd","reason":"bounds","blame":{"function":"fa","file":"a.swift","line":2},"count":9,"first_seen":"1970-01-01T00:00:00.001Z","last_seen":"1970-01-01T00:00:00.004Z","releases":[{"release":"1.1","count":7,"first_seen":"1970-01-01T00:00:00.001Z","last_seen":"1970-01-01T00:00:00.003Z"},{"release":"1.0","count":2,"first_seen":"1970-01-01T00:00:00.002Z","last_seen":"1970-01-01T00:00:00.004Z"}],"days":{"1970-01-01":9},"hosts":["h0","h1","h2"],"sample":"r2"}"#
    )
  }
}
