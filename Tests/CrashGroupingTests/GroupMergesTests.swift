import CrashGrouping
import CrashModel
import TestSupport
import Testing

@Suite struct GroupMergesTests {
  /// Crashes of one function in one build.
  private struct Crash {
    var hash: Character
    var build: UInt64? = 1
    var path: [String]
    var reason = Reason.bounds
    var quality = StackHash.Quality.dwarf
    var line: Int?
    var count = 1
    var scope = "orderd"
  }

  private static func digits(_ character: Character) -> String { String(repeating: character, count: 32) }

  private func members(_ crashes: [Crash]) -> [GroupMember] {
    crashes.enumerated().flatMap { index, crash in
      (0..<crash.count).map { copy in
        GroupMember(
          reportID: "r\(index)-\(copy)", scope: crash.scope,
          hash: StackHash(digits: Self.digits(crash.hash), quality: crash.quality), reason: crash.reason,
          blame: crash.path.first.map { Blame(function: $0) },
          timestamp: Timestamp(rawValue: Int64(index * 100 + copy)),
          build: crash.build.map(BuildKey.init(rawValue:)), siteLine: crash.line, callPath: crash.path)
      }
    }
  }

  private func groups(_ crashes: [Crash], rules: GroupingRules = GroupingRules()) -> [CrashGroup] {
    var table = GroupTable()
    for member in members(crashes) { table.add(member) }
    return table.groups(rules: rules)
  }

  // MARK: Merges

  private static let inner = ["copy", "closure in load", "load", "handle", "main"]
  private static let outer = ["closure in load", "load", "handle", "main"]

  /// Inlined in one build, physical in the other: the callers of the one are the other.
  @Test func containedGroupsAreOneBug() throws {
    let groups = groups([Crash(hash: "a", path: Self.inner), Crash(hash: "b", build: 2, path: Self.outer, count: 3)])
    let group = try #require(groups.first)
    #expect(groups.count == 1 && group.count == 4)
    #expect(group.hashes.map(\.digits).sorted() == [Self.digits("a"), Self.digits("b")])
    #expect(group.mergedBy == [GroupMerge(rule: .containment, stackHash: Self.digits("a"))])
    #expect(group.hash.digits == Self.digits("b"))
    #expect(group.suggestions.isEmpty)
  }

