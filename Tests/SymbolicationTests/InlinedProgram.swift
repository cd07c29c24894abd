import CrashModel
import Foundation
import Testing

@testable import Symbolication

/// A program of a C and a C++ file with functions inlined into others, for tests that take its debug information apart.
struct InlinedProgram {
  enum Compiler: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case gcc, clang

    var testDescription: String { rawValue }

    func path(plusPlus: Bool) throws -> String {
      switch (self, plusPlus) {
      case (.gcc, false): "gcc"
      case (.gcc, true): "g++"
      case (.clang, false): try Workshop.locateToolchain("clang")
      case (.clang, true): try Workshop.locateToolchain("clang++")
      }
    }
  }

  /// What the frames at a call are called, innermost first, and where they are.
  struct Expectation {
    var callee: String
    var functions: [String]
    var lines: [Int]
    var files: [String]
  }

  static let expectations = [
    Expectation(callee: "abort", functions: ["inner", "main"], lines: [4, 7], files: ["main.c", "main.c"]),
    Expectation(
      callee: "exit", functions: ["helper", "check", "shop::Cart::sell"], lines: [1, 6, 8],
      files: ["helper.h", "cart.cc", "cart.cc"]),
  ]

  let workshop: Workshop
  let name: String
  /// For each expectation, where its call is.
  let addresses: [UInt64]

  /// - Parameter flags: of the compiler, for both files and the link.
  init(_ workshop: Workshop, name: String = "app", compiler: Compiler, flags: [String]) throws {
    self.workshop = workshop
    self.name = name
    try workshop.write(
      "main.c",
      """
      #include <stdlib.h>
      void sell(int);
      static inline __attribute__((always_inline)) void inner(int x) {
        if (x) abort();
      }
      int main(int argc, char **argv) {
        inner(argc);
        sell(argc);
        return 0;
      }

      """)
    try workshop.write(
      "helper.h", "static inline __attribute__((always_inline)) void helper(int x) { if (x == 1) exit(3); }\n")
    try workshop.write(
      "cart.cc",
      """
      #include <cstdlib>
      #include "helper.h"
      namespace shop {
      struct Cart { int n; __attribute__((noinline)) void sell(int); };
      static inline __attribute__((always_inline)) void check(int x) {
        helper(x);
      }
      void Cart::sell(int count) { n = count; check(count); }
      }
      extern "C" __attribute__((noinline)) void sell(int count) { shop::Cart cart; cart.sell(count); }

      """)
    let common = ["-O1", "-g"] + flags
    // In one step, so that a `.dwo` file lies beside its source and not in the compiler's temporary folder.
    for (source, object) in [("main.c", "\(name)-main.o"), ("cart.cc", "\(name)-cart.o")] {
      try workshop.run(
        try compiler.path(plusPlus: source == "cart.cc"), common + ["-c", source, "-o", object])
    }
    try workshop.run(
      try compiler.path(plusPlus: true),
      common + ["-Wl,--build-id=sha1", "\(name)-main.o", "\(name)-cart.o", "-o", name])
    addresses = try Self.expectations.map { try #require(try workshop.calls(in: name, to: $0.callee).first) }
  }

  var path: String { workshop.file(name) }

  func image(_ path: String? = nil) throws -> Image {
    Image(
      path: path ?? self.path, buildID: try workshop.buildID(of: self.path), address: Address(rawValue: 0x10000),
      size: 0x10000)
  }

  /// What a report with a frame at each of the calls becomes.
  func symbolicated(
    _ search: DebugFileSearch, image: Image? = nil, tables: AddressTables = AddressTables(use: .never)
  ) throws -> SymbolicatedReport {
    let frames = addresses.map { frame(0x10000 + $0) }
    return Symbolicator(search: search, nearestLines: false, tables: tables)
      .symbolicate(report(frames, image: try image ?? self.image()))
  }

  /// Records an issue for each frame that is not what the source says.
  func expectFullNames(_ result: SymbolicatedReport, sourceLocation: SourceLocation = #_sourceLocation) {
    let frames = result.report.threads[0].frames.compactMap(\.symbolicated)
    var rest = frames[...]
    for expected in Self.expectations {
      let found = rest.prefix(expected.functions.count)
      rest = rest.dropFirst(expected.functions.count)
      #expect(found.map(\.line) == expected.lines, sourceLocation: sourceLocation)
      #expect(found.map(\.file) == expected.files.map { workshop.file($0) }, sourceLocation: sourceLocation)
      #expect(found.count == expected.functions.count, sourceLocation: sourceLocation)
      for (name, frame) in zip(expected.functions, found) {
        // gcc gives functions that are local to a file no linkage name, and so no namespace.
        let function = frame.function?.split(separator: "(").first.map(String.init)
        #expect(
          function == name || function.map { name.hasSuffix("::" + $0) || $0.hasSuffix("::" + name) } == true,
          "\(frame.function ?? "nil")", sourceLocation: sourceLocation)
      }
    }
    #expect(rest.isEmpty, sourceLocation: sourceLocation)
    #expect(result.images.map(\.status) == [.debugInformation], sourceLocation: sourceLocation)
    #expect(result.images.flatMap(\.companionProblems).isEmpty, sourceLocation: sourceLocation)
  }

  /// Looks in what is given and nowhere else on this machine.
  static func search(
    files: [String] = [], directories: [String] = [], usesImagePaths: Bool = true, sysroot: String? = nil
  ) -> DebugFileSearch {
    DebugFileSearch(
      files: files, directories: directories, systemDirectory: nil, usesImagePaths: usesImagePaths, sysroot: sysroot)
  }
}

extension Workshop {
  func move(_ from: String, to: String) throws {
    try FileManager.default.createDirectory(
      atPath: (file(to) as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try FileManager.default.moveItem(atPath: file(from), toPath: file(to))
  }

  func copy(_ from: String, to: String) throws {
    try FileManager.default.createDirectory(
      atPath: (file(to) as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: file(from), toPath: file(to))
  }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: file(name)) }

  func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: file(name)))) }

  func write(_ name: String, bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: file(name))) }
}

/// What not every machine's tools can do; tests that need it are skipped with the reason.
enum Tools {
  static let llvmDwp = Workshop.exists("llvm-dwp")
  static let noLLVMDwp: Comment = "llvm-dwp is not installed: apt-get install llvm"
  static let gnuDwp = Workshop.exists("dwp")
  static let noGNUDwp: Comment = "dwp is not installed: apt-get install binutils"
  static let dwz = Workshop.exists("dwz")
  static let noDwz: Comment = "dwz is not installed: apt-get install dwz"
  static let xz = Workshop.exists("xz")
  static let noXz: Comment = "xz is not installed: apt-get install xz-utils"
  /// binutils learned zstd in 2.40.
  static let objcopyZstd = ((try? Workshop().run("objcopy", "--help")) ?? "").contains("zstd")
  static let noObjcopyZstd: Comment = "objcopy cannot compress with zstd here: binutils 2.40 can"
}
