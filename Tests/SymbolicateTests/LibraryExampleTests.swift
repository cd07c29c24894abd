import CrashModel
import Foundation
import TestSupport
import Testing

/// The program of `samples/library`, which `docs/output-formats.md` shows.
struct LibraryExampleTests {
  @Test func theShownProgramRuns() throws {
    let program = try BuiltProgram()
    let report = try program.folder.file("crash.json", try program.report(place: "/nowhere/program").json())
    let folder = URL(fileURLWithPath: SymbolicateTool.path).deletingLastPathComponent()
    let outcome = try ChildProcess([folder.appendingPathComponent("library-example").path, report, program.folder.path])
      .run()
    #expect(outcome.status == .exited(0), "\(outcome.errorText)")
    #expect(outcome.text.hasPrefix("## `SIGSEGV` in `inner`\n"), "\(outcome.text)")
    #expect(outcome.text.contains("- Stack hash: `") && outcome.text.contains("(dwarf)`"))
    #expect(outcome.text.contains("outer in program at ") && outcome.text.contains("sources/program.c:2"))
  }

  @Test func thePageShowsIt() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().path
    let source = String(decoding: try #require(contents(of: root + "/samples/library/main.swift")), as: UTF8.self)
    let page = String(decoding: try #require(contents(of: root + "/docs/output-formats.md")), as: UTF8.self)
    #expect(page.contains("```swift\n\(source)```\n"))
  }
}
