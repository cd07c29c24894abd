import CCrashFormat
import CrashModel
import Foundation
import TestSupport
import Testing

@Suite struct SHA256Tests {
  static func digest(_ bytes: [UInt8]) -> String {
    var digest = [UInt8](repeating: 0, count: 32)
    bytes.withUnsafeBytes { crash_sha256($0.baseAddress, $0.count, &digest) }
    return Hex.string(digest)
  }

  /// FIPS 180-4's examples and NIST's short messages.
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
    ),
  ]) func vectors(_ text: String, _ expected: String) {
    #expect(Self.digest(Array(text.utf8)) == expected)
  }

  @Test func aMillionTimesA() {
    #expect(
      Self.digest([UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000))
        == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
  }

  /// Every length around the block's end, beside another implementation.
  @Test func agreesWithTheSystemsTool() throws {
    let directory = try TemporaryDirectory("sha256")
    var generator = SeededGenerator(seed: 256)
    var expected: [String: String] = [:]
    for length in Array(0...130) + [511, 512, 513, 65_537] {
      let bytes = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
      try Data(bytes).write(to: URL(fileURLWithPath: "\(directory.path)/\(length)"))
      expected["\(directory.path)/\(length)"] = Self.digest(bytes)
    }
    let outcome = try ChildProcess(["/usr/bin/env", "sha256sum"] + expected.keys.sorted()).run()
    try #require(outcome.status == .exited(0))
    let lines = outcome.text.split(separator: "\n").map { $0.split(separator: " ", omittingEmptySubsequences: true) }
    #expect(lines.count == expected.count)
    for line in lines { #expect(expected[String(line[1])] == String(line[0]), "\(line[1])") }
  }
}
