import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Symbolication

/// A cache of tables is for speed alone: whatever is in it, the answers are those of the files.
@Suite struct AddressTableCacheTests {
  private static let source = """
    #include <stdio.h>
    static inline __attribute__((always_inline)) int twice(int x) { return x * 2 + getchar(); }
    __attribute__((noinline)) int work(int x) { return twice(x) + twice(x + 1); }
    int main(int argc, char **argv) { (void)argv; return work(argc); }

    """

  private func program() throws -> (workshop: Workshop, path: String, addresses: [UInt64]) {
    let workshop = try Workshop()
    try workshop.write("main.c", Self.source)
    try workshop.run("gcc", "-O1", "-g", "main.c", "-o", "main")
    return (workshop, workshop.file("main"), try workshop.calls(in: "main"))
  }

  private func answers(_ path: String, _ addresses: [UInt64], _ tables: AddressTables) throws -> [ResolvedAddress] {
    try Symbolicator(search: DebugFileSearch(systemDirectory: nil), tables: tables)
      .symbolize(file: path, addresses: addresses)
  }

  private func names(_ cache: String, _ suffix: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: cache)) ?? []).filter { $0.hasSuffix(suffix) }
  }

  @Test func aTableIsMadeWhenItsTimeWasSpentOnAnswers() throws {
    let (workshop, path, addresses) = try program()
    let cache = workshop.file("cache/symbolicate")
    try FileManager.default.createDirectory(atPath: workshop.file("cache"), withIntermediateDirectories: false)
    let tables = AddressTables(cache: AddressTableCache(directory: cache))
    let first = try answers(path, addresses, tables)
    #expect(names(cache, ".addrtable").isEmpty)
    #expect(names(cache, ".spent").count == 1)
    #expect(first.contains { $0.functions.count > 1 })
    // As by many earlier processes.
    let identity = try #require(
      AddressTableIdentity(
        DebugFileSearch(systemDirectory: nil).files(
          for: Image(
            path: path, buildID: try DebugFile(path: path).buildID, address: Address(rawValue: 0), size: 0))))
    tables.cache?.addSpent(60_000_000, for: identity)
    #expect(try answers(path, addresses, tables) == first)
    #expect(names(cache, ".addrtable").count == 1)
    #expect(names(cache, "").count == 1, "neither a note nor a temporary file is left")
    // Answers come from the table, whatever is in it: this one has another function's name.
    let file = cache + "/" + names(cache, ".addrtable")[0]
    var bytes = try #require(contents(of: file))
    let name = try #require(Data(bytes).range(of: Data("twice".utf8)))
    bytes.replaceSubrange(name, with: Array("twine".utf8))
    try Data(Self.sealed(bytes)).write(to: URL(fileURLWithPath: file))
    let altered = try answers(path, addresses, tables)
    #expect(altered.contains { $0.functions.contains { $0.function == "twine" } })
    #expect(try answers(path, addresses, AddressTables(use: .never, cache: tables.cache)) == first)
  }

  @Test func aFolderOfOthersIsNotUsed() throws {
    let (workshop, path, addresses) = try program()
    let cache = workshop.file("cache")
    #expect(mkdir(cache, 0o700) == 0 && chmod(cache, 0o777) == 0)
    let tables = AddressTables(use: .always, cache: AddressTableCache(directory: cache))
    #expect(try answers(path, addresses, tables) == answers(path, addresses, AddressTables(use: .never)))
    #expect(names(cache, "").isEmpty)
  }

  @Test func whatWasNotUsedForTheLongestTimeGoes() throws {
    let (workshop, path, addresses) = try program()
    let cache = workshop.file("cache")
    #expect(mkdir(cache, 0o700) == 0)
    for (name, age) in [("old", 5_000), ("older", 50_000), ("recent", 10)] {
      try Data(count: 100_000).write(to: URL(fileURLWithPath: "\(cache)/\(name).addrtable"))
      var times = [timespec(), timespec()]
      times[0].tv_sec = time(nil) - age
      times[1].tv_sec = time(nil) - age
      #expect(utimensat(AT_FDCWD, "\(cache)/\(name).addrtable", times, 0) == 0)
    }
    let tables = AddressTables(use: .always, cache: AddressTableCache(directory: cache, limit: 220_000))
    _ = try answers(path, addresses, tables)
    let left = names(cache, ".addrtable")
    #expect(left.contains("recent.addrtable") && !left.contains("older.addrtable"))
    #expect(left.contains { $0.contains("-") }, "the one that was added stays")
  }

  /// Bytes and lengths of all kinds: the answers stay those of the files.
  @Test func damagedTablesAreNotBelieved() throws {
    let (workshop, path, addresses) = try program()
    let cache = workshop.file("cache")
    let tables = AddressTables(use: .always, cache: AddressTableCache(directory: cache))
    let right = try answers(path, addresses, tables)
    let file = cache + "/" + names(cache, ".addrtable")[0]
    let whole = try #require(contents(of: file))
    var generator = SeededGenerator(seed: 11)
    for round in 0..<300 {
      var bytes = whole
      if round % 3 == 0 {
        bytes.removeLast(Int.random(in: 1...bytes.count, using: &generator))
      } else {
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      }
      try Data(bytes).write(to: URL(fileURLWithPath: file))
      #expect(try answers(path, addresses, tables) == right, "round \(round)")
    }
  }

  /// Numbers that lie although every checksum is right: no trap, no endless loop, and something or nothing as an answer.
  @Test func lyingTablesDoNoHarm() throws {
    let (workshop, path, addresses) = try program()
    let cache = workshop.file("cache")
    _ = try answers(path, addresses, AddressTables(use: .always, cache: AddressTableCache(directory: cache)))
    let whole = try #require(contents(of: cache + "/" + names(cache, ".addrtable")[0]))
    let key = Array(whole[AddressTableLayout.Header.key..<AddressTableLayout.Header.key + 32])
    var generator = SeededGenerator(seed: 12)
    var refused = 0
    var found = 0
    for _ in 0..<3_000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let offset = Int.random(in: 8..<bytes.count / 4, using: &generator) * 4
        guard offset + 4 <= bytes.count else { continue }
        let value = [0, 1, .max, .max - 1, UInt32.random(in: 0...300, using: &generator), 1 << 31].randomElement(
          using: &generator)
        withUnsafeBytes(of: (value ?? 0).littleEndian) { bytes.replaceSubrange(offset..<offset + 4, with: $0) }
      }
      bytes = Self.sealed(bytes)
      let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
      memory.copyBytes(from: bytes)
      do {
        let table = try AddressTable(UnsafeRawBufferPointer(memory), key: key, release: { memory.deallocate() })
        for address in addresses + [0, .max, 0x1000] where table.functions(at: address, nearestLines: true) != nil {
          found += 1
        }
      } catch { refused += 1 }
    }
    #expect(refused > 0 && found > 0)
  }

  /// The file with all checksums as its bytes have them.
  private static func sealed(_ bytes: [UInt8]) -> [UInt8] {
    typealias Layout = AddressTableLayout
    var bytes = bytes
    func u64(_ at: Int) -> Int {
      Int(clamping: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: UInt64.self) })
    }
    let row = Layout.Header.sections + Layout.Section.checksums.rawValue * 16
    let (start, count) = (u64(row), u64(row + 8))
    if start >= Layout.headerSize, start <= bytes.count, count <= (bytes.count - start) / 4 {
      for block in 0..<count {
        let first = Layout.headerSize + block * Layout.blockSize
        guard first < start else { break }
        let sum = bytes[first..<min(first + Layout.blockSize, start)].withUnsafeBytes { Layout.checksum($0) }
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: sum).littleEndian) {
          bytes.replaceSubrange(start + block * 4..<start + block * 4 + 4, with: $0)
        }
      }
      let sum = bytes[start..<start + count * 4].withUnsafeBytes { Layout.checksum($0) }
      withUnsafeBytes(of: sum.littleEndian) {
        bytes.replaceSubrange(Layout.Header.checksumOfChecksums..<Layout.Header.checksumOfChecksums + 8, with: $0)
      }
    }
    let sum = bytes[..<Layout.Header.checksum].withUnsafeBytes { Layout.checksum($0) }
    withUnsafeBytes(of: sum.littleEndian) {
      bytes.replaceSubrange(Layout.Header.checksum..<Layout.Header.checksum + 8, with: $0)
    }
    return bytes
  }
}
