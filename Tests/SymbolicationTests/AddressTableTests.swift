import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Symbolication

/// A table says what the files say that it was made from, of every address, or nothing.
@Suite struct AddressTableTests {
  private func image(_ path: String) throws -> Image {
    Image(path: path, buildID: try DebugFile(path: path).buildID, address: Address(rawValue: 0), size: 0)
  }

  private func files(_ path: String) throws -> FoundDebugFiles {
    DebugFileSearch(systemDirectory: nil).files(for: try image(path))
  }

  private func table(_ files: FoundDebugFiles) throws -> AddressTable {
    let key = try #require(AddressTableIdentity(files)).key
    let finished = try #require(AddressTableBuilder.table(for: files, key: key))
    var bytes: [UInt8] = []
    finished.forEachPiece { bytes.append(contentsOf: $0) }
    #expect(bytes.count == finished.size)
    return try table(bytes, key: key)
  }

  private func table(_ bytes: [UInt8], key: [UInt8]) throws -> AddressTable {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
    memory.copyBytes(from: bytes)
    return try AddressTable(UnsafeRawBufferPointer(memory), key: key, release: { memory.deallocate() })
  }

  /// Addresses all over the code, and around every place where the answer changes.
  private func expectSame(_ path: String, sampleSize: Int = 20_000) throws {
    let files = try files(path)
    let table = try table(files)
    var generator = SeededGenerator(seed: 7)
    let code = try #require((files.debugInformation ?? files.symbols)?.code.ranges)
    var addresses: Set<UInt64> = []
    for range in code {
      addresses.formUnion([range.low, range.high &- 1, range.high])
      let size = Int(range.high - range.low)
      for _ in 0..<min(sampleSize, size) {
        addresses.insert(range.low + UInt64.random(in: 0..<UInt64(size), using: &generator))
      }
    }
    let sorted = addresses.sorted()
    for nearestLines in [false, true] {
      var names = DisplayNames()
      let direct = ResolvedAddress.named(files.functions(at: sorted, nearestLines: nearestLines), names: &names)
      let indexed = ResolvedAddress.named(table.functions(at: sorted, nearestLines: nearestLines), names: &names)
      var differences = 0
      for (index, address) in sorted.enumerated() where direct[index] != indexed[index] {
        differences += 1
        if differences < 4 { Issue.record("\(Hex.prefixed(address)): \(direct[index])\n\(indexed[index])") }
      }
      #expect(differences == 0, "of \(sorted.count)")
    }
    #expect(table.problem == nil)
  }

  @Test(arguments: ["gcc", "clang"], ["-gdwarf-4", "-gdwarf-5"])
  func sameAsTheFilesInC(compiler: String, version: String) throws {
    let workshop = try Workshop()
    try workshop.write(
      "a.cpp",
      """
      #include <cstdio>
      #include <string>
      #include <vector>
      #include <algorithm>
      namespace { struct Order { int cents; std::string name; }; }
      static inline __attribute__((always_inline)) int twice(int x) { return x * 2 + getchar(); }
      __attribute__((cold, noinline)) static void complain(int x) { std::fprintf(stderr, "%d", x); }
      static int total(std::vector<Order> &orders) {
        int sum = 0;
        std::sort(orders.begin(), orders.end(), [](const Order &a, const Order &b) { return a.cents < b.cents; });
        for (auto &order : orders) {
          if (__builtin_expect(order.cents > 100, 0)) complain(order.cents);
          sum += twice(order.cents);
        }
        return sum;
      }
      int main(int argc, char **argv) {
        std::vector<Order> orders;
        for (int i = 0; i < argc; i++) orders.push_back({i, argv[i]});
        return total(orders);
      }
      """)
    try workshop.write(
      "b.c", "static int helper(int x) { return x / 3; }\\nint other(int x) { return helper(x) + 1; }\\n")
    let tool = compiler == "clang" ? try Workshop.locateToolchain("clang++") : "g++"
    try workshop.run(tool, "-O2", "-g", version, "-ffunction-sections", "-Wl,--gc-sections", "a.cpp", "-o", "a")
    try expectSame(workshop.file("a"))
    try workshop.run("strip", "--strip-debug", "a")
    try expectSame(workshop.file("a"))
  }

  @Test(arguments: ["-O", "-Onone"]) func sameAsTheFilesInSwift(optimization: String) throws {
    let workshop = try Workshop()
    try workshop.write("orders.swift", SwiftProgramTests.source)
    try workshop.run(
      "swiftc", optimization, "-g", "-module-cache-path", workshop.file("ModuleCache"), "-o", "orders", "orders.swift")
    try expectSame(workshop.file("orders"))
  }

  /// Of the toolchain, and large; where it has debug information.
  @Test func sameAsALargeProgram() throws {
    let program = try Workshop.locateToolchain("swift-format")
    guard try DebugFile(path: program).hasDebugInformation else { return }
    try expectSame(URL(fileURLWithPath: program).resolvingSymlinksInPath().path, sampleSize: 5_000)
  }
}
