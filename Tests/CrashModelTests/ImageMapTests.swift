import CrashModel
import Testing

/// What a search through all images finds, without one.
@Suite struct ImageMapTests {
  private func image(_ address: UInt64, _ size: UInt64) -> Image {
    Image(path: "/lib/x.so", buildID: nil, address: Address(rawValue: address), size: size)
  }

  @Test func theSameAsLookingAtEach() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      let images = (0..<Int.random(in: 0..<20, using: &random)).map { _ in
        image(.random(in: 0..<300, using: &random), .random(in: 0..<60, using: &random))
      }
      let map = ImageMap(images)
      for address in UInt64(0)..<400 {
        let expected = images.firstIndex { $0.contains(Address(rawValue: address)) }
        #expect(map.index(of: Address(rawValue: address)) == expected, "\(images) at \(address)")
      }
    }
  }

  @Test func theEndsOfTheAddressSpace() {
    let images = [image(.max - 10, .max), image(0, 1), image(5, 0)]
    let map = ImageMap(images)
    #expect(map.index(of: Address(rawValue: .max - 1)) == 0)
    #expect(map.index(of: Address(rawValue: 0)) == 1)
    #expect(map.index(of: Address(rawValue: 5)) == nil)
    #expect(ImageMap([]).index(of: Address(rawValue: 0)) == nil)
  }

  /// A document may claim as many images as it likes, all at one place.
  @Test func manyImagesAtOnePlaceAreNotAllLookedAt() {
    let images = (0..<100_000).map { _ in image(0, .max) }
    let map = ImageMap(images)
    for address in UInt64(0)..<100_000 { #expect(map.index(of: Address(rawValue: address)) != nil) }
  }
}
