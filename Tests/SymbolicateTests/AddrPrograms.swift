import CrashModel
import Foundation
import TestSupport
import Testing

/// Programs whose addresses are asked for, each with the addresses of its own functions' instructions.
struct AddrPrograms {
  let folder: TemporaryDirectory
  /// Inlined functions, two deep.
  let c: String
  /// Members, templates, functions of the file.
  let cpp: String

  init() throws {
    folder = try TemporaryDirectory("addr")
    let cSource = try folder.file("prog.c", Array(Self.cSource.utf8))
    let cppSource = try folder.file("prog.cpp", Array(Self.cppSource.utf8))
    (c, cpp) = (folder.path + "/c", folder.path + "/cpp")
    try Self.run(["/usr/bin/gcc", "-O2", "-g", "-Wl,--build-id", "-o", c, cSource])
    try Self.run(["/usr/bin/g++", "-O0", "-g", "-Wl,--build-id", "-o", cpp, cppSource])
  }

  @discardableResult
  static func run(_ arguments: [String], input: String = "") throws -> String {
    var process = ChildProcess(arguments)
    process.input = Array(input.utf8)
    let outcome = try process.run()
    try #require(outcome.status == .exited(0), "\(arguments): \(outcome.errorText)")
    return outcome.text
  }

  /// Of every instruction of the named functions; of all functions without names. Not of what fills the space behind them,
  /// of which the files say nothing.
  static func addresses(in program: String, functions: [String] = []) throws -> [UInt64] {
    var label = ""
    var result: [UInt64] = []
    for line in try run(["/usr/bin/env", "objdump", "-d", "-w", "--no-show-raw-insn", program]).split(separator: "\n") {
      if line.hasSuffix(">:"), let open = line.firstIndex(of: "<") {
        label = String(line[line.index(after: open)...].dropLast(2))
        continue
      }
      let parts = line.split(separator: "\t", maxSplits: 1)
      guard parts.count == 2, let address = Hex.value(parts[0].dropLast().drop { $0 == " " }) else { continue }
      let isFiller = parts[1].contains("nop") || parts[1].hasPrefix("xchg   %ax,%ax")
      if !isFiller, functions.isEmpty || functions.contains(where: label.contains) { result.append(address) }
    }
    return result
  }

  static func address(of function: String, in program: String) throws -> UInt64 {
    let symbols = try run(["/usr/bin/env", "nm", program]).split(separator: "\n").map { $0.split(separator: " ") }
    return try #require(symbols.first { $0.last.map(String.init) == function }.flatMap { Hex.value($0[0]) })
  }

  static func lines(_ addresses: [UInt64]) -> String {
    addresses.map { Hex.prefixed($0) + "\n" }.joined()
  }

  private static let cSource = """
    #include <stdio.h>
    static inline __attribute__((always_inline)) int leaf(int x) { return x * getchar(); }
    static inline __attribute__((always_inline)) int middle(int x) {
      int y = leaf(x + 1);
      return y + leaf(x);
    }
    __attribute__((noinline)) static int outer(int x) { return middle(x) * 3; }
    __attribute__((noinline)) int total(int n) {
      int sum = 0;
      for (int i = 0; i < n; i++) {
        if (i & 1) sum += outer(i); else sum -= middle(i);
      }
      return sum;
    }
    int main(int argc, char **argv) { (void)argv; return total(argc); }

    """
  static let cFunctions = ["outer", "total"]

  private static let cppSource = """
    #include <cstdio>
    #include <string>
    namespace shop {
    struct Order { int cents; std::string name; int price(int factor) const; };
    int Order::price(int factor) const { return cents * factor + (int)name.size(); }
    template <typename T> T most(T a, T b) { return a > b ? a : b + getchar(); }
    }
    static int helper(int x) { return shop::most<int>(x, 3); }
    int main(int argc, char **argv) { shop::Order o{argc, argv[0]}; return o.price(2) + helper(argc); }

    """
  static let cppFunctions = ["price", "most", "helper", "main"]
}
