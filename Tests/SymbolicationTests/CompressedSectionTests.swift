import CLibdw
import CrashModel
import Foundation
import TestSupport
import Testing

@testable import Symbolication

/// Debug sections compressed by every method that tools write, and ones that lie about themselves.
@Suite struct CompressedSectionTests {
  typealias Compiler = InlinedProgram.Compiler

  /// `zlib-gnu` names its sections `.zdebug_…`.
  private static let methods = Tools.objcopyZstd ? ["zlib", "zlib-gnu", "zstd"] : ["zlib", "zlib-gnu"]

  @Test(.enabled(if: Tools.objcopyZstd, Tools.noObjcopyZstd)) func zstdIsCovered() {
    #expect(Self.methods.contains("zstd"))
  }

  /// All frames are those of the file that is not compressed.
  @Test(arguments: Compiler.allCases, ["4", "5"]) func everyMethod(compiler: Compiler, version: String) throws {
    let program = try InlinedProgram(try Workshop(), compiler: compiler, flags: ["-gdwarf-" + version])
    let workshop = program.workshop
    let calls = try workshop.calls(in: "app").sorted()
    let expected = try Symbolicator(search: InlinedProgram.search()).symbolize(
      file: program.path, addresses: calls)
    for method in Self.methods {
      try workshop.run("objcopy", "--compress-debug-sections=\(method)", "app", method)
      let sections = try workshop.run("readelf", "-S", "-W", method)
      #expect(method == "zlib-gnu" ? sections.contains(".zdebug_info") : sections.contains(" C "))
      program.expectFullNames(
        try program.symbolicated(InlinedProgram.search(), image: try program.image(workshop.file(method))))
      let found = try Symbolicator(search: InlinedProgram.search()).symbolize(
        file: workshop.file(method), addresses: calls)
      #expect(found == expected)
      // The sections say which method it was; the file has not changed otherwise.
      let file = try DebugFile(path: workshop.file(method))
      let compressed = try file.sections.all.compactMap { try CompressedSection($0) }
      #expect(compressed.contains { $0.plainName == ".debug_info" && $0.method == (method == "zstd" ? .zstd : .zlib) })
      withExtendedLifetime(file) {}
    }
  }

