import CrashModel
import Foundation
import Symbolication
import Testing

/// Shapes that compilers and linkers give debug information, each of which a reader somewhere gets wrong.
@Suite struct CompilerTests {
  private let exact = Symbolicator(search: DebugFileSearch(systemDirectory: nil), nearestLines: false)

  private func compiler(_ name: String) throws -> String {
    name == "clang" ? try Workshop.locateToolchain("clang") : try Workshop.locate(name)
  }

  /// The linker drops `dead` and leaves its debug information at address 0, from where its size reaches over live code.
  @Test(arguments: ["gcc", "clang"], ["-gdwarf-4", "-gdwarf-5"])
  func droppedFunctionDoesNotNameLiveCode(compiler name: String, version: String) throws {
    let workshop = try Workshop()
    try workshop.write("main.c", "#include <stdlib.h>\nvoid work(void);\nint main(void) { work(); abort(); }\n")
    try workshop.write(
      "lib.c",
      """
      #include <stdio.h>
      void dead(void) { __asm__ volatile(".skip 0x8000"); }
      __attribute__((noinline)) void work(void) {
        puts("work");
        puts("again");
      }
      """)
    try workshop.run(
      try compiler(name), "-O1", "-g", version, "-ffunction-sections", "-Wl,--gc-sections", "lib.c", "main.c", "-o",
      "gc")
    // Otherwise the test would show nothing.
    #expect(try workshop.run("readelf", "--debug-dump=info", "gc").contains("dead"))
    for (callee, function, file, line) in [("puts", "work", "lib.c", 4), ("abort", "main", "main.c", 3)] {
      let address = try #require(try workshop.calls(in: "gc", to: callee).first)
      #expect(address < 0x8000)
      let resolved = try exact.symbolize(file: workshop.file("gc"), addresses: [address])
      #expect(resolved[0].functions.map(\.function) == [function])
      #expect(resolved[0].functions.first?.file == workshop.file(file))
      #expect(resolved[0].functions.first?.line == line)
    }
  }

  /// An inlined function in two pieces, the second in a cold part: a list of ranges, indexed in DWARF 5 (`rnglistx`).
  @Test(arguments: ["gcc", "clang"], ["-gdwarf-4", "-gdwarf-5"])
  func inlinedFunctionInSeveralPieces(compiler name: String, version: String) throws {
    let workshop = try Workshop()
    try workshop.write(
      "rx.c",
      """
      #include <stdio.h>
      __attribute__((cold, noinline)) void complain(int x) { fprintf(stderr, "%d", x); }
      static inline __attribute__((always_inline)) int check(int x) {
        if (__builtin_expect(x > 100, 0))
          complain(x);
        return x + getchar();
      }
      int main(int argc, char **argv) {
        int sum = 0;
        for (int i = 0; i < argc; i++)
          sum += check(argc * i);
        return sum;
      }
      """)
    try workshop.run(try compiler(name), "-O2", "-g", version, "rx.c", "-o", "rx")
    for (callee, line) in [("complain", 5), ("getc", 6)] {
      let calls =
        try workshop.calls(in: "rx", to: callee) + (callee == "getc" ? workshop.calls(in: "rx", to: "getchar") : [])
      let address = try #require(calls.first)
      let functions = try exact.symbolize(file: workshop.file("rx"), addresses: [address])[0].functions
      // glibc's own inline `getchar` may stand in front.
      let ours = functions.suffix(2)
      #expect(ours.map(\.function) == ["check", "main"])
      #expect(ours.map(\.line) == [line, 11])
      #expect(ours.map(\.inlined) == [true, false])
      #expect(ours.map(\.declarationLine) == [3, 8])
    }
  }

