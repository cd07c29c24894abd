import CrashModel
import Foundation
import TestSupport
import Testing

@testable import Symbolication

/// Split debug information: `.dwo` files wherever they may lie, packages of them, and wrong ones.
@Suite struct SplitDwarfTests {
  typealias Compiler = InlinedProgram.Compiler

  private static let versions = ["4", "5"]

  private func program(_ compiler: Compiler = .gcc, _ version: String = "5", flags: [String] = []) throws
    -> InlinedProgram
  {
    let program = try InlinedProgram(
      try Workshop(), compiler: compiler, flags: ["-gdwarf-\(version)", "-gsplit-dwarf"] + flags)
    #expect(access(program.workshop.file("app-main.dwo"), F_OK) == 0)
    return program
  }

  private static let halves = ["app-main.dwo", "app-cart.dwo"]

  /// Where the compiler put them.
  @Test(arguments: Compiler.allCases, versions) func inTheCompilationDirectory(compiler: Compiler, version: String)
    throws
  {
    let program = try program(compiler, version)
    let elsewhere = program.workshop.file("elsewhere/app")
    try program.workshop.copy("app", to: "elsewhere/app")
    program.expectFullNames(
      try program.symbolicated(InlinedProgram.search(), image: try program.image(elsewhere)))
  }

  @Test(arguments: Compiler.allCases, versions) func besideTheProgram(compiler: Compiler, version: String) throws {
    let program = try program(compiler, version)
    for name in ["app"] + Self.halves { try program.workshop.move(name, to: "moved/" + name) }
    let image = Image(
      path: program.workshop.file("moved/app"),
      buildID: try program.workshop.buildID(of: program.workshop.file("moved/app")),
      address: Address(rawValue: 0x10000), size: 0x10000)
    program.expectFullNames(try program.symbolicated(InlinedProgram.search(), image: image))
  }

  @Test(arguments: ["debug", "debug/deep/er"], versions) func inAGivenDirectory(place: String, version: String) throws {
    let program = try program(.gcc, version)
    for name in Self.halves { try program.workshop.move(name, to: place + "/" + name) }
    let without = try program.symbolicated(InlinedProgram.search())
    #expect(without.images[0].companionProblems.count == 1)
    program.expectFullNames(
      try program.symbolicated(InlinedProgram.search(directories: [program.workshop.file("debug")])))
  }

  @Test func givenByName() throws {
    let program = try program()
    for name in Self.halves { try program.workshop.move(name, to: "given/" + name) }
    let search = InlinedProgram.search(files: Self.halves.map { program.workshop.file("given/" + $0) })
    program.expectFullNames(try program.symbolicated(search))
    // They are of no image, and yet not given in vain.
    #expect(search.givenFiles.isEmpty)
    #expect(search.unreadableFiles.isEmpty)
  }

  /// Of many files of one name, that of this compilation.
  @Test func amongNamesakes() throws {
    let program = try program()
    try program.workshop.write("other.c", "int other(int x) { return x; }\n")
    try program.workshop.run("gcc", "-g", "-gsplit-dwarf", "-c", "other.c", "-o", "other.o")
    for number in 0..<40 { try program.workshop.copy("other.dwo", to: "debug/\(number)/app-main.dwo") }
    // The end of the path is that of the compilation, as it is where a whole build was moved.
    let build = (program.workshop.path as NSString).lastPathComponent
    for name in Self.halves { try program.workshop.move(name, to: "debug/x/\(build)/\(name)") }
    program.expectFullNames(
      try program.symbolicated(InlinedProgram.search(directories: [program.workshop.file("debug")])))
  }

  /// GNU's own ends in a segmentation fault with DWARF 5.
  @Test(.enabled(if: Tools.gnuDwp, Tools.noGNUDwp), arguments: Compiler.allCases)
  func packageOfBinutils(compiler: Compiler) throws { try checkPackage(compiler, "4", tool: "dwp") }

  @Test(.enabled(if: Tools.llvmDwp, Tools.noLLVMDwp), arguments: Compiler.allCases, versions)
  func packageOfLLVM(compiler: Compiler, version: String) throws {
    try checkPackage(compiler, version, tool: "llvm-dwp")
  }

