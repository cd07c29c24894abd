import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Symbolication

/// Files that were damaged, or made to do harm, read in a process of its own: whatever they do there, each gets an answer or
/// a reason, and the next one is read.
@Suite struct HostileFileTests {
  static let cPlusPlus = """
    #include <algorithm>
    #include <cstdio>
    #include <vector>
    namespace { struct Order { int cents; }; }
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
      for (int i = 0; i < argc; i++) orders.push_back({i});
      return total(orders);
    }
    """

  static let swift = """
    @inline(never) func pick(_ list: [Int], _ index: Int) -> Int { list[index] &+ list.map { $0 &* index }.count }
    @inline(never) func each(_ list: [Int], _ body: (Int) -> Void) { for item in list { body(item) } }
    each([1, 2]) { item in each([item]) { print(pick([$0, item], CommandLine.arguments.count)) } }
    """

  /// What the runner said.
  private struct Run {
    var answered = 0
    var refused: [String] = []
    var ended: [String] = []

    init(_ output: String) throws {
      var counts: [Int] = []
      for line in output.split(separator: "\n") {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        switch fields[0] {
        case "done": counts = fields.dropFirst().compactMap { Int($0) }
        default:
          try #require(fields.count >= 3)
          if fields[1] == "ended" { ended.append(fields[2]) } else { refused.append(fields[2]) }
        }
      }
      try #require(counts.count == 3)
      answered = counts[0]
      #expect(counts[1] == refused.count)
      #expect(counts[2] == ended.count)
    }

    var total: Int { answered + refused.count + ended.count }
  }

  private static var runner: String {
    URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent("HostileFileRunner").path
  }

  private func run(_ workshop: Workshop, _ file: String, _ arguments: [String], addresses: [UInt64]) throws -> Run {
    try FileManager.default.createDirectory(atPath: workshop.file("variants"), withIntermediateDirectories: true)
    let input = addresses.map { Hex.prefixed($0) + "\n" }.joined()
    return try Run(
      workshop.run(Self.runner, [workshop.file(file), workshop.file("variants")] + arguments, input: input))
  }

  enum Program: String, CaseIterable, CustomTestStringConvertible {
    case gcc, clang, compressed, swift
    var testDescription: String { rawValue }

    func build(in workshop: Workshop) throws {
      switch self {
      case .swift:
        try workshop.write("p.swift", HostileFileTests.swift)
        try workshop.run(
          "swiftc", "-O", "-g", "-module-cache-path", workshop.file("ModuleCache"), "-o", "p", "p.swift")
      case .gcc, .clang, .compressed:
        try workshop.write("p.cpp", HostileFileTests.cPlusPlus)
        let tool = self == .clang ? try Workshop.locateToolchain("clang++") : "g++"
        let options = self == .compressed ? ["-gdwarf-4", "-gz=zlib"] : ["-gdwarf-5"]
        try workshop.run(tool, ["-O2"] + options + ["p.cpp", "-o", "p"])
      }
    }
  }

  /// Headers, sections of debug information, symbols and notes, with one to five places changed in each file; half of the
  /// files are made into a table, the others are asked without one.
  @Test(arguments: Program.allCases, [false, true])
  func changedBytes(program: Program, usesTables: Bool) throws {
    let workshop = try Workshop()
    try program.build(in: workshop)
    let calls = try workshop.calls(in: "p")
    let addresses = stride(from: 0, to: calls.count, by: max(1, calls.count / 16)).map { calls[$0] }
    let whole = try run(workshop, "p", ["1", "1", "none"], addresses: addresses)
    #expect(whole.answered == 1)
    let count = 350
    let result = try run(
      workshop, "p", ["\(count)", usesTables ? "20261" : "20262", "flip"] + (usesTables ? ["--tables"] : []),
      addresses: addresses)
    check(result, count)
    // Otherwise nothing behind the headers was read. What is compressed ends at the first byte that is changed in it.
    #expect(result.answered > (program == .compressed ? count / 5 : count / 2))
    #expect(!result.refused.isEmpty)
  }

  @Test func cutFiles() throws {
    let workshop = try Workshop()
    try Program.gcc.build(in: workshop)
    let result = try run(workshop, "p", ["300", "5", "cut"], addresses: try workshop.calls(in: "p"))
    check(result, 300)
    #expect(result.answered == 0)
  }

