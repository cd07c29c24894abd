import Foundation
import TestSupport
import Testing

/// libunwind judges the interpreter of call frame information, over every program and library of the machine: twenty
/// functions of each here, all of them with `make oracle`.
@Suite struct CFIOracleTests {
  @Test func sameRegistersAsLibunwind() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().path
    var oracle = ChildProcess(["\(root)/Tests/cfi-oracle", "--functions", "20"])
    oracle.limit = 1200
    let outcome = try oracle.run()
    let lines = outcome.text.split(separator: "\n")
    let differing = lines.filter { $0.hasPrefix("  /") || $0.hasPrefix("cfi_oracle: ") }.joined(separator: "\n")
    #expect(outcome.status == .exited(0), "\(differing)\(outcome.errorText)")
    for library in ["libc.so.6", "libstdc++.so", "libswiftCore.so", "libswift_Concurrency.so", "libFoundation.so"] {
      #expect(lines.contains { $0.contains("/\(library)") }, "\(library) is not among the files")
    }

    let words = try #require(lines.last).split(separator: " ")
    func figure(_ name: String) throws -> Int {
      let index = try #require(words.firstIndex { $0 == name })
      return try #require(Int(words[index + 1]))
    }
    #expect(try figure("files") > 100 && figure("steps") > 10_000)
    #expect(try figure("agree") > figure("steps") * 8 / 10)
    #expect(try figure("explained") < 10)
    #expect(try figure("differ") == 0 && figure("failed") == 0)
  }
}
