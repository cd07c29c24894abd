import Testing

@testable import Symbolication

@Suite struct RangeOwnersTests {
  /// Against the plain definition: the lowest owner whose range holds the address.
  @Test func agreesWithTheDefinition() {
    var state: UInt64 = 0x1234_5678_9abc_def1
    func random(_ bound: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % bound
    }
    for _ in 0..<2000 {
      let ranges = (0..<random(12)).map { _ in
        let low = random(40)
        return (range: AddressRange(low: low, high: low + random(20)), owner: Int32(random(6)))
      }
      let owners = RangeOwners(ranges)
      for address in 0..<UInt64(64) {
        let expected = ranges.filter { $0.range.contains(address) }.map { Int($0.owner) }.min()
        #expect(owners.owner(of: address) == expected, "\(address) in \(ranges)")
      }
    }
  }

  @Test func theHighestAddresses() {
    let owners = RangeOwners([(AddressRange(low: .max - 2, high: .max), 3)])
    #expect(owners.owner(of: .max - 1) == 3)
    #expect(owners.owner(of: .max) == nil)
    #expect(RangeOwners([]).owner(of: 5) == nil)
  }
}