  @Test func groupsOfOneBuildAreTwoBugs() {
    func count(_ first: Crash, _ second: Crash) -> Int { groups([first, second]).count }
    let inner = Crash(hash: "a", path: Self.inner)
    #expect(count(inner, Crash(hash: "b", build: 1, path: Self.outer)) == 2)
    #expect(count(inner, Crash(hash: "b", build: 2, path: Self.outer)) == 1)
    // Nobody knows in which build.
    #expect(count(inner, Crash(hash: "b", build: nil, path: Self.outer)) == 2)
    // Another reason, other callers, too few of them, another service, names without inlined functions.
    #expect(count(inner, Crash(hash: "b", build: 2, path: Self.outer, reason: .nilUnwrap)) == 2)
    #expect(count(inner, Crash(hash: "b", build: 2, path: ["closure in load", "save", "handle", "main"])) == 2)
    #expect(count(inner, Crash(hash: "b", build: 2, path: ["closure in load", "load", "x", "y", "z"])) == 2)
    #expect(count(inner, Crash(hash: "b", build: 2, path: ["closure in load"])) == 2)
    #expect(count(inner, Crash(hash: "b", build: 2, path: Self.outer, scope: "maild")) == 2)
    #expect(
      count(inner, Crash(hash: "b", build: 2, path: Self.outer, quality: .symtab)) == 2)
  }

  /// More builds than are kept: what was not kept may be the other's.
  @Test func incompleteBuildsProveNothing() {
    let many = (10..<100).map { Crash(hash: "b", build: $0, path: Self.outer) }
    #expect(groups([Crash(hash: "a", path: Self.inner)] + many).count == 2)
    #expect(groups([Crash(hash: "a", path: Self.inner)] + many.prefix(60)).count == 1)
  }

  /// Two bugs of one build cannot both be their caller's.
  @Test func contestedCallersStayAlone() {
    let found = groups([
      Crash(hash: "a", path: ["settle", "perform", "handle", "main"]),
      Crash(hash: "b", path: ["void", "perform", "handle", "main"]),
      Crash(hash: "c", build: 2, path: ["perform", "handle", "main"]),
    ])
    #expect(found.count == 3)
    #expect(found.allSatisfy { $0.mergedBy.isEmpty })
  }

  /// A chain of merges ends where the whole would have been seen in one build twice.
  @Test func chainsKeepToTheRuleOfBuilds() {
    let found = groups([
      Crash(hash: "a", build: 1, path: ["x", "f", "g", "h"]), Crash(hash: "b", build: 2, path: ["f", "g", "h"]),
      Crash(hash: "c", build: 1, path: ["g", "h"]),
    ])
    #expect(found.count == 2)
  }

  @Test func hangsMergeWithinABuild() {
    let found = groups([
      Crash(hash: "a", path: ["spin", "wait", "load", "handle"], reason: .hang),
      Crash(hash: "b", path: ["wait", "load", "handle"], reason: .hang),
    ])
    #expect(found.map(\.mergedBy) == [[GroupMerge(rule: .hang, stackHash: Self.digits("a"))]])
  }

  @Test func damagedMemoryMergesWithNothing() {
    let found = groups([
      Crash(hash: "a", path: Self.inner, reason: .heap), Crash(hash: "b", build: 2, path: Self.outer, reason: .heap),
    ])
    #expect(found.count == 2)
    #expect(found.allSatisfy { $0.hasUnreliableVictim })
  }

  /// The same callers and another name: a person decides.
  @Test func renamesAreSuggested() {
    let crashes = [
      Crash(hash: "a", path: ["check", "login", "handle", "main"]),
      Crash(hash: "b", build: 2, path: ["validate", "login", "handle", "main"]),
    ]
    let found = groups(crashes)
    #expect(found.count == 2)
    #expect(
      found.map(\.suggestions) == [
        [GroupMerge(rule: .rename, stackHash: Self.digits("a"))],
        [GroupMerge(rule: .rename, stackHash: Self.digits("b"))],
      ])
    var sameBuild = crashes
    sameBuild[1].build = 1
    #expect(groups(sameBuild).allSatisfy { $0.suggestions.isEmpty })
  }

  @Test func rulesMergeAndKeepApart() throws {
    let crashes = [Crash(hash: "a", path: Self.inner), Crash(hash: "b", build: 2, path: Self.outer)]
    #expect(groups(crashes, rules: try GroupingRules("split \(Self.digits("b"))")).count == 2)
    let strangers = [
      Crash(hash: "c", path: ["one", "two"]), Crash(hash: "d", path: ["three"], reason: .segmentationFault),
    ]
    let merged = groups(strangers, rules: try GroupingRules("merge \(Self.digits("c")) \(Self.digits("d"))"))
    #expect(merged.map(\.mergedBy) == [[GroupMerge(rule: .userRule, stackHash: Self.digits("c"))]])
  }

  // MARK: Places

  /// Lines behind the declaration, in builds: counts of the groups in the order of their places.
  private func places(_ lines: [(build: UInt64, line: Int?, count: Int)]) -> [Int] {
    groups(
      lines.map { Crash(hash: "a", build: $0.build, path: ["load", "main"], line: $0.line, count: $0.count) }
    ).sorted { ($0.site ?? 0) < ($1.site ?? 0) }.map(\.count)
  }

  @Test func linesOfOneBuildAreTwoBugs() {
    // One line in each build is one bug, wherever it stands.
    #expect(places([(1, 3, 2), (2, 9, 2), (3, 400, 1)]) == [5])
    #expect(places([(1, 3, 2), (1, 4, 1)]) == [2, 1])
    // Moved by an insertion: the second build's first line is where the first one's second stood.
    #expect(places([(1, 3, 2), (1, 4, 10), (2, 4, 3), (2, 5, 20)]) == [5, 30])
    // A build with one of the places only: the nearest.
    #expect(places([(1, 3, 1), (1, 40, 10), (2, 38, 100)]) == [1, 110])
    // Too far from all: a place of its own.
    #expect(places([(1, 3, 1), (1, 10, 10), (2, 90, 100)]) == [1, 10, 100])
    // Without a line: where most are.
    #expect(places([(1, 3, 1), (1, 40, 10), (1, nil, 100), (2, nil, 1000)]) == [1, 1110])
  }

  @Test func hostileLinesAreBounded() {
    let lines = (0..<5_000).map { (build: UInt64($0 % 100), line: Int?($0 * 7_919 % 3_001), count: 1) }
    #expect(places(lines).reduce(0, +) == 5_000)
    #expect(places([(1, .max, 1), (1, .min, 1), (2, 0, 1), (3, .min + 1, 1)]).reduce(0, +) == 4)
  }

  // MARK: Order

  /// Any order, and any sharding, gives the same groups.
  @Test(arguments: 0..<20) func orderDoesNotMatter(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let names = ["a", "b", "c", "d"]
    let crashes = (0..<60).map { _ in
      Crash(
        hash: "0123456789abcdef".randomElement(using: &generator) ?? "0",
        build: [nil, 1, 2, 3, 4, 5].randomElement(using: &generator) ?? nil,
        path: (0..<Int.random(in: 0...5, using: &generator)).map { _ in
          names.randomElement(using: &generator) ?? ""
        }, reason: Bool.random(using: &generator) ? .bounds : .hang,
        quality: Int.random(in: 0...3, using: &generator) == 0 ? .symtab : .dwarf,
        line: [nil, 1, 2, 30].randomElement(using: &generator) ?? nil)
    }
    let all = members(crashes)
    func groups(_ members: [GroupMember]) -> [CrashGroup] {
      var table = GroupTable()
      for member in members { table.add(member) }
      return table.groups()
    }
    let expected = groups(all)
    #expect(expected.reduce(0) { $0 + $1.count } == 60)
    for _ in 0..<10 { #expect(groups(all.shuffled(using: &generator)) == expected) }
    // What was merged once is not merged further, but for what became possible by it.
    #expect(GroupMerges.merge(expected.shuffled(using: &generator)).count <= expected.count)
  }

  @Test func buildsOfReports() {
    var report = CrashReport(id: "r")
    #expect(BuildKey(report) == nil)
    report.release = "1.4.0"
    let release = BuildKey(report)
    report.images = [Image(path: "/srv/orderd", buildID: nil, address: Address(rawValue: 0), size: 1)]
    #expect(release != nil && BuildKey(report) == release)
    report.images[0].buildID = BuildID("0102030405060708aabb")
    #expect(BuildKey(report)?.description == "0102030405060708")
    report.release = "1.5.0"
    #expect(BuildKey(report)?.rawValue == 0x0102_0304_0506_0708)
  }
}
