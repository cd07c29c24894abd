import CrashModel
import Foundation
import TestSupport
import Testing

/// A crash inside a library whose call frame information is garbage, as a damaged disk or a bad tool leaves it: the
/// process dies in time and of the right signal, and the record has at least the place of the crash.
@Suite struct DamagedUnwindTableTests {
  /// SplitMix64, so that a seed names a case for good.
  struct Numbers {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
  }

  /// File ranges of the two sections.
  static func sections(of library: String) throws -> [Range<Int>] {
    let outcome = try ChildProcess(["/usr/bin/env", "readelf", "-SW", library]).run()
    return outcome.text.split(separator: "\n").compactMap { line in
      // [Nr] Name Type Address Offset Size …
      let words = line.drop { $0 != "]" }.dropFirst().split(separator: " ")
      guard words.count > 5, words[0] == ".eh_frame" || words[0] == ".eh_frame_hdr",
        let offset = Int(words[3], radix: 16), let size = Int(words[4], radix: 16)
      else { return nil }
      return offset..<(offset + size)
    }
  }

  static func damaged(_ bytes: [UInt8], _ sections: [Range<Int>], seed: UInt64) -> [UInt8] {
    var numbers = Numbers(state: seed)
    var bytes = bytes
    switch seed % 4 {
    case 0:  // a few bits
      for _ in 0...numbers.below(4) {
        let section = sections[numbers.below(sections.count)]
        bytes[section.lowerBound + numbers.below(section.count)] ^= 1 << UInt8(numbers.below(8))
      }
    case 1:  // a run of bytes that mean something in this format: the largest numbers, remember, expressions, padding
      let section = sections[numbers.below(sections.count)]
      let start = section.lowerBound + numbers.below(section.count)
      let byte: UInt8 = [0xff, 0x80, 0x00, 0x0a, 0x0f, 0x7f, 0x2f][numbers.below(7)]
      for index in start..<min(section.upperBound, start + 1 + numbers.below(24)) { bytes[index] = byte }
    case 2:  // half of one section
      let section = sections[numbers.below(sections.count)]
      for index in section where numbers.below(2) == 0 { bytes[index] = UInt8(truncatingIfNeeded: numbers.next()) }
    default:  // everything but the header's first bytes, which would only say "no table"
      for section in sections {
        for index in section.dropFirst(numbers.below(40)) { bytes[index] = UInt8(truncatingIfNeeded: numbers.next()) }
      }
    }
    return bytes
  }

  static let batches = Array(0..<8)

  @Test(arguments: batches) func garbage(batch: Int) throws {
    let host = try FaultHost.shared.get()
    let run = try TemporaryDirectory("garbage")
    let original = try #require(contents(of: host.library))
    let sections = try Self.sections(of: host.library)
    try #require(sections.count == 2)
    let place = try crash(with: host.library, host, in: run)
    #expect(place.report.crashedThread?.status == .captured)
    // Long runs set the number of seeds for each of the eight batches.
    let count = getenv("GARBAGE_SEEDS").flatMap { Int(String(cString: $0)) } ?? 12
    for round in 0..<count {
      let seed = UInt64(round * Self.batches.count + batch)
      let library = "\(run.path)/damaged.so"
      try write(Self.damaged(original, sections, seed: seed), to: library)
      let captured = try crash(with: library, host, in: run)
      #expect(captured.record.crashState == .complete, "seed \(seed)")
      #expect(captured.report.signal?.number == SIGSEGV)
      // The innermost frame needs no table.
      let first = try #require(captured.report.crashedThread?.frames.first?.captured, "seed \(seed)")
      let image = try #require(first.imageIndex.map { captured.report.images[$0] }, "seed \(seed)")
      #expect(image.path == library, "seed \(seed)")
      #expect(first.imageOffset == place.report.crashedThread?.frames.first?.captured?.imageOffset, "seed \(seed)")
      #expect(!captured.report.notes.contains { $0.contains("The crash handler itself") }, "seed \(seed)")
    }
  }

  private func crash(with library: String, _ host: FaultHost, in run: TemporaryDirectory) throws -> CapturedRecord {
    let spool = "\(run.path)/spool"
    for name in run.names(in: "spool") { unlink("\(spool)/\(name)") }
    _ = mkdir(spool, 0o700)
    let outcome = try ChildProcess([host.c, "dlopened"], environment: ["FX_DB": spool, "FX_LIB": library]).run()
    // SIGKILL would be the deadline's: a walk that does not end.
    #expect(outcome.status == .signaled(SIGSEGV))
    return try #require(try CapturedRecord(in: run))
  }
}
