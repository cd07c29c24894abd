import CrashModel
import Foundation
import TestSupport
import Testing

@testable import Symbolication

/// Debug information that `dwz -m` moved to a file which several programs share.
@Suite(.enabled(if: Tools.dwz, Tools.noDwz)) struct SupplementaryFileTests {
  typealias Compiler = InlinedProgram.Compiler

  /// dwz 0.15 takes no `DW_FORM_strx`, which clang writes in DWARF 5.
  private static let kinds: [(Compiler, String)] = [(.gcc, "4"), (.gcc, "5"), (.clang, "4")]

  /// Two programs of the same sources, so that there is something to share; the first one is looked at.
  private func program(
    _ compiler: Compiler = .gcc, _ version: String = "5", dwz: [String] = [], shared: String = "shared"
  ) throws -> InlinedProgram {
    let program = try InlinedProgram(try Workshop(), compiler: compiler, flags: ["-gdwarf-" + version])
    let workshop = program.workshop
    try workshop.run(
      try compiler.path(plusPlus: true), "-g", "-Wl,--build-id=sha1", "-Wl,-z,now", "app-main.o", "app-cart.o", "-o",
      "other")
    try workshop.run("dwz", dwz + ["-m", shared, "app", "other"])
    #expect(try DebugFile(path: program.path).alternateLink != nil)
    return program
  }

  @Test(arguments: kinds) func besideTheFile(compiler: Compiler, version: String) throws {
    let program = try program(compiler, version)
    #expect(try DebugFile(path: program.path).alternateLink?.path == "shared")
    program.expectFullNames(try program.symbolicated(InlinedProgram.search()))
    let tables = AddressTables(use: .always)
    program.expectFullNames(try program.symbolicated(InlinedProgram.search(), tables: tables))
  }

  /// libdw 0.188 looks the references up in the wrong file, and names functions by whatever is there.
  @Test func dwarf5sOwnWayIsRefused() throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: ["-gdwarf-5"])
    try program.workshop.run(
      "g++", "-g", "-Wl,--build-id=sha1", "-Wl,-z,now", "app-main.o", "app-cart.o", "-o", "other")
    try program.workshop.run("dwz", "-5", "-m", "shared", "app", "other")
    #expect(try program.workshop.run("readelf", "-S", "-W", "app").contains(".debug_sup"))
    let result = try program.symbolicated(InlinedProgram.search())
    guard case .symbolsOnly(let reason?) = result.images[0].status else {
      Issue.record("\(result.images[0].status)")
      return
    }
    #expect(reason.contains(".debug_sup") && reason.contains("dwz without -5"))
    #expect(result.report.names == ["main", "shop::Cart::sell(int)"])
  }

  /// The link's path counts from the directory of the file, also of one behind a symbolic link.
  @Test func byTheLinksPath() throws {
    let program = try program(dwz: ["-M", "../common/.dwz/shared"])
    let workshop = program.workshop
    try workshop.move("shared", to: "common/.dwz/shared")
    try workshop.move("app", to: "bin/app")
    let id = try workshop.buildID(of: workshop.file("bin/app"))
    func image(_ name: String) -> Image {
      Image(path: workshop.file(name), buildID: id, address: Address(rawValue: 0x10000), size: 0x10000)
    }
    program.expectFullNames(try program.symbolicated(InlinedProgram.search(), image: image("bin/app")))
    try FileManager.default.createDirectory(atPath: workshop.file("a/b/c"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: workshop.file("a/b/c/run"), withDestinationPath: workshop.file("bin/app"))
    program.expectFullNames(try program.symbolicated(InlinedProgram.search(), image: image("a/b/c/run")))
  }

  @Test(arguments: ["path", "build-id", "deep", "given"]) func wherever(place: String) throws {
    let program = try program(dwz: ["-M", "/nowhere/.dwz/shared"])
    let workshop = program.workshop
    let id = try workshop.buildID(of: workshop.file("shared")).description
    switch place {
    case "path": try workshop.move("shared", to: "debug/nowhere/.dwz/shared")
    case "build-id": try workshop.move("shared", to: "debug/.build-id/\(id.prefix(2))/\(id.dropFirst(2)).debug")
    case "deep": try workshop.move("shared", to: "debug/some/where/else")
    default: try workshop.move("shared", to: "given")
    }
    let search =
      place == "given"
      ? InlinedProgram.search(files: [workshop.file("given")])
      : InlinedProgram.search(directories: [workshop.file("debug")])
    program.expectFullNames(try program.symbolicated(search))
    #expect(search.givenFiles.isEmpty)
    // The system's tree.
    if place == "build-id" {
      let system = DebugFileSearch(systemDirectory: workshop.file("debug"))
      program.expectFullNames(try program.symbolicated(system))
    }
  }

  @Test func compressedToo() throws {
    let program = try program()
    for name in ["app", "shared"] {
      try program.workshop.run("objcopy", "--compress-debug-sections=\(Tools.objcopyZstd ? "zstd" : "zlib")", name)
    }
    program.expectFullNames(try program.symbolicated(InlinedProgram.search()))
  }

  /// At the link's path lies the shared file of another build: its strings would be any strings.
  @Test(arguments: kinds) func otherBuildIsNotUsed(compiler: Compiler, version: String) throws {
    let program = try program(compiler, version)
    let other = try self.program(compiler, version, shared: "shared2")
    try program.workshop.write("shared", bytes: [])
    try program.workshop.remove("shared")
    var bytes = try other.workshop.bytes("shared2")
    let id = try #require(try DebugFile(path: other.workshop.file("shared2")).buildID)
    let start = try #require(
      (0..<bytes.count - id.bytes.count).first { Array(bytes[$0..<$0 + id.bytes.count]) == Array(id.bytes) })
    bytes[start] ^= 0xff
    try program.workshop.write("shared", bytes: bytes)
    let result = try program.symbolicated(InlinedProgram.search(), tables: AddressTables(use: .always))
    let problem = try #require(result.images[0].companionProblems.first)
    #expect(problem.contains("\(program.workshop.file("shared")) (has build id "), "\(problem)")
    expectWithoutShared(result)
  }

  @Test(arguments: kinds) func missingIsToldWithThePlaces(compiler: Compiler, version: String) throws {
    let program = try program(compiler, version)
    try program.workshop.remove("shared")
    let result = try program.symbolicated(InlinedProgram.search(directories: [program.workshop.file("debug")]))
    let problem = try #require(result.images[0].companionProblems.first)
    #expect(problem.contains("shares debug information with shared (build id "), "\(problem)")
    #expect(problem.contains(program.workshop.file("shared")), "\(problem)")
    #expect(problem.contains(program.workshop.file("debug/.build-id/")), "\(problem)")
    expectWithoutShared(result)
  }

  /// Names that are only in the shared file are missing; none is wrong, and lines are there.
  private func expectWithoutShared(_ result: SymbolicatedReport) {
    #expect(result.images[0].status == .debugInformation)
    let names: Set<String> = [
      "inner", "main", "helper", "helper(int)", "check", "shop::check(int)", "shop::Cart::sell(int)",
      "shop::Cart::sell", "sell",
    ]
    for case let name? in result.report.names { #expect(names.contains(name), "\(name)") }
    #expect(result.report.names.contains("main"))
    #expect(result.report.threads[0].frames.first?.symbolicated?.line == 4)
  }

  @Test func damagedFilesAreSurvived() throws {
    let program = try program()
    let bytes = try program.workshop.bytes("shared")
    var random = SeededGenerator(seed: 4_711)
    for round in 0..<90 {
      var damaged = bytes
      if round % 3 == 0 {
        damaged.removeLast(Int.random(in: 1..<bytes.count, using: &random))
      } else {
        for _ in 0..<Int.random(in: 1...20, using: &random) {
          damaged[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
      }
      try program.workshop.write("shared", bytes: damaged)
      #expect(try program.symbolicated(InlinedProgram.search()).report.names.count >= 2)
    }
  }
}