  private func checkPackage(_ compiler: Compiler, _ version: String, tool: String) throws {
    let program = try program(compiler, version)
    try program.workshop.run(tool, "-e", "app", "-o", "app.dwp")
    for name in Self.halves { try program.workshop.remove(name) }
    program.expectFullNames(try program.symbolicated(InlinedProgram.search()))

    try program.workshop.move("app.dwp", to: "debug/deep/app.dwp")
    let without = try program.symbolicated(InlinedProgram.search())
    #expect(without.images[0].companionProblems.first?.contains("app-main.dwo") == true)
    program.expectFullNames(
      try program.symbolicated(InlinedProgram.search(directories: [program.workshop.file("debug")])))
    program.expectFullNames(
      try program.symbolicated(InlinedProgram.search(files: [program.workshop.file("debug/deep/app.dwp")])))

    // The package of `app` is also that of the debug file that was made from it.
    try program.workshop.run("objcopy", "--only-keep-debug", "app", "app.debug")
    try program.workshop.move("debug/deep/app.dwp", to: "symbols/app.dwp")
    try program.workshop.move("app.debug", to: "symbols/app.debug")
    let image = try program.image("/nowhere/app")
    program.expectFullNames(
      try program.symbolicated(InlinedProgram.search(files: [program.workshop.file("symbols/app.debug")]), image: image)
    )
  }

  @Test(.enabled(if: Tools.objcopyZstd, Tools.noObjcopyZstd), arguments: ["zlib", "zstd"])
  func compressed(method: String) throws {
    let program = try program()
    for name in Self.halves { try program.workshop.run("objcopy", "--compress-debug-sections=\(method)", name) }
    #expect(try program.workshop.run("readelf", "-S", "-W", "app-main.dwo").contains(" C "))
    program.expectFullNames(try program.symbolicated(InlinedProgram.search()))
  }

