import CrashModel
import CrashReporting
import Glibc
import RecordForge
import TestSupport
import Testing

@Suite struct SymbolNamesTests {
  private func names(path: String, buildID: BuildID, offsets: [UInt64]) -> [SymbolicatedFrame?] {
    var report = CrashReport(id: "")
    report.images = [Image(path: path, buildID: buildID, address: Address(rawValue: 0x10000), size: 1 << 40)]
    report.threads = [
      ThreadInfo(
        crashed: true,
        frames: offsets.map {
          .captured(
            CapturedFrame(kind: .programCounter, address: Address(rawValue: 0x10000 + $0), imageIndex: 0))
        })
    ]
    SymbolNames.resolve(&report)
    return report.threads[0].frames.map(\.symbolicated)
  }

  @Test func everyFunctionOfTheRunnerHasItsName() throws {
    // `nm` is the oracle: sized functions whose address is theirs alone.
    let path = runner()
    let id = try #require(try SymbolNames.buildID(ofFile: path))
    let listing = try ChildProcess(["/usr/bin/nm", "-S", "--defined-only", path]).run().text
    var byAddress: [UInt64: Set<String>] = [:]
    for line in listing.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 4, "tTwW".contains(words[2]), let address = Hex.value(words[0]) else { continue }
      byAddress[address, default: []].insert(String(words[3]))
    }
    let addresses = byAddress.keys.sorted()
    try #require(addresses.count > 1_000)
    let frames = names(path: path, buildID: id, offsets: addresses)
    var wrong = 0
    for (address, frame) in zip(addresses, frames) {
      guard let raw = frame?.rawFunction, byAddress[address]?.contains(raw) == true else {
        wrong += 1
        continue
      }
    }
    #expect(wrong == 0)
  }

  @Test func damagedFilesNeverTrap() throws {
    let directory = try TemporaryDirectory("elf")
    let path = directory.path + "/file"
    let original = try #require(contents(of: "/bin/true"))
    let id = try #require(try SymbolNames.buildID(ofFile: "/bin/true"))
    var state: UInt64 = 42
    func random(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    let sections = Int(original.get(UInt64.self, at: 40))
    var unresolved = 0
    for round in 0..<2_000 {
      var bytes = original
      for _ in 0...random(6) {
        let position = round.isMultiple(of: 2) ? random(1_024) : sections + random(bytes.count - sections)
        bytes[position] = [0, 1, 0x7f, 0x80, 0xff, UInt8(random(256))][random(6)]
      }
      if round.isMultiple(of: 5) { bytes.removeLast(random(bytes.count)) }
      try write(bytes, to: path)
      unresolved += names(path: path, buildID: id, offsets: [0, 0x1000, 0x2000, .max - 0x20000]).count
    }
    #expect(unresolved == 8_000)
  }

  @Test func wrongFilesAreNotUsed() throws {
    let directory = try TemporaryDirectory("elf")
    let id = try #require(BuildID("00112233"))
    #expect(mkfifo(directory.path + "/fifo", 0o600) == 0)
    try write([], to: directory.path + "/empty")
    var narrow = try #require(contents(of: "/bin/true"))
    narrow[4] = 1
    try write(narrow, to: directory.path + "/narrow")
    for name in ["fifo", "empty", "narrow", "missing", ""] {
      #expect(names(path: directory.path + "/" + name, buildID: id, offsets: [1])[0]?.status == .noSymbols)
    }
    #expect(names(path: "linux-vdso.so.1", buildID: id, offsets: [1])[0]?.status == .noSymbols)
    #expect(names(path: "/bin/true", buildID: id, offsets: [1])[0]?.status == .buildIDMismatch)
  }
}
