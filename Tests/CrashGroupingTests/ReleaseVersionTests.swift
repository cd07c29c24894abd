import CrashGrouping
import Testing

struct ReleaseVersionTests {
  /// Each is older than the next.
  @Test func order() throws {
    let ladders = [
      [
        "0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
        "1.0.0-rc.1", "1.0.0", "1.0.0+7", "1.0.0+12", "1.0.1", "1.1", "1.9.0", "1.10.0", "2", "v2.0.1", "orderd@3.0",
      ],
      ["2026.2.1", "2026.11.30", "2026.11.30+512"], ["99999999999999999999.1", "100000000000000000000.0"],
    ]
    for ladder in ladders {
      let versions = try ladder.map { try #require(ReleaseVersion($0), "\($0)") }
      for (lower, upper) in zip(versions, versions.dropFirst()) {
        #expect(lower < upper && !(upper < lower) && lower != upper, "\(lower) \(upper)")
      }
    }
  }

  @Test func equal() throws {
    for (left, right) in [("1.4", "1.4.0"), ("v1.4.0", "1.4"), ("a@01.2", "b@1.2.0.0"), ("0", "0.0.0")] {
      #expect(ReleaseVersion(left) == ReleaseVersion(right), "\(left) \(right)")
    }
  }

  @Test(arguments: ["", "main", "3f2a91c", "1..2", "1.x", "1.0-", "1.0+", "-1", "v", "1.0-a..b", "1.0 ", "\u{0661}.0"])
  func noVersion(name: String) { #expect(ReleaseVersion(name) == nil) }
}
