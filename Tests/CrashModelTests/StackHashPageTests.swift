import Foundation
import Testing

@testable import CrashModel

/// Another team could build the algorithm from its page: what the page lists is what the code has.
@Suite struct StackHashPageTests {
  private static let page: String? = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return try? String(
      contentsOf: root.deletingLastPathComponent().appendingPathComponent("docs/stack-hash.md"), encoding: .utf8)
  }()

  /// What stands in code style between a heading and the next one.
  private func listed(below heading: String) throws -> [String] {
    let page = try #require(Self.page)
    let start = try #require(page.range(of: "\n## \(heading)\n"), "no heading '\(heading)'")
    let rest = page[start.upperBound...]
    let section = rest[..<(rest.range(of: "\n## ")?.lowerBound ?? rest.endIndex)]
    return section.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
      .map { String($0.element) }
  }

  @Test func modules() throws {
    #expect(Set(try listed(below: "Of the toolchain's modules")) == FrameClassifier.standardModules)
  }

  @Test func functionsOfTheRuntimes() throws {
    let listed = Set(try listed(below: "Of the runtimes' functions in C and C++"))
    let known = FrameClassifier.runtimeNames.union(FrameClassifier.runtimePrefixes.map(\.description))
    #expect(known.subtracting(listed) == [])
    #expect(listed.subtracting(known) == ["swift::", "_ZL", "_ZZL", "N5swift"])
  }

  @Test func images() throws {
    let listed = Set(try listed(below: "Of images"))
    let known = Set(Image.systemFolders + Image.systemNames + FrameClassifier.dependencyFolders)
    #expect(known.subtracting(listed) == [])
    #expect(listed.subtracting(known) == ["/usr/lib/swift/"])
  }

  /// In their order, as the first that fits decides; each reason is named before its texts.
  @Test func texts() throws {
    func expected(_ list: [(String, Reason)]) -> [String] {
      var reason: Reason?
      return list.flatMap { text, code -> [String] in
        defer { reason = code }
        return code == reason ? [text] : [code.rawValue, text]
      }
    }
    let spoken = try listed(below: "Of what the standard library says")
    let openings = expected(Reason.openings)
    #expect(Array(spoken.prefix(openings.count)) == openings)
    let words = Reason.failures.flatMap { [$0.0, $0.1.rawValue] }
    #expect(Array(spoken.suffix(words.count)) == words)
    #expect(try listed(below: "Of what glibc and the C++ runtime say") == expected(Reason.systemOpenings))
    let endings = Reason.endings.map { ($0.0.description, $0.1) }
    #expect(try listed(below: "Of functions that end a process").dropFirst() == expected(endings)[...])
  }
}
