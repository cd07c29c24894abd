import CrashFormats
import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

struct SourceReaderTests {
  private func frame(_ file: String, _ line: Int) -> SymbolicatedFrame {
    SymbolicatedFrame(
      captured: CapturedFrame(kind: .programCounter, address: Address(rawValue: 1)), status: .resolved, file: file,
      line: line)
  }

  private func tree() throws -> TemporaryDirectory {
    let folder = try TemporaryDirectory("sources")
    try FileManager.default.createDirectory(atPath: folder.path + "/Sources/app", withIntermediateDirectories: true)
    try write(Array("one\ntwo\r\n\tthree\nfour".utf8), to: folder.path + "/Sources/app/main.swift")
    return folder
  }

  @Test func theEndOfThePathIsLookedFor() throws {
    let folder = try tree()
    let source = SourceReader(contextLines: 1, roots: [folder.path])
    for path in ["/build/x/Sources/app/main.swift", "Sources/app/main.swift", "/Sources//app/main.swift"] {
      let window = try #require(source.window(for: frame(path, 2)), "\(path)")
      #expect(window.firstLine == 1 && window.lines == ["one", "two", "\tthree"] && window.line == 2)
    }
    #expect(source.window(for: frame("/x/Sources/app/main.swift", 4))?.lines == ["\tthree", "four"])
    #expect(source.problems.isEmpty)
    // Without roots the path is the compiler's.
    let direct = SourceReader(contextLines: 0)
    #expect(direct.window(for: frame(folder.path + "/Sources/app/main.swift", 1))?.lines == ["one"])
  }

  @Test func whatIsMissingIsSaidOnce() throws {
    let folder = try tree()
    let source = SourceReader(contextLines: 1, roots: [folder.path])
    for _ in 0..<3 {
      #expect(source.window(for: frame("/x/gone.swift", 1)) == nil)
      #expect(source.window(for: frame("/x/Sources/app/main.swift", 99)) == nil)
      #expect(source.window(for: frame("<compiler-generated>", 1)) == nil)
      #expect(source.window(for: frame("/x/Sources/app/main.swift", 0)) == nil)
    }
    #expect(source.problems.count == 2)
    #expect(source.problems[0].contains("not found below \(folder.path)"))
    #expect(source.problems[1].contains("has 4 lines, and line 99 was wanted"))
  }

  /// A report may come from anybody, and so may the paths in it.
  @Test func nothingElseIsRead() throws {
    let folder = try tree()
    #expect(mkfifo(folder.path + "/pipe.swift", 0o600) == 0)
    #expect(mkdir(folder.path + "/folder.swift", 0o700) == 0)
    #expect(symlink("/dev/zero", folder.path + "/zero.swift") == 0)
    try write([UInt8](repeating: 10, count: (16 << 20) + 1), to: folder.path + "/large.swift")
    let source = SourceReader(contextLines: 1, roots: [folder.path])
    let direct = SourceReader(contextLines: 1)
    for name in ["pipe.swift", "folder.swift", "zero.swift", "large.swift"] {
      #expect(source.window(for: frame("/x/\(name)", 1)) == nil, "\(name)")
      #expect(direct.window(for: frame(folder.path + "/\(name)", 1)) == nil, "\(name)")
    }
    for path in ["/etc/passwd", "/x/../Sources/app/main.swift", "/etc/hosts", ".swift", "/a\u{0}.swift", "main.swift"] {
      #expect(direct.window(for: frame(path, 1)) == nil, "\(path)")
    }
    #expect(source.problems.count == 4 && direct.problems.count == 10, "\(direct.problems)")
    // A path made to cost look-ups.
    #expect(source.window(for: frame(String(repeating: "/a", count: 100_000) + ".swift", 1)) == nil)
  }

  @Test func bytesThatAreNoText() throws {
    let folder = try tree()
    try write([0xFF, 0x1B, 0x5B, 0x0A] + Array(repeating: 0x61, count: 1_000_000), to: folder.path + "/a.c")
    let source = SourceReader(contextLines: 9, roots: [folder.path])
    let window = try #require(source.window(for: frame("a.c", 2)))
    #expect(window.lines.count == 2 && window.lines[1].count <= 400)
    var report = sampleReport()
    report.threads[0].frames = [.symbolicated(frame("a.c", 1))]
    for scalar in TextReportWriter().text(of: report, source: source).unicodeScalars where scalar != "\n" {
      #expect(scalar.value >= 0x20)
    }
  }

  @Test func theMarkStandsBelowTheColumn() throws {
    let folder = try TemporaryDirectory("sources")
    try write(Array("\tlet 日本 = call(1)\n".utf8), to: folder.path + "/a.swift")
    let source = SourceReader(contextLines: 3, roots: [folder.path])
    var report = sampleReport()
    var place = frame("/x/a.swift", 1)
    // Behind a tab, and three bytes for each of two characters that take two cells.
    place.column = 15
    report.threads[0].frames = [.symbolicated(place)]
    let text = TextReportWriter().text(of: report, source: source)
    #expect(text.contains("    * 1|     let 日本 = call(1)\n       |                ^\n"), "\(text)")
  }
}
