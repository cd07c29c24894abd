import Foundation
import TestSupport
import Testing

/// libunwind judges the interpreter of call frame information, over every function of the libraries that a Swift daemon
/// loads.
@Suite struct CFIOracleTests {
  @Test func sameRegistersAsLibunwind() throws {
    let directory = try TemporaryDirectory("oracle")
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let root = tests.deletingLastPathComponent().deletingLastPathComponent().path
    let program = "\(directory.path)/cfi_oracle"
    let sources = ["arch_x86_64", "cfi", "images", "record"].map { "\(root)/CCrashSupport/\($0).c" }
    let format = try FileManager.default.contentsOfDirectory(atPath: "\(root)/Sources/CCrashFormat")
      .filter { $0.hasSuffix(".c") }.map { "\(root)/Sources/CCrashFormat/\($0)" }
    let compiled = try ChildProcess(
      [
        "/usr/bin/env", "gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I\(root)/CCrashSupport",
        "-I\(root)/CCrashSupport/include", "-I\(root)/Sources/CCrashFormat/include",
        "\(tests.path)/Oracle/cfi_oracle.c",
      ] + sources + format + ["-lunwind", "-ldl", "-o", program]
    ).run()
    try #require(compiled.status == .exited(0), "\(compiled.errorText)")

    // The runtime's libraries lie beside the one that this test itself runs on.
    let maps = String(decoding: contents(of: "/proc/self/maps") ?? [], as: UTF8.self)
    let core = try #require(
      maps.split(separator: "\n").compactMap { line in
        line.firstIndex(of: "/").map { String(line[$0...]) }
      }.first { $0.hasSuffix("/libswiftCore.so") })
    let folder = String(core.dropLast("/libswiftCore.so".count))
    let libraries = ["libswiftCore", "libswift_Concurrency", "libdispatch", "libFoundation"].map {
      "\(folder)/\($0).so"
    }
    let outcome = try ChildProcess([program] + libraries + ["libstdc++.so.6"], directory: directory.path).run()
    #expect(outcome.status == .exited(0), "\(outcome.text)\(outcome.errorText)")

    let words = outcome.text.split(whereSeparator: \.isWhitespace)
    func figure(_ name: String) throws -> Int {
      let index = try #require(words.firstIndex { $0 == name })
      return try #require(Int(words[index + 1]))
    }
    #expect(try figure("functions") > 50_000)
    #expect(try figure("agree") > figure("compared") * 9 / 10)
    #expect(try figure("explained") < 10)
  }
}
