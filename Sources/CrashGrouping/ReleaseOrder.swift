/// Which of two releases is the newer one, by their names alone.
///
/// A name is a version if, behind an optional `name@` and an optional `v`, it is numbers separated by dots, then an optional
/// `-` with the words of a pre-release, then an optional `+` with those of a build: `1.4.0`, `orderd@2.0.0-rc.1`, `v7`,
/// `2026.11.30+512`. Versions compare as Semantic Versioning has it, with two additions: a missing number is 0 (`1.4` is
/// `1.4.0`), and where nothing else differs, the build decides. Numbers may have any length.
///
/// ```swift
/// ReleaseVersion("1.10.0")! > ReleaseVersion("1.9.0")!        // true
/// ReleaseVersion("2.0.0-rc.1")! < ReleaseVersion("2.0.0")!    // true
/// ReleaseVersion("3f2a91c")                                   // nil: a commit says nothing about time
/// ```
public struct ReleaseVersion: Comparable, Sendable {
  private var numbers: [Substring]
  private var prerelease: [Substring]
  private var build: [Substring]

  /// - Returns: nil for a name that is no version.
  public init?(_ name: String) {
    // Names come from outside; a version of more bytes is none that somebody chose.
    guard name.utf8.count <= 256 else { return nil }
    var text = name[...]
    if let at = text.lastIndex(of: "@") { text = text[text.index(after: at)...] }
    if text.first == "v" || text.first == "V" { text = text.dropFirst() }
    build = []
    if let plus = text.firstIndex(of: "+") {
      build = Self.words(text[text.index(after: plus)...])
      guard !build.contains("") else { return nil }
      text = text[..<plus]
    }
    prerelease = []
    if let hyphen = text.firstIndex(of: "-") {
      prerelease = Self.words(text[text.index(after: hyphen)...])
      guard !prerelease.contains("") else { return nil }
      text = text[..<hyphen]
    }
    numbers = Self.words(text)
    guard numbers.allSatisfy(Self.isNumber) else { return nil }
    numbers = numbers.map(Self.withoutZeros)
    while numbers.count > 1, numbers.last == "0" { numbers.removeLast() }
  }

  public static func == (left: ReleaseVersion, right: ReleaseVersion) -> Bool { left.compare(right) == 0 }

  public static func < (left: ReleaseVersion, right: ReleaseVersion) -> Bool { left.compare(right) < 0 }

  private func compare(_ other: ReleaseVersion) -> Int {
    for index in 0..<max(numbers.count, other.numbers.count) {
      let order = Self.compareNumbers(
        index < numbers.count ? numbers[index] : "0", index < other.numbers.count ? other.numbers[index] : "0")
      if order != 0 { return order }
    }
    // A pre-release comes before what it is a pre-release of, a build behind what it is a build of.
    if prerelease.isEmpty != other.prerelease.isEmpty { return prerelease.isEmpty ? 1 : -1 }
    let order = Self.compareWords(prerelease, other.prerelease)
    return order != 0 ? order : Self.compareWords(build, other.build)
  }

  private static func compareWords(_ left: [Substring], _ right: [Substring]) -> Int {
    for (left, right) in zip(left, right) {
      let order: Int
      switch (isNumber(left), isNumber(right)) {
      case (true, true): order = compareNumbers(withoutZeros(left), withoutZeros(right))
      case (true, false): order = -1
      case (false, true): order = 1
      case (false, false): order = left == right ? 0 : left < right ? -1 : 1
      }
      if order != 0 { return order }
    }
    return left.count == right.count ? 0 : left.count < right.count ? -1 : 1
  }

  /// As text, so that no number is too large.
  private static func compareNumbers(_ left: Substring, _ right: Substring) -> Int {
    let (leftCount, rightCount) = (left.utf8.count, right.utf8.count)
    if leftCount != rightCount { return leftCount < rightCount ? -1 : 1 }
    return left == right ? 0 : left < right ? -1 : 1
  }

  private static func words(_ text: Substring) -> [Substring] {
    text.split(separator: ".", omittingEmptySubsequences: false)
  }

  private static func isNumber(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
  }

  private static func withoutZeros(_ text: Substring) -> Substring {
    let rest = text.drop { $0 == "0" }
    return rest.isEmpty ? "0" : rest
  }
}

/// A total order of all names: what is no version comes first, and equal versions go by their spelling.
enum ReleaseOrder {
  static func isBefore(_ left: String, _ right: String) -> Bool {
    switch (ReleaseVersion(left), ReleaseVersion(right)) {
    case (nil, _?): return true
    case (_?, nil): return false
    case (let left?, let right?) where left != right: return left < right
    default: return left < right
    }
  }
}
