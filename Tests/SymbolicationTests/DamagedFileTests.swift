import CLibdw
import CrashModel
import Foundation
import Testing

@testable import Symbolication

/// Files that are not what they say, cut off, or changed: an answer or a typed error, never a trap.
@Suite struct DamagedFileTests {
  private static let source = """
    #include <stdio.h>
    #include <stdlib.h>
    static inline __attribute__((always_inline)) int twice(int x) { if (x > 9) abort(); return printf("%d", x) * 2; }
    __attribute__((noinline)) int work(int x) { return twice(x) + twice(x + 1); }
    int main(int argc, char **argv) { return work(argc); }
    """

  private func error(_ path: String) -> DebugFileError? {
    do throws(DebugFileError) {
      _ = try DebugFile(path: path)
      return nil
    } catch {
      return error
    }
  }

  @Test func whatIsNoELFFile() throws {
    let workshop = try Workshop()
    #expect(error(workshop.file("none")) == .cannotOpen(path: workshop.file("none"), code: ENOENT))
    #expect(error(workshop.path) == .notRegular(path: workshop.path))
    #expect(mkfifo(workshop.file("pipe"), 0o600) == 0)
    #expect(error(workshop.file("pipe")) == .notRegular(path: workshop.file("pipe")))
    #expect(error("/dev/null") == .notRegular(path: "/dev/null"))
    #expect(error(try workshop.write("empty", "")) == .empty(path: workshop.file("empty")))
    #expect(error(try workshop.write("text", "hello")) == .notELF(path: workshop.file("text")))
    #expect(error(try workshop.write("archive", "!<arch>\n")) == .notELF(path: workshop.file("archive")))
    #expect(error(workshop.file("none"))?.description == "\(workshop.file("none")): no such file or directory")
  }

  @Test func otherArchitectures() throws {
    let workshop = try Workshop()
    try workshop.write("app.c", Self.source)
    try workshop.run("gcc", "-g", "-O1", "app.c", "-o", "app")
    let original = try Data(contentsOf: URL(fileURLWithPath: workshop.file("app")))
    for (machine, name) in [(243, "RISC-V"), (22, "S/390"), (40, "ARM")] {
      var changed = original
      changed[18] = UInt8(machine)
      try changed.write(to: URL(fileURLWithPath: workshop.file("changed")))
      guard case .unsupportedArchitecture(_, let detail)? = error(workshop.file("changed")) else {
        Issue.record("\(name): \(String(describing: error(workshop.file("changed"))))")
        continue
      }
      #expect(detail.hasPrefix("64-bit"))
      #expect(detail.contains(name))
    }
    var narrow = original
    narrow[4] = 1
    try narrow.write(to: URL(fileURLWithPath: workshop.file("changed")))
    #expect(error(workshop.file("changed")) != nil)
  }

  @Test(arguments: ["-gdwarf-4", "-gdwarf-5"])
  func cutAtManyLengths(version: String) throws {
    let workshop = try Workshop()
    try workshop.write("app.c", Self.source)
    try workshop.run("gcc", version, "-O1", "app.c", "-o", "app")
    let original = try Data(contentsOf: URL(fileURLWithPath: workshop.file("app")))
    let addresses = try workshop.calls(in: "app")
    for length in stride(from: 0, to: original.count, by: max(1, original.count / 400)) {
      try original.prefix(length).write(to: URL(fileURLWithPath: workshop.file("cut")))
      let symbolicator = Symbolicator(search: DebugFileSearch(systemDirectory: nil))
      do throws(DebugFileError) {
        _ = try symbolicator.symbolize(file: workshop.file("cut"), addresses: addresses)
        Issue.record("a file cut to \(length) of \(original.count) bytes was taken as whole")
      } catch {
        #expect(!error.reason.isEmpty)
      }
    }
  }

  /// Changed bytes in each of the sections that are read, with a fixed seed.
  @Test(arguments: ["-gdwarf-4", "-gdwarf-5"], ["gcc", "clang"])
  func changedBytes(version: String, compiler: String) throws {
    let workshop = try Workshop()
    try workshop.write("app.c", Self.source)
    try workshop.run(
      compiler == "clang" ? try Workshop.locateToolchain("clang") : compiler, version, "-O2", "app.c", "-o", "app")
    let original = try Data(contentsOf: URL(fileURLWithPath: workshop.file("app")))
    let addresses = try workshop.calls(in: "app")
    let file = try DebugFile(path: workshop.file("app"))
    var ranges = file.sections.all.filter {
      $0.hasContents && ($0.name.hasPrefix(".debug") || [".symtab", ".strtab", ".note.gnu.build-id"].contains($0.name))
    }.map { Int($0.header.sh_offset)..<Int($0.header.sh_offset + $0.header.sh_size) }
    ranges.append(0..<64)
    ranges.append(original.count - 64 * 36..<original.count)
    var state: UInt64 = 0x9e37_79b9_7f4a_7c15
    func random(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    for _ in 0..<600 {
      var changed = original
      for _ in 0...random(4) {
        let range = ranges[random(ranges.count)]
        changed[range.lowerBound + random(range.count)] = [0, 1, 0x7f, 0x80, 0xff, UInt8(random(256))][random(6)]
      }
      try changed.write(to: URL(fileURLWithPath: workshop.file("changed")))
      let symbolicator = Symbolicator(search: DebugFileSearch(systemDirectory: nil))
      do throws(DebugFileError) {
        let answers = try symbolicator.symbolize(file: workshop.file("changed"), addresses: addresses)
        #expect(answers.count == addresses.count)
      } catch {
        #expect(!error.description.isEmpty)
      }
    }
  }
}