  /// libdw, left alone, would look for the files itself: of the wrong id, at places that were not asked for.
  @Test(.enabled(if: Workshop.exists("strace"), "strace is not installed")) func eachFileIsOpenedByUsAlone() throws {
    let program = try program()
    let probe = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent("symbolize-probe").path
    let input = program.addresses.map { Hex.prefixed($0) + "\n" }.joined()
    let output = try program.workshop.run(
      "strace", "-f", "-o", "trace", "-e", "trace=openat,open", probe, program.path, input: input)
    #expect(output.contains("inner"))
    let calls = try String(contentsOfFile: program.workshop.file("trace"), encoding: .utf8).split(separator: "\n")
    for name in Self.halves { #expect(calls.count { $0.contains("/" + name) } == 1, "\(name)") }
  }

  /// The place is right and the file is of another compilation: its names would be wrong.
  @Test(arguments: versions) func otherCompilationIsNotUsed(version: String) throws {
    let program = try program(.gcc, version)
    try program.workshop.write(
      "main.c", "#include <stdlib.h>\nvoid wrong(int x) { if (x) abort(); }\nint main(void) { wrong(1); return 0; }\n")
    try program.workshop.run(
      "gcc", "-O1", "-g", "-gdwarf-\(version)", "-gsplit-dwarf", "-c", "main.c", "-o", "app-main.o")
    let result = try program.symbolicated(InlinedProgram.search())
    #expect(!result.report.names.contains("wrong"))
    // The lines are those of the program itself.
    #expect(result.report.threads[0].frames.first?.symbolicated?.line == 4)
    let problem = try #require(result.images[0].companionProblems.first)
    #expect(problem.contains("app-main.dwo (is of another compilation)"), "\(problem)")
  }

  @Test func missingOnesAreToldWithThePlaces() throws {
    let program = try program()
    for name in Self.halves { try program.workshop.remove(name) }
    let result = try program.symbolicated(
      InlinedProgram.search(directories: [program.workshop.file("debug")]), tables: AddressTables(use: .always))
    #expect(result.images[0].status == .debugInformation)
    let problem = try #require(result.images[0].companionProblems.first)
    for part in ["2 units", program.workshop.file("app-main.dwo"), program.workshop.file("debug/app-main.dwo")] {
      #expect(problem.contains(part), "\(problem)")
    }
    // The symbol table has the outermost function, the line table the line.
    #expect(result.report.names == ["main", "shop::Cart::sell(int)"])
    #expect(result.report.threads[0].frames.map { $0.symbolicated?.line } == [4, 1])
  }

  /// clang can leave the inlined functions in the program as well; then they are named without the other file.
  @Test(arguments: versions) func skeletonsWithInlinedFunctions(version: String) throws {
    let program = try program(.clang, version, flags: ["-fsplit-dwarf-inlining"])
    program.expectFullNames(try program.symbolicated(InlinedProgram.search()))
    for name in Self.halves { try program.workshop.remove(name) }
    let result = try program.symbolicated(InlinedProgram.search())
    #expect(result.report.names == ["inner", "main", "helper", "check", "sell"])
    #expect(result.report.threads[0].frames.map { $0.symbolicated?.line } == [4, 7, 1, 6, 8])
    #expect(result.images[0].companionProblems.count == 1)
  }

  /// A table is kept; one that lacks what was not found would hide it when it is there.
  @Test func tableIsMadeOnlyFromAllParts() throws {
    let program = try program()
    let cache = AddressTableCache(directory: program.workshop.file("cache"))
    let tables = AddressTables(use: .always, cache: cache)
    for name in Self.halves { try program.workshop.move(name, to: "away/" + name) }
    #expect(try program.symbolicated(InlinedProgram.search(), tables: tables).report.names.count == 2)
    for name in Self.halves { try program.workshop.move("away/" + name, to: name) }
    program.expectFullNames(try program.symbolicated(InlinedProgram.search(), tables: tables))
    for name in Self.halves { try program.workshop.remove(name) }
    // Now the table has it all.
    program.expectFullNames(try program.symbolicated(InlinedProgram.search(), tables: tables))
  }

  /// swiftc and `clang -gmodules` name compiled modules where split units have their file.
  @Test func compiledModulesAreNotOpened() throws {
    let program = try program(.gcc, "4")
    var bytes = try program.workshop.bytes("app")
    // `app-main.dwo` becomes `app-mai.pcm`, in place.
    let old = Array("app-main.dwo".utf8)
    let new = Array("app-mai.pcm\0".utf8)
    var changed = 0
    for start in 0..<bytes.count - old.count where Array(bytes[start..<start + old.count]) == old {
      bytes.replaceSubrange(start..<start + old.count, with: new)
      changed += 1
    }
    #expect(changed > 0)
    try program.workshop.write("app", bytes: bytes)
    // Even one that would be the right one.
    try program.workshop.move("app-main.dwo", to: "app-mai.pcm")
    let result = try program.symbolicated(InlinedProgram.search())
    #expect(result.report.names.first == "main")
    #expect(!result.report.names.contains("inner"))
  }

  /// Whatever the bytes are: an answer, and no trap.
  @Test(.enabled(if: Tools.llvmDwp, Tools.noLLVMDwp), arguments: versions)
  func damagedFilesAreSurvived(version: String) throws {
    let program = try program(.gcc, version)
    try program.workshop.run("llvm-dwp", "-e", "app", "-o", "app.dwp.whole")
    let search = InlinedProgram.search()
    var random = SeededGenerator(seed: 20_261)
    for (whole, target) in [("app.dwp.whole", "app.dwp"), ("app-cart.dwo", "app-cart.dwo")] {
      let bytes = try program.workshop.bytes(whole)
      var named = 0
      for round in 0..<60 {
        var damaged = bytes
        if round % 3 == 0 {
          damaged.removeLast(Int.random(in: 1..<bytes.count, using: &random))
        } else {
          for _ in 0..<Int.random(in: 1...40, using: &random) {
            damaged[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
          }
        }
        try program.workshop.write(target, bytes: damaged)
        let result = try program.symbolicated(search)
        #expect(result.report.names.count >= 2)
        named += result.report.names.count
      }
      #expect(named > 120)
      try program.workshop.write(target, bytes: bytes)
    }
  }

  /// The index alone: every length, and tables that claim to be larger than they are.
  @Test func damagedIndexIsRefused() throws {
    let words: [UInt32] = [5, 1, 1, 2, 7, 0, 0, 0, 1, 0, 1, 0, 8]
    let bytes = words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * UInt32($0))) } }
    try bytes.withUnsafeBytes { whole in
      let index = try #require(PackageIndex(whole))
      let section = UnsafeRawBufferPointer(rebasing: whole[..<8])
      let none = UnsafeRawBufferPointer(start: nil, count: 0)
      let sections = SplitUnit.Sections(
        info: section, abbreviations: none, lines: none, stringOffsets: none, rangeLists: none, strings: none)
      #expect(index.parts(of: 7, in: sections) == nil)
      for length in 0..<whole.count { #expect(PackageIndex(UnsafeRawBufferPointer(rebasing: whole[..<length])) == nil) }
    }
    for (word, value) in [(0, 3), (1, 17), (1, UInt32.max), (2, .max), (3, .max), (3, 3), (3, 0)] as [(Int, UInt32)] {
      var changed = bytes
      for byte in 0..<4 { changed[word * 4 + byte] = UInt8(truncatingIfNeeded: value >> (8 * UInt32(byte))) }
      changed.withUnsafeBytes { #expect(PackageIndex($0) == nil) }
    }
  }
}