  /// Every file has its answer or its reason; what ended a reader was not a check of our own code.
  private func check(_ run: Run, _ count: Int) {
    #expect(run.total == count)
    #expect((run.refused + run.ended).allSatisfy { !$0.isEmpty })
    // A trap of Swift's is SIGILL on x86-64 and SIGTRAP on aarch64; its fatal errors on strings end in SIGABRT, too.
    for reason in run.ended {
      #expect(!["SIGILL", "SIGTRAP"].contains { reason.contains($0) }, "\(reason)")
    }
    if !run.ended.isEmpty { print("\(run.ended.count) of \(count) files ended a reader: \(Set(run.ended).sorted())") }
  }

  // MARK: Made to do harm

  /// `main` at the file's start, in a unit that says what `entries` say.
  private func assemble(_ workshop: Workshop, _ name: String, abbreviations: String, entries: String, line: String = "")
    throws
  {
    try workshop.write(
      name + ".s",
      """
        .text
        .globl main
        .type main, @function
      main:
      .Lbegin:
        ret
        .fill 8191, 1, 0x90
      .Lend:
        .size main, .-main
        .section .debug_abbrev, "", @progbits
      .Labbrev:
        .uleb128 1, 0x11
        .byte 1
        .uleb128 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0
      \(abbreviations)
        .byte 0
        .section .debug_info, "", @progbits
      .Lunit:
        .long .Lunit_end - .Lunit_start
      .Lunit_start:
        .value 4
        .long .Labbrev
        .byte 8
        .uleb128 1
        .long .Lline
        .quad .Lbegin, .Lend - .Lbegin
      \(entries)
        .byte 0
      .Lunit_end:
        .section .debug_line, "", @progbits
      .Lline:
      \(line)
        .section .note.GNU-stack, "", @progbits

      """)
    try workshop.run("gcc", "-pie", name + ".s", "-o", name)
  }

  private func start(of file: String, _ workshop: Workshop) throws -> UInt64 {
    try #require(try workshop.disassemble(file).first { $0.symbol == "main" }).address
  }

  /// Copies that refer to each other in a circle, and to themselves.
  @Test func circleOfOrigins() throws {
    let workshop = try Workshop()
    try assemble(
      workshop, "circle",
      abbreviations: """
          .uleb128 2, 0x2e
          .byte 1
          .uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0
          .uleb128 3, 0x1d
          .byte 0
          .uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0
          .uleb128 4, 0x2e
          .byte 0
          .uleb128 0x47, 0x13, 0, 0
        """,
      entries: """
        .La:
          .uleb128 2
          .long .Lb - .Lunit
          .quad .Lbegin, .Lend - .Lbegin
        .Lc:
          .uleb128 3
          .long .Lc - .Lunit
          .quad .Lbegin, 16
          .byte 0
        .Lb:
          .uleb128 4
          .long .La - .Lunit
        """)
    for options in [[], ["--tables"]] {
      let result = try run(
        workshop, "circle", ["1", "1", "none"] + options, addresses: [try start(of: "circle", workshop)])
      #expect(result.answered == 1)
    }
  }

  /// A hundred thousand inlined functions, each in the one before.
  @Test func deepNesting() throws {
    let workshop = try Workshop()
    try assemble(
      workshop, "deep",
      abbreviations: """
          .uleb128 2, 0x1d
          .byte 1
          .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
          .uleb128 3, 0x2e
          .byte 1
          .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
        """,
      entries: """
          .uleb128 3
          .quad .Lbegin, .Lend - .Lbegin
          .rept 100000
          .uleb128 2
          .quad .Lbegin, .Lend - .Lbegin
          .endr
          .fill 100001, 1, 0
        """)
    let address = try start(of: "deep", workshop)
    for options in [[], ["--tables"]] {
      let result = try run(workshop, "deep", ["1", "1", "none"] + options, addresses: [address, address + 1])
      #expect(result.answered == 1, "\(result)")
    }
    let functions = try Symbolicator(search: DebugFileSearch(systemDirectory: nil)).symbolize(
      file: workshop.file("deep"), addresses: [address])[0].functions
    #expect(functions.count <= 2_001)
  }

