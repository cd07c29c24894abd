import CrashModel
import Foundation
import Symbolication
import Testing

/// Cases that some symbolicator got wrong and that no other test here has; `docs/symbolication.md` lists them all.
@Suite struct KnownPitfallTests {
  /// From the units of the file and from its table, which have to agree.
  private func functions(_ workshop: Workshop, _ file: String, at address: UInt64) throws -> [SymbolicatedFunction] {
    let answers = try [AddressTables.Use.never, .always].map { use in
      try Symbolicator(
        search: DebugFileSearch(systemDirectory: nil), nearestLines: false, tables: AddressTables(use: use)
      ).symbolize(file: workshop.file(file), addresses: [address])[0].functions
    }
    #expect(answers[0] == answers[1])
    return answers[0]
  }

  private func clang() throws -> String { try Workshop.locateToolchain("clang") }

  /// B3: two names at one address, by the compiler whose files elfutils names after the alias.
  @Test func aliasByClang() throws {
    let workshop = try Workshop()
    try workshop.write(
      "al.c",
      """
      #include <stdio.h>
      __attribute__((noinline)) void foo(void) { puts("foo"); puts("x"); }
      void aaa(void) __attribute__((alias("foo")));
      int main(void) { foo(); aaa(); return 0; }
      """)
    try workshop.run(try clang(), "-O1", "-g", "al.c", "-o", "al")
    let address = try #require(try workshop.calls(in: "al", to: "puts").first)
    #expect(try functions(workshop, "al", at: address).map(\.function) == ["foo"])
  }

  /// B4: the linker keeps one copy of two functions that are the same, and both are true. The name and the line have to be
  /// of the same one. lld leaves the debug information of one of them, gold, which the Swift toolchain links with, of both.
  @Test(arguments: ["lld", "gold"], ["-gdwarf-4", "-gdwarf-5"]) func foldedFunctions(linker: String, version: String)
    throws
  {
    guard Workshop.exists("ld." + linker) else { return }
    let workshop = try Workshop()
    try workshop.write(
      "icf.c",
      """
      #include <stdio.h>
      static inline __attribute__((always_inline)) int first(int x) { return puts("same") + x; }
      static inline __attribute__((always_inline)) int second(int x) { return puts("same") + x; }
      __attribute__((noinline)) int one(int x) {
        return first(x) * 2;
      }
      __attribute__((noinline)) int two(int x) {
        return second(x) * 2;
      }
      int main(int c, char **v) { return one(c) + two(c + 1); }
      """)
    try workshop.run(
      try clang(), "-O1", version, "-ffunction-sections", "-fuse-ld=" + linker, "-Wl,--icf=all", "icf.c", "-o", "icf")
    let symbols = try workshop.run("nm", "icf").split(separator: "\n")
    let places = Set(symbols.filter { $0.hasSuffix(" one") || $0.hasSuffix(" two") }.map { $0.prefix(16) })
    try #require(places.count == 1, "not folded")
    let address = try #require(try workshop.calls(in: "icf", to: "puts").first)
    let found = try functions(workshop, "icf", at: address)
    let answer = found.map { "\($0.function ?? "?"):\($0.line ?? -1)" }
    #expect(answer == ["first:2", "one:5"] || answer == ["second:3", "two:8"], "\(linker) \(answer)")
  }

