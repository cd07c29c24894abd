import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Symbolication

/// A lookup says what `Symbolicator` says of each address, with a table and without.
@Suite struct ImageLookupTests {
  private func text(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

  private func resolved(_ lookup: ImageLookup, _ address: UInt64, _ chain: inout AddressChain) -> ResolvedAddress {
    lookup.fill(&chain, at: address)
    return ResolvedAddress(
      functions: chain.functions.map { function in
        SymbolicatedFunction(
          function: function.name.flatMap { text(lookup.displayName(of: $0)) }, rawFunction: text(function.name),
          file: text(function.file), line: function.line.map { Int($0) }, column: function.column.map { Int($0) },
          approximate: function.approximate, inlined: function.inlined)
      }, runtimeFailure: text(chain.runtimeFailure))
  }

  /// What a chain does not carry.
  private func withoutRest(_ answer: ResolvedAddress) -> ResolvedAddress {
    var answer = answer
    for index in answer.functions.indices {
      answer.functions[index].declarationLine = nil
      answer.functions[index].hasDebugInformation = false
    }
    return answer
  }

  private func expectSame(_ path: String) throws {
    let search = DebugFileSearch(systemDirectory: nil)
    let code = try DebugFile(path: path).code.ranges
    var generator = SeededGenerator(seed: 11)
    var addresses: [UInt64] = [0, 1, .max]
    for range in code {
      let size = range.high - range.low
      addresses += [range.low, range.high - 1, range.high]
      addresses += (0..<min(Int(size), 4_000)).map { _ in range.low + UInt64.random(in: 0..<size, using: &generator) }
    }
    for nearestLines in [false, true] {
      let symbolicator = Symbolicator(search: search, nearestLines: nearestLines, tables: AddressTables(use: .never))
      let expected = try symbolicator.symbolize(file: path, addresses: addresses).map(withoutRest)
      for use in [AddressTables.Use.never, .always] {
        let lookup = try Symbolicator(
          search: search, nearestLines: nearestLines, tables: AddressTables(use: use)
        ).lookup(of: FilePath(path))
        #expect(lookup.hasTable == (use == .always))
        lookup.prepare(addresses)
        let readAhead = ReadAhead()
        if let reader = lookup.reader {
          for address in addresses { readAhead.add(address, of: reader) }
          readAhead.run()
        }
        var chain = AddressChain()
        var differences = 0
        for (index, address) in addresses.enumerated() {
          let answer = resolved(lookup, address, &chain)
          guard answer != expected[index] else { continue }
          differences += 1
          if differences < 4 { Issue.record("\(Hex.prefixed(address)): \(expected[index])\n\(answer)") }
        }
        #expect(differences == 0, "of \(addresses.count), tables: \(use)")
        #expect(!lookup.isDamaged)
      }
      #expect(expected.contains { $0.functions.count > 1 })
    }
  }

  @Test func sameAsTheSymbolicatorInCPlusPlus() throws {
    let workshop = try Workshop()
    try workshop.write(
      "a.cpp",
      """
      #include <string>
      #include <vector>
      #include <algorithm>
      static inline __attribute__((always_inline)) int twice(int x) { return x * 2; }
      int total(std::vector<std::string> &names) {
        int sum = 0;
        std::sort(names.begin(), names.end());
        for (auto &name : names) sum += twice(name.size());
        return sum;
      }
      int main(int argc, char **argv) {
        std::vector<std::string> names(argv, argv + argc);
        return total(names);
      }
      """)
    try workshop.run("g++", "-O2", "-g", "a.cpp", "-o", "a")
    try expectSame(workshop.file("a"))
  }

  @Test func sameAsTheSymbolicatorInSwift() throws {
    let workshop = try Workshop()
    try workshop.write("orders.swift", SwiftProgramTests.source)
    try workshop.run(
      "swiftc", "-O", "-g", "-module-cache-path", workshop.file("ModuleCache"), "-o", "orders", "orders.swift")
    try expectSame(workshop.file("orders"))
  }

  /// Whatever is in a table: reading ahead of it stays within it.
  @Test func readingAheadOfDamage() throws {
    let workshop = try Workshop()
    try workshop.write(
      "b.c", "static int helper(int x) { return x / 3; }\nint main(int x, char **v) { return helper(x); }\n")
    try workshop.run("gcc", "-O1", "-g", "b.c", "-o", "b")
    // As the cache keeps it.
    let folder = try TemporaryDirectory("tables")
    let cache = AddressTableCache(directory: folder.path)
    _ = try Symbolicator(
      search: DebugFileSearch(systemDirectory: nil), tables: AddressTables(use: .always, cache: cache)
    ).lookup(of: FilePath(workshop.file("b")))
    let name = try #require(folder.names().first { $0.hasSuffix(".addrtable") })
    let good = try #require(contents(of: folder.path + "/" + name))
    let header = AddressTableLayout.Header.key
    let key = Array(good[header..<header + 32])
    var generator = SeededGenerator(seed: 5)
    for _ in 0..<400 {
      var bytes = good
      // The header stays as it is, so that the table is taken.
      let end = bytes.count - (bytes.count - 256) / 4096 * 4 - 8
      for _ in 0..<8 {
        bytes[Int.random(in: 256..<end, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      // At the end of a page, behind which nothing is mapped: a byte too far would be seen.
      let page = 4096
      let size = (bytes.count + page - 1) / page * page
      let memory = try #require(mmap(nil, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
      mprotect(memory + size, page, PROT_NONE)
      let place = UnsafeMutableRawBufferPointer(start: memory + size - bytes.count, count: bytes.count)
      place.copyBytes(from: bytes)
      let table = try AddressTable(UnsafeRawBufferPointer(place), key: key, release: { munmap(memory, size + page) })
      let readAhead = ReadAhead()
      var chain = AddressChain()
      for address in stride(from: UInt64(0), to: 0x3000, by: 7) { readAhead.add(address, of: table.reader) }
      readAhead.run()
      for address in stride(from: UInt64(0), to: 0x3000, by: 7) where table.problem == nil {
        table.reader.fill(&chain, at: address, nearestLines: true)
        if table.problem != nil { #expect(chain.functions.isEmpty) }
      }
    }
  }
}