  /// Numbers that are longer than any, wherever one is expected.
  @Test func endlessNumbers() throws {
    let workshop = try Workshop()
    let long = "  .fill 4000, 1, 0x80\n  .byte 1\n"
    try assemble(
      workshop, "numbers",
      abbreviations: """
          .uleb128 2, 0x2e
          .byte 0
          .uleb128 0x3a, 0x0f, 0x11, 0x01, 0x12, 0x0f, 0x03, 0x08, 0, 0
        """ + "\n" + long,
      entries: "  .uleb128 2\n" + long + "  .quad .Lbegin\n" + long + "  .string \"f\"",
      line: "  .long 5000\n  .value 4\n  .long 20\n  .byte 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1\n"
        + "  .byte 0, 0, 2\n" + long)
    let result = try run(
      workshop, "numbers", ["1", "1", "none"], addresses: [try start(of: "numbers", workshop)])
    #expect(result.total == 1)
    #expect(result.ended.isEmpty)
  }

  /// A line program of `size` operations that do nothing, run once for each of `units` units.
  private func buildSlowFile(_ workshop: Workshop, units: Int, operation: Int, size: Int) throws {
    try workshop.write(
      "slow.s",
      """
        .text
        .globl main
        .type main, @function
      main:
      .Lbegin:
        ret
        .fill \(units * 16 - 1), 1, 0x90
        .size main, .-main
        .section .debug_abbrev, "", @progbits
      .Labbrev:
        .uleb128 1, 0x11
        .byte 0
        .uleb128 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0
        .byte 0
        .section .debug_info, "", @progbits
        .set .Lat, .Lbegin
        .rept \(units)
        .long 2 + 4 + 1 + 1 + 4 + 16
        .value 4
        .long .Labbrev
        .byte 8
        .uleb128 1
        .long .Lline
        .quad .Lat, 16
        .set .Lat, .Lat + 16
        .endr
        .section .debug_line, "", @progbits
      .Lline:
        .long .Lline_end - .Lline_start
      .Lline_start:
        .value 4
        .long .Lprogram - .Lheader
      .Lheader:
        .byte 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0
        .string "a.c"
        .byte 0, 0, 0, 0
      .Lprogram:
        .byte 0, 9, 2
        .quad .Lbegin
        .fill \(size), 1, \(operation)
        .byte 0, 1, 1
      .Lline_end:
        .section .note.GNU-stack, "", @progbits

      """)
    try workshop.run("gcc", "-pie", "slow.s", "-o", "slow")
  }

  @Test func takesTooLong() throws {
    let workshop = try Workshop()
    // Opcode 6: a row may be a breakpoint or not. 20,000 times 4 MB.
    try buildSlowFile(workshop, units: 20_000, operation: 6, size: 4_000_000)
    let address = try start(of: "slow", workshop)
    let result = try run(
      workshop, "slow", ["2", "1", "none", "--seconds", "1", "--tables"], addresses: [address, address + 16])
    // The second time it is not read again, and the symbols are still there.
    #expect(result.ended.count == 2)
    #expect(result.ended.allSatisfy { $0.contains("s of processor time") })
  }

  @Test func takesTooMuchMemory() throws {
    let workshop = try Workshop()
    // Special opcodes, each of which makes a row at an address of its own.
    try buildSlowFile(workshop, units: 1, operation: 0x2e, size: 4_000_000)
    let result = try run(
      workshop, "slow", ["1", "1", "none", "--memory", "\(60 << 20)"], addresses: [try start(of: "slow", workshop)])
    #expect(result.ended.count == 1)
    #expect(result.ended.first?.contains("took more memory than the 60 MiB that it may") == true, "\(result)")
  }

  /// Names that would lead a demangler far down; they are made readable in the process that asks.
  @Test func namesWithoutAnEnd() {
    let long = 65_000
    for name in [
      "$s4main1fyySi" + String(repeating: "Sg", count: long / 2) + "F",
      "$s" + String(repeating: "y", count: long), "$s" + String(repeating: "4main", count: long / 5),
      "_T" + String(repeating: "F", count: long), "_Tt" + String(repeating: "GSq", count: long / 3),
      "_TtT" + String(repeating: "T", count: long), "_Z" + String(repeating: "P", count: long) + "i",
      "_Z1f" + String(repeating: "P", count: long) + "i", "_ZN" + String(repeating: "1a", count: long / 2) + "E",
      "_Z1f" + String(repeating: "I", count: long), "_Z1fIX" + String(repeating: "ad", count: long / 2),
      "_ZN" + String(repeating: "S", count: long), "_R" + String(repeating: "N", count: long),
      "$s" + String(repeating: "x_q_", count: long / 4) + "t", "$s4main1fyy" + String(repeating: "c", count: long),
    ] {
      #expect(!FunctionName.display(name).isEmpty)
    }
  }
}