  /// Two names at one address: the debug information knows which one was written.
  @Test func aliasGetsTheNameOfTheSource() throws {
    let workshop = try Workshop()
    try workshop.write(
      "al.c",
      """
      #include <stdio.h>
      __attribute__((noinline)) void foo(void) { puts("foo"); puts("x"); }
      void aaa(void) __attribute__((alias("foo")));
      int main(void) { foo(); aaa(); return 0; }
      """)
    try workshop.run("gcc", "-O1", "-g", "al.c", "-o", "al")
    let address = try #require(try workshop.calls(in: "al", to: "puts").first)
    #expect(
      try exact.symbolize(file: workshop.file("al"), addresses: [address])[0].functions.map(\.function) == ["foo"])
  }

  /// A call that never returns is the last instruction: the return address belongs to the next function.
  @Test func lastCallOfAFunctionThatNeverReturns() throws {
    let workshop = try Workshop()
    try workshop.write(
      "nr.c",
      """
      #include <stdlib.h>
      __attribute__((noinline, noreturn)) void die(int x) { exit(x); }
      __attribute__((noinline, noreturn)) void caller(int x) { die(x + 1); }
      __attribute__((noinline, aligned(1))) int next(int x) { return x * 3; }
      int main(int c, char **v) { if (next(c) > 100) caller(c); return 0; }
      """)
    try workshop.run("gcc", "-O1", "-g", "-fno-toplevel-reorder", "-falign-functions=1", "nr.c", "-o", "nr")
    let returnAddress = try #require(
      try workshop.disassemble("nr").first { $0.symbol == "caller" && $0.text.contains("<die>") }
    ).next
    let image = Image(
      path: workshop.file("nr"), buildID: try workshop.buildID(of: workshop.file("nr")),
      address: Address(rawValue: 0x5555_0000_0000), size: 0x10000)
    let base = image.address.rawValue
    let result = exact.symbolicate(
      report(
        [frame(base + returnAddress, .returnAddress), frame(base + returnAddress, .programCounter)], image: image))
    #expect(result.report.names == ["caller", "next"])
    #expect(result.report.threads[0].frames.first?.symbolicated?.line == 3)
    // What is looked up differs, what was captured does not.
    #expect(
      result.report.threads[0].frames.compactMap { $0.captured?.address.rawValue } == [
        base + returnAddress, base + returnAddress,
      ])
  }

  /// gcc moves unlikely code to a symbol `hot.cold`; the function is still `hot`.
  @Test func coldPartIsTheFunction() throws {
    let workshop = try Workshop()
    try workshop.write(
      "cold.c",
      """
      #include <stdlib.h>
      #include <stdio.h>
      __attribute__((cold, noinline)) void complain(const char *text) { puts(text); }
      __attribute__((noinline)) int hot(int n, char **v) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
          if (!v[i]) {
            complain("bad");
            abort();
          }
          sum += v[i][0];
        }
        return sum;
      }
      int main(int argc, char **argv) { return hot(argc, argv); }
      """)
    try workshop.run("gcc", "-O2", "-g", "cold.c", "-o", "cold")
    let call = try #require(
      try workshop.disassemble("cold").first { $0.text.hasPrefix("call") && $0.text.contains("<abort@") })
    #expect(call.symbol == "hot.cold")
    let function = try #require(
      try exact.symbolize(file: workshop.file("cold"), addresses: [call.next - 1])[0].functions.first)
    #expect(function.function == "hot")
    #expect(function.line == 9)
  }

  /// lld gives code another distance in memory than in the file.
  @Test func addressesAreNotFileOffsets() throws {
    let workshop = try Workshop()
    try workshop.write("lay.c", "#include <stdlib.h>\nint main(void) {\n  abort();\n}\n")
    try workshop.run(try compiler("clang"), "-O1", "-g", "-fuse-ld=lld", "lay.c", "-o", "lay")
    let call = try #require(try workshop.calls(in: "lay", to: "abort").first)
    let image = Image(
      path: workshop.file("lay"), buildID: BuildID(bytes: []), address: Address(rawValue: 0x7f00_0000_0000),
      size: 0x10000)
    let result = exact.symbolicate(report([frame(0x7f00_0000_0000 + call)], image: image))
    #expect(result.report.names == ["main"])
    #expect(result.report.threads[0].frames[0].symbolicated?.line == 3)
  }

  /// An executable at a fixed address, by an image that does not say where it begins.
  @Test func executableAtAFixedAddress() throws {
    let workshop = try Workshop()
    try workshop.write("fixed.c", "#include <stdlib.h>\nint main(void) {\n  abort();\n}\n")
    try workshop.run("gcc", "-no-pie", "-O1", "-g", "fixed.c", "-o", "fixed")
    let call = try #require(try workshop.calls(in: "fixed", to: "abort").first)
    #expect(call > 0x400000)
    #expect(try DebugFile(path: workshop.file("fixed")).firstVirtualAddress == 0x400000)
    for first: UInt64 in [0, 0x400000] {
      let image = Image(
        path: workshop.file("fixed"), buildID: try workshop.buildID(of: workshop.file("fixed")),
        address: Address(rawValue: 0x400000), size: 0x10000, firstVirtualAddress: first)
      #expect(exact.symbolicate(report([frame(call)], image: image)).report.names == ["main"])
    }
  }

  @Test(arguments: ["4", "5"])
  func splitDebugInformation(version: String) throws {
    let workshop = try Workshop()
    try workshop.write(
      "split.c",
      """
      #include <stdlib.h>
      static inline __attribute__((always_inline)) void inner(int x) {
        if (x) abort();
      }
      int main(int argc, char **argv) {
        inner(argc);
        return 0;
      }
      """)
    try workshop.run("gcc", "-O1", "-gdwarf-" + version, "-gsplit-dwarf", "split.c", "-o", "split")
    let call = try #require(try workshop.calls(in: "split", to: "abort").first)
    let functions = try exact.symbolize(file: workshop.file("split"), addresses: [call])[0].functions
    #expect(functions.map(\.function) == ["inner", "main"])
    #expect(functions.map(\.line) == [3, 6])
    #expect(functions.map(\.file) == [workshop.file("split.c"), workshop.file("split.c")])
  }

  /// Paths are joined with the directory of the compilation and have no `..`.
  @Test(arguments: ["gcc", "clang"], ["-gdwarf-4", "-gdwarf-5"])
  func pathsAreWholeAndPlain(compiler name: String, version: String) throws {
    let workshop = try Workshop()
    try workshop.write("include/h.h", "static inline __attribute__((always_inline)) void inner(void) { abort(); }\n")
    try workshop.write("src/p.c", "#include <stdlib.h>\n#include \"../include//h.h\"\nint main(void) { inner(); }\n")
    try workshop.run(try compiler(name), "-O1", "-g", version, "./src/../src/p.c", "-o", "p")
    let call = try #require(try workshop.calls(in: "p", to: "abort").first)
    let functions = try exact.symbolize(file: workshop.file("p"), addresses: [call])[0].functions
    #expect(functions.map(\.file) == [workshop.file("include/h.h"), workshop.file("src/p.c")])
  }

  /// C++ functions that are local to a file have no linkage name in gcc's debug information.
  @Test func fileLocalCPlusPlusFunctionGetsItsQualifiedName() throws {
    let workshop = try Workshop()
    try workshop.write(
      "local.cc",
      """
      #include <cstdlib>
      namespace shop {
      static __attribute__((noinline)) void sell(int count) { if (count) abort(); }
      }
      int main(int argc, char **) { shop::sell(argc); }
      """)
    try workshop.run("g++", "-O1", "-g", "local.cc", "-o", "local")
    let call = try #require(try workshop.calls(in: "local", to: "abort").first)
    let function = try #require(try exact.symbolize(file: workshop.file("local"), addresses: [call])[0].functions.last)
    #expect(function.rawFunction?.hasPrefix("_ZN4shopL4sellEi") == true)
    #expect(function.function?.hasPrefix("shop::sell(int)") == true)
    #expect(function.line == 3)
  }

  /// Without debug information the symbol table has the name, and a stub has none of its neighbour's.
  @Test func symbolTableAlone() throws {
    let workshop = try Workshop()
    try workshop.write(
      "sym.c",
      "#include <stdlib.h>\n__attribute__((noinline)) void work(int x) { if (x) abort(); }\n"
        + "int main(int c, char **v) { work(c); return 0; }\n")
    try workshop.run("gcc", "-O1", "sym.c", "-rdynamic", "-o", "sym")
    try workshop.run("strip", "sym", "-o", "dynamic")
    let call = try #require(try workshop.calls(in: "sym", to: "abort").first)
    for file in ["sym", "dynamic"] {
      let functions = try exact.symbolize(file: workshop.file(file), addresses: [call])[0].functions
      #expect(functions.map(\.function) == ["work"])
      #expect(functions.first?.hasDebugInformation == false)
      #expect(functions.first?.line == nil)
    }
    let stub = try #require(try workshop.disassemble("sym").first { $0.symbol == "abort@plt" })
    #expect(try exact.symbolize(file: workshop.file("sym"), addresses: [stub.address])[0].functions.isEmpty)
    #expect(try exact.symbolize(file: workshop.file("sym"), addresses: [0, 1, .max])[0].functions.isEmpty)
  }
}