  /// B9: closures in a function that is inlined everywhere, so that the function they are nested in has no code.
  /// B16: functions inlined into each other, innermost first. Both as llvm-symbolizer has them.
  @Test func nestedClosuresAndInlinedFunctions() throws {
    let workshop = try Workshop()
    try workshop.write(
      "nested.swift",
      """
      final class Jobs {
        var list: [() -> Int] = []
        @inline(never) func add(_ job: @escaping () -> Int) { list.append(job) }
      }
      @inline(never) func sink(_ value: Int) -> Int { print(value); return value &+ 1 }
      @inline(__always) func schedule(_ jobs: Jobs, _ value: Int) {
        jobs.add {
          jobs.add {
            return sink(value) &+ sink(7)
          }
          return sink(value &+ 1) &+ 3
        }
      }
      @inline(__always) func a(_ x: Int) -> Int { sink(x) &+ 1 }
      @inline(__always) func b(_ x: Int) -> Int { a(x &+ 1) &* 2 }
      @inline(__always) func c(_ x: Int) -> Int { b(x &+ 1) &* 3 }
      @inline(__always) func d(_ x: Int) -> Int {
        c(x &+ 1) &* 4
      }
      @inline(never) func deep(_ x: Int) -> Int {
        let first = d(x)
        return first &+ d(x &* 2)
      }
      let jobs = Jobs()
      schedule(jobs, CommandLine.arguments.count)
      schedule(jobs, 12)
      print(jobs.list.map { $0() }, deep(CommandLine.arguments.count))
      """)
    try workshop.run(
      "swiftc", "-O", "-g", "-module-cache-path", workshop.file("ModuleCache"), "-o", "nested", "nested.swift")
    #expect(try hasFunctionBelowOneWithoutCode(workshop, "nested"))
    var closures = 0
    var chains: [[String?]] = []
    for instruction in try workshop.disassemble("nested") where instruction.text.contains("4sinkyS2iF") {
      guard instruction.text.hasPrefix("call") || instruction.text.hasPrefix("bl") else { continue }
      let found = try functions(workshop, "nested", at: instruction.next - 1)
      let theirs = try workshop.run(
        try Workshop.locateToolchain("llvm-symbolizer"), "--inlines", "--no-demangle", "--functions=linkage",
        "--obj=" + workshop.file("nested"), Hex.prefixed(instruction.next - 1)
      ).split(separator: "\n")
      #expect(found.map(\.rawFunction) == stride(from: 0, to: theirs.count, by: 2).map { String(theirs[$0]) })
      #expect(
        found.map { "\($0.file ?? "??"):\($0.line ?? 0):\($0.column ?? 0)" }
          == stride(from: 1, to: theirs.count, by: 2).map {
            theirs[$0].hasPrefix("/<compiler-generated>") ? String(theirs[$0].dropFirst()) : String(theirs[$0])
          })
      if found.last?.function?.contains("closure #1 in closure #1 in schedule(") == true { closures += 1 }
      chains.append(found.map(\.function))
    }
    #expect(closures > 0)
    #expect(chains.filter { $0 == ["a(_:)", "b(_:)", "c(_:)", "d(_:)", "deep(_:)"] }.count == 2, "\(chains)")
  }

  /// Whether a function with code stands below one that has none.
  private func hasFunctionBelowOneWithoutCode(_ workshop: Workshop, _ file: String) throws -> Bool {
    // `<2><4f>: Abbrev Number: 7 (DW_TAG_subprogram)`, then a line for each attribute.
    var open: [(depth: Int, hasCode: Bool)] = []
    for line in try workshop.run("readelf", "--debug-dump=info", file).split(separator: "\n") {
      if line.contains("Abbrev Number:"), let depth = Int(line.drop { $0 != "<" }.dropFirst().prefix { $0 != ">" }) {
        open.removeAll { $0.depth >= depth }
        if line.contains("(DW_TAG_subprogram)") { open.append((depth, false)) }
      } else if line.contains("DW_AT_low_pc") || line.contains("DW_AT_ranges"), let last = open.indices.last {
        open[last].hasCode = true
        if open.dropLast().contains(where: { !$0.hasCode }) { return true }
      }
    }
    return false
  }

  /// B11: swiftc merges functions that differ in a few constants. The merged one is nobody's: it has its symbol's name, and
  /// no place in the source that would be one of theirs.
  @Test func mergedFunctions() throws {
    let workshop = try Workshop()
    let kinds = ["Fruit", "Color", "Shape", "Metal"].map { name in
      """
      public final class \(name) {
        public var items: [String: Int] = [:]
        @inline(never) public func note(_ key: String, _ value: Int) -> Int {
          items[key, default: 0] += value
          print(key, value, items.count)
          return items.values.reduce(0, +)
        }
      }
      public enum \(name)Code: String, CaseIterable { case one = "\(name)1", two = "\(name)2", three }
      """
    }
    try workshop.write("merged.swift", kinds.joined(separator: "\n"))
    try workshop.write(
      "main.swift", "print(Fruit().note(\"a\", 1), Set(FruitCode.allCases), Set(ColorCode.allCases))\n")
    try workshop.run(
      "swiftc", "-O", "-wmo", "-g", "-module-cache-path", workshop.file("ModuleCache"), "-o", "merged", "merged.swift",
      "main.swift")
    let merged = try workshop.disassemble("merged").filter { $0.symbol.hasSuffix("Tm") && $0.symbol.hasPrefix("$s") }
    try #require(!merged.isEmpty, "nothing was merged")
    var checked: Set<String> = []
    for instruction in merged where checked.insert(instruction.symbol).inserted {
      let found = try functions(workshop, "merged", at: instruction.address)
      #expect(found.last?.rawFunction == instruction.symbol)
      #expect(found.last?.function?.isEmpty == false)
      #expect([nil, 0].contains(found.last?.line), "\(found)")
    }
  }

  /// Where a function was inlined, its own entry says; the line table at that address is of the inlined code.
  @Test(arguments: ["gcc", "clang"]) func callersLineIsThatOfTheCall(compiler: String) throws {
    let workshop = try Workshop()
    try workshop.write(
      "inline.h",
      """
      static inline __attribute__((always_inline)) int inner(int x) {
        return getchar() + x;
      }
      """)
    try workshop.write(
      "calls.c",
      """
      #include <stdio.h>
      #include "inline.h"
      int main(int argc, char **argv) {
        int sum = inner(argc);
        sum *= 3;
        return sum
          + inner(sum);
      }
      """)
    try workshop.run(compiler == "clang" ? try clang() : compiler, "-O2", "-g", "calls.c", "-o", "calls")
    let calls = try workshop.calls(in: "calls").filter { address in
      try functions(workshop, "calls", at: address).contains { $0.function == "inner" }
    }
    let lines = try calls.map { address in try functions(workshop, "calls", at: address).suffix(2).map(\.line) }
    #expect(Set(lines) == [[2, 4], [2, 7]])
    for address in calls {
      let files = try functions(workshop, "calls", at: address).suffix(2).map(\.file)
      #expect(files == [workshop.file("inline.h"), workshop.file("calls.c")])
    }
  }

  /// The symbol at an address is that of the outermost function, and never the name of one that was inlined into it.
  @Test(arguments: ["g++", "clang++"]) func symbolNamesNoInlinedFunction(compiler: String) throws {
    let workshop = try Workshop()
    try workshop.write(
      "local.cc",
      """
      #include <cstdio>
      namespace {
      inline __attribute__((always_inline)) int inner(int x) { return getchar() + x; }
      __attribute__((noinline)) int outer(int x) { return inner(x) * 2; }
      }
      int main(int argc, char **) { return outer(argc); }
      """)
    let tool = compiler == "clang++" ? try Workshop.locateToolchain(compiler) : compiler
    try workshop.run(tool, "-O1", "-g", "local.cc", "-o", "local")
    let address = try #require(
      try workshop.calls(in: "local").first { address in
        try functions(workshop, "local", at: address).contains { $0.rawFunction?.contains("outer") == true }
      })
    let found = try functions(workshop, "local", at: address).suffix(2)
    #expect(found.first?.rawFunction?.contains("inner") == true)
    #expect(found.first?.rawFunction?.contains("outer") == false)
    #expect(found.last?.function?.contains("outer(int)") == true)
  }

  /// What lies between functions is no function's: a symbol ends where its size says, and a sequence of lines where it says.
  @Test(arguments: [true, false]) func nothingBetweenFunctions(hasDebugInformation: Bool) throws {
    let workshop = try Workshop()
    try workshop.write(
      "gap.s",
      """
        .file 1 "gap.c"
        .text
        .globl first, main
        .type first, @function
        .type main, @function
      first:
        .loc 1 3
        nop
        ret
        .size first, .-first
        .fill 62, 1, 0xcc
        .section .text.later, "ax", @progbits
      main:
        .loc 1 9
        nop
        ret
        .size main, .-main
        .section .note.GNU-stack, "", @progbits

      """)
    try workshop.run("gcc", hasDebugInformation ? "-g" : "-g0", "gap.s", "-o", "gap")
    if !hasDebugInformation { try workshop.run("strip", "-g", "gap") }
    let code = try workshop.disassemble("gap")
    let first = try #require(code.first { $0.symbol == "first" }).address
    #expect(try functions(workshop, "gap", at: first).first?.function == "first")
    #expect(try functions(workshop, "gap", at: first + 1).first?.function == "first")
    for address in [first + 2, first + 40, first + 63] {
      #expect(try functions(workshop, "gap", at: address).allSatisfy { $0.function == nil })
    }
    guard hasDebugInformation else { return }
    let main = try #require(code.first { $0.symbol == "main" }).address
    #expect(try functions(workshop, "gap", at: first + 1).map(\.line) == [3])
    #expect(try functions(workshop, "gap", at: main).map(\.line) == [9])
    // Behind the end of the last sequence, but not behind the section.
    #expect(try functions(workshop, "gap", at: main + 2).allSatisfy { $0.line == nil })
  }

  /// A function with code below one that has neither a name nor code (llvm#54675, the shape of B9 in other languages).
  @Test func functionBelowANamelessOne() throws {
    let workshop = try Workshop()
    try workshop.write(
      "nameless.s",
      """
        .text
        .globl main
      main:
      .Lbegin:
        nop
        ret
      .Lend:
        .section .debug_abbrev, "", @progbits
      .Labbrev:
        .uleb128 1, 0x11
        .byte 1
        .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
        .uleb128 2, 0x2e
        .byte 1
        .uleb128 0, 0
        .uleb128 3, 0x2e
        .byte 0
        .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
        .byte 0
        .section .debug_info, "", @progbits
        .long .Lunit_end - .Lunit_start
      .Lunit_start:
        .value 4
        .long .Labbrev
        .byte 8
        .uleb128 1
        .quad .Lbegin, .Lend - .Lbegin
        .uleb128 2
        .uleb128 3
        .string "inner_function"
        .quad .Lbegin, .Lend - .Lbegin
        .byte 0, 0
      .Lunit_end:
        .section .note.GNU-stack, "", @progbits

      """)
    try workshop.run("gcc", "nameless.s", "-o", "nameless")
    let address = try #require(try workshop.disassemble("nameless").first { $0.symbol == "main" }).address
    #expect(try functions(workshop, "nameless", at: address).map(\.function) == ["inner_function"])
  }
}