  /// A stripped program, its debug information in a file of its own, compressed; and an object file.
  @Test(arguments: methods) func separateAndRelocatable(method: String) throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: [])
    let workshop = program.workshop
    try workshop.run(
      "objcopy", "--only-keep-debug", "--compress-debug-sections=\(method)", "app", "debug/app.debug",
      expectingDirectory: "debug")
    try workshop.run("strip", "app")
    let search = InlinedProgram.search(directories: [workshop.file("debug")])
    program.expectFullNames(try program.symbolicated(search))

    try workshop.run("objcopy", "--compress-debug-sections=\(method)", "app-cart.o", "compressed.o")
    let calls = try workshop.calls(in: "app-cart.o").sorted()
    let plain = try Symbolicator(search: search).symbolize(file: workshop.file("app-cart.o"), addresses: calls)
    let compressed = try Symbolicator(search: search).symbolize(file: workshop.file("compressed.o"), addresses: calls)
    #expect(plain == compressed)
  }

  /// As one program may be linked from objects whose makers chose differently.
  @Test(.enabled(if: Tools.objcopyZstd, Tools.noObjcopyZstd)) func someSectionsOnly() throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: ["-gdwarf-5"])
    let workshop = program.workshop
    try workshop.run("objcopy", "--compress-debug-sections=zstd", "app", "zstd")
    let zstd = try DebugFile(path: workshop.file("zstd"))
    let plain = zstd.sections.all.filter { $0.name.hasPrefix(".debug_") && $0.header.sh_flags & 0x800 == 0 }
    // What would not become smaller stays as it is, so that both kinds are in one file.
    #expect(!plain.isEmpty)
    program.expectFullNames(
      try program.symbolicated(InlinedProgram.search(), image: try program.image(workshop.file("zstd"))))
  }

  // MARK: Lies

  /// The section's contents in the file, as a range of its bytes.
  private func place(of name: String, in file: DebugFile) throws -> Range<Int> {
    let section = try #require(file.sections[name])
    let start = Int(section.header.sh_offset)
    return start..<start + Int(section.header.sh_size)
  }

  private func expectReason(
    _ program: InlinedProgram, _ file: String, _ part: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let image = try program.image(program.workshop.file(file))
    let result = try program.symbolicated(InlinedProgram.search(), image: image)
    guard case .symbolsOnly(let reason?) = result.images[0].status else {
      Issue.record("\(result.images[0].status)", sourceLocation: sourceLocation)
      return
    }
    #expect(reason.contains(part), "\(reason)", sourceLocation: sourceLocation)
    // The symbol table still has the functions.
    #expect(result.report.names == ["main", "shop::Cart::sell(int)"], sourceLocation: sourceLocation)
  }

  @Test(arguments: methods) func headersThatLie(method: String) throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: [])
    let workshop = program.workshop
    try workshop.run("objcopy", "--compress-debug-sections=\(method)", "app", "true")
    let bytes = try workshop.bytes("true")
    let prefix = method == "zlib-gnu" ? ".zdebug_" : ".debug_"
    for section in [prefix + "info", prefix + "line"] {
      let file = try DebugFile(path: workshop.file("true"))
      let place = try place(of: section, in: file)
      let header = try #require(file.sections[section])
      let size = try #require(try CompressedSection(header)?.size)
      func lie(_ stated: UInt64) throws {
        var changed = bytes
        for byte in 0..<8 {
          // `.zdebug` has its size behind four letters and the other way round.
          let at = method == "zlib-gnu" ? place.lowerBound + 11 - byte : place.lowerBound + 8 + byte
          changed[at] = UInt8(truncatingIfNeeded: stated >> (8 * UInt64(byte)))
        }
        try workshop.write("lie", bytes: changed)
      }
      for stated in [UInt64.max, 1 << 62, 1 << 40, UInt64(place.count) * 2000] {
        try lie(stated)
        try expectReason(program, "lie", "\(section) claims to hold \(stated) bytes")
      }
      for stated in [size - 1, size + 1, size * 2] {
        try lie(UInt64(stated))
        try expectReason(program, "lie", section)
      }
    }
  }

  @Test(.enabled(if: Tools.objcopyZstd, Tools.noObjcopyZstd)) func methodsThatNobodyKnows() throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: [])
    try program.workshop.run("objcopy", "--compress-debug-sections=zstd", "app", "other")
    var bytes = try program.workshop.bytes("other")
    let place = try place(of: ".debug_info", in: try DebugFile(path: program.workshop.file("other")))
    bytes[place.lowerBound] = 9
    try program.workshop.write("other", bytes: bytes)
    try expectReason(program, "other", ".debug_info is compressed with method 9")
    // zlib's bytes under zstd's number, and the other way round.
    bytes[place.lowerBound] = 1
    try program.workshop.write("other", bytes: bytes)
    try expectReason(program, "other", ".debug_info cannot be decompressed (zlib")
  }

  /// Each section within its limit, and all together far above what there should be.
  @Test func sectionsAddUp() throws {
    let count = 6
    let image = try #require(
      ELFImage(
        machine: UInt16(EM_X86_64), type: UInt16(ET_DYN),
        sections: (0..<count).map { .init(name: $0 == 0 ? ".zdebug_info" : ".zdebug_\($0)", size: 1 << 20) }))
    for section in 0..<count {
      // "ZLIB", and a thousand times the section's own size.
      let header: [UInt8] = Array("ZLIB".utf8) + [0, 0, 0, 0, 0x3e, 0x80, 0, 0]
      image.contents(of: section).copyBytes(from: header)
    }
    let handle = try #require(ELFHandle(image.memory))
    let sections = try #require(ELFSections(handle.elf))
    let first = try #require(sections[".zdebug_info"])
    #expect(try CompressedSection(first)?.size == 0x3e80_0000)
    let problem = try #require(DebugSections.problem(in: sections))
    #expect(problem.contains("more than 4294967296 bytes"), "\(problem)")
    #expect(throws: CompressedSection.Failure.self) { try DebugSections(handle, sections) }
  }

  @Test(arguments: methods) func damagedBytesAreSurvived(method: String) throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: [])
    let workshop = program.workshop
    try workshop.run("objcopy", "--compress-debug-sections=\(method)", "app", "whole")
    let bytes = try workshop.bytes("whole")
    let file = try DebugFile(path: workshop.file("whole"))
    let places = file.sections.all.filter { $0.name.hasPrefix(".debug_") || $0.name.hasPrefix(".zdebug_") }.map {
      Int($0.header.sh_offset)..<Int($0.header.sh_offset + $0.header.sh_size)
    }.filter { !$0.isEmpty }
    var random = SeededGenerator(seed: 31_337)
    var reasons: Set<String> = []
    for _ in 0..<120 {
      var damaged = bytes
      let place = try #require(places.randomElement(using: &random))
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        damaged[Int.random(in: place, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      try workshop.write("damaged", bytes: damaged)
      let result = try program.symbolicated(
        InlinedProgram.search(), image: try program.image(workshop.file("damaged")))
      #expect(result.report.names.count >= 2)
      if case .symbolsOnly(let reason?) = result.images[0].status { reasons.insert(reason) }
    }
    #expect(!reasons.isEmpty)
  }
}

extension Workshop {
  @discardableResult
  func run(_ tool: String, _ arguments: String..., expectingDirectory directory: String) throws -> String {
    try FileManager.default.createDirectory(atPath: file(directory), withIntermediateDirectories: true)
    return try run(tool, arguments)
  }
}
