import CLibdw
import CrashModel
import Foundation
import Testing

@testable import Symbolication

/// Stripped files with `.gnu_debugdata`, as Fedora and its relatives ship them.
@Suite(.enabled(if: Tools.xz, Tools.noXz)) struct MiniDebugInfoTests {
  private struct Program {
    let workshop: Workshop
    let addresses: [UInt64]

    /// `app` as built, `mini` as it would be shipped, `bare` the same without `.gnu_debugdata`.
    init() throws {
      let workshop = try Workshop()
      try workshop.write(
        "app.c",
        """
        #include <stdlib.h>
        static __attribute__((noinline)) void hidden(int x) { if (x) abort(); }
        __attribute__((visibility("default"), noinline)) void exported(int x) { hidden(x); if (x == 1) exit(x); }
        int main(int argc, char **argv) { exported(argc); return 0; }

        """)
      try workshop.run("gcc", "-g", "-O1", "-rdynamic", "-Wl,--build-id=sha1", "app.c", "-o", "app")
      // The recipe of the GDB manual: the symbols of functions that the dynamic table has not.
      let dynamic = Set(try Self.names(workshop.run("nm", "-D", "app", "--format=posix", "--defined-only")))
      let functions = try workshop.run("nm", "app", "--format=posix", "--defined-only").split(separator: "\n").filter {
        ["T", "t"].contains($0.split(separator: " ")[1])
      }
      try workshop.write(
        "keep",
        Self.names(functions.joined(separator: "\n")).filter { !dynamic.contains($0) }.map { $0 + "\n" }.joined())
      try workshop.run("objcopy", "--only-keep-debug", "app", "debug")
      try workshop.run("objcopy", "-S", "--remove-section", ".comment", "--keep-symbols=keep", "debug", "symbols")
      try workshop.run("strip", "--strip-all", "app", "-o", "bare")
      self.workshop = workshop
      addresses = try ["abort", "exit"].map { try #require(try workshop.calls(in: "app", to: $0).first) }
      try workshop.run("xz", "--keep", "symbols")
      try add("symbols.xz", to: "mini")
    }

    private static func names(_ text: String) -> [String] {
      text.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
    }

    func add(_ data: String, to name: String) throws {
      try workshop.run("objcopy", "--add-section", ".gnu_debugdata=" + data, "bare", name)
    }

    func symbolicated(_ name: String) throws -> SymbolicatedReport {
      let path = workshop.file(name)
      let image = Image(
        path: path, buildID: try workshop.buildID(of: path), address: Address(rawValue: 0x10000), size: 0x10000)
      return Symbolicator(search: InlinedProgram.search()).symbolicate(
        report(addresses.map { frame(0x10000 + $0) }, image: image))
    }
  }

  @Test func bothTablesTogether() throws {
    let program = try Program()
    let bare = try program.symbolicated("bare")
    #expect(bare.report.names == [nil, "exported"])
    #expect(bare.images[0].status == .dynamicSymbolsOnly(reason: nil))
    let result = try program.symbolicated("mini")
    // The one from `.gnu_debugdata`, the other from `.dynsym`.
    #expect(result.report.names == ["hidden", "exported"])
    #expect(result.images[0].status == .symbolsOnly(reason: nil))
    #expect(result.images[0].refusals.isEmpty)
    #expect(try DebugFile(path: program.workshop.file("mini")).hasMiniDebugInformation)
  }

  /// The whole symbol table elsewhere is better.
  @Test func fullTableWins() throws {
    let program = try Program()
    let image = Image(
      path: program.workshop.file("mini"), buildID: try program.workshop.buildID(of: program.workshop.file("mini")),
      address: Address(rawValue: 0x10000), size: 0x10000)
    let search = InlinedProgram.search(directories: [program.workshop.path])
    let found = search.files(for: image)
    #expect(found.symbols?.hasSymbolTable == true)
    #expect(found.debugInformation != nil)
  }

  /// The table of addresses says the same.
  @Test func tableHasThemToo() throws {
    let program = try Program()
    let path = program.workshop.file("mini")
    let symbolicator = Symbolicator(search: InlinedProgram.search(), tables: AddressTables(use: .always))
    let functions = try symbolicator.symbolize(file: path, addresses: program.addresses)
    #expect(functions.map { $0.functions.map(\.function) } == [["hidden"], ["exported"]])
  }

  @Test func whatCannotBeReadIsTold() throws {
    let program = try Program()
    let whole = try program.workshop.bytes("symbols.xz")
    try program.workshop.write("empty-elf", "no ELF file")
    try program.workshop.run("xz", "--keep", "empty-elf")
    for (name, bytes, part) in [
      ("text", Array("not xz at all".utf8), "is not compressed with xz"),
      ("cut", Array(whole.dropLast(whole.count / 2)), "is damaged or cut off"),
      ("other", try program.workshop.bytes("empty-elf.xz"), "holds no ELF file"),
    ] {
      try program.workshop.write("data-" + name, bytes: bytes)
      try program.add("data-" + name, to: name)
      let result = try program.symbolicated(name)
      #expect(result.report.names == [nil, "exported"])
      guard case .dynamicSymbolsOnly(let reason?) = result.images[0].status else {
        Issue.record("\(result.images[0].status)")
        continue
      }
      #expect(reason.hasPrefix(program.workshop.file(name)) && reason.contains(part), "\(reason)")
    }
  }

  /// Some kilobytes that grow to more than is allowed.
  @Test func growthIsBounded() throws {
    let program = try Program()
    try program.workshop.write("zeros", bytes: [UInt8](repeating: 0, count: 3 << 20))
    try program.workshop.run("xz", "zeros")
    let bytes = try program.workshop.bytes("zeros.xz")
    #expect(bytes.count < 10_000)
    bytes.withUnsafeBytes { bytes in
      let failure = #expect(throws: MiniDebugInformation.Failure.self) {
        try MiniDebugInformation.open(bytes, maximumSize: 1 << 20)
      }
      #expect(failure?.reason == ".gnu_debugdata grows to more than 1048576 bytes")
    }
  }
}
