import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// `--sysroot`: the report's paths are those of a container.
@Suite(.enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed")) struct SysrootFlagTests {
  @Test func imagesOfAContainer() throws {
    let program = try DebuginfodTests.Program()
    let root = program.folder.path + "/root"
    for folder in ["/opt/service", "/usr/lib/debug/.build-id/" + program.buildID.prefix(2)] {
      try FileManager.default.createDirectory(atPath: root + folder, withIntermediateDirectories: true)
    }
    try FileManager.default.moveItem(atPath: program.folder.path + "/program", toPath: root + "/opt/service/program")
    try FileManager.default.moveItem(
      atPath: program.served + "/program.debug",
      toPath: "\(root)/usr/lib/debug/.build-id/\(program.buildID.prefix(2))/\(program.buildID.dropFirst(2)).debug")
    var report = program.report
    report.images[0].path = "/opt/service/program"

    let named = try program.symbolicate(["--sysroot", root], reports: [report])
    #expect(named.status == .exited(0), "\(named.errorText)")
    #expect(named.text.contains(#""function":"inner""#) && named.text.contains(#""declaration_line":2"#))
    let groups = try SymbolicateTool.run("group", "--sysroot", root, "-", input: report.json())
    #expect(groups.status == .exited(0) && groups.text.contains("inner"), "\(groups.text)")

    let without = try program.symbolicate(reports: [report])
    #expect(without.status == .exited(1) && without.errorText.contains("no file for /opt/service/program"))
    // A root that is none is told, as every directory that was given.
    let wrong = try program.symbolicate(["--sysroot", root + "/no"], reports: [report])
    #expect(wrong.status == .exited(1) && wrong.errorText.contains(root + "/no"), "\(wrong.errorText)")
    #expect(try program.symbolicate(["--sysroot", ""], reports: [report]).status == .exited(64))
  }
}
