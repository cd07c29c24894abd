import CrashModel
import Foundation
import Testing

@testable import Symbolication

/// Images of a container, whose file system lies in a directory here.
@Suite struct SysrootTests {
  /// `root/opt/service/app` stripped, with a debug link to `app.debug`, which `place` says where to put.
  private func program(debugFile place: String?) throws -> InlinedProgram {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: [])
    let workshop = program.workshop
    try workshop.run("objcopy", "--only-keep-debug", "app", "app.debug")
    try workshop.run("strip", "app")
    try workshop.run("objcopy", "--add-gnu-debuglink=app.debug", "app")
    try workshop.copy("app", to: "root/opt/service/app")
    if let place { try workshop.move("app.debug", to: "root/" + place) } else { try workshop.remove("app.debug") }
    return program
  }

  private func image(_ program: InlinedProgram, _ path: String = "/opt/service/app") throws -> Image {
    try program.image(path)
  }

  private func search(_ program: InlinedProgram) -> DebugFileSearch {
    DebugFileSearch(sysroot: program.workshop.file("root"))
  }

  @Test(arguments: [
    "opt/service/app.debug", "opt/service/.debug/app.debug", "usr/lib/debug/opt/service/app.debug", "build-id",
  ])
  func debugFile(place: String) throws {
    var place = place
    let program = try program(debugFile: place)
    if place == "build-id" {
      let id = try program.workshop.buildID(of: program.path).description
      place = "usr/lib/debug/.build-id/\(id.prefix(2))/\(id.dropFirst(2)).debug"
      try program.workshop.move("root/build-id", to: "root/" + place)
    }
    let result = try program.symbolicated(search(program), image: try image(program))
    program.expectFullNames(result)
    #expect(result.images[0].file == program.workshop.file("root/" + place))
    // The directory may be written with a slash at its end.
    let other = DebugFileSearch(sysroot: program.workshop.file("root/"))
    program.expectFullNames(try program.symbolicated(other, image: try image(program)))
    // Without it nothing is found.
    #expect(InlinedProgram.search().files(for: try image(program)).debugInformation == nil)
  }

  /// Symbolic links mean what they mean to a process in the container.
  @Test(arguments: [
    ("bin/run", "/opt/service/app"), ("bin/run", "../../../../opt/service/app"), ("current", "/opt"),
    ("srv/current", "../opt/service"),
  ])
  func linksStayInside(link: String, target: String) throws {
    let program = try program(debugFile: "opt/service/.debug/app.debug")
    let workshop = program.workshop
    let path = workshop.file("root/" + link)
    try FileManager.default.createDirectory(
      atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
    let name =
      switch link {
      case "current": "/current/service/app"
      case "srv/current": "/srv/current/./../service/app"
      default: "/" + link
      }
    program.expectFullNames(try program.symbolicated(search(program), image: try image(program, name)))
  }

  /// An absolute link that would lead out of the container, to the same path on this machine.
  @Test func linksDoNotLeadOut() throws {
    let program = try program(debugFile: nil)
    let workshop = program.workshop
    try workshop.write("outside", "")
    try workshop.remove("outside")
    try workshop.move("app", to: "outside")
    try workshop.remove("root/opt/service/app")
    try FileManager.default.createSymbolicLink(
      atPath: workshop.file("root/opt/service/app"), withDestinationPath: workshop.file("outside"))
    let id = try workshop.buildID(of: workshop.file("outside"))
    let image = Image(
      path: "/opt/service/app", buildID: id, address: Address(rawValue: 0x10000), size: 0x10000)
    let found = DebugFileSearch(sysroot: workshop.file("root")).files(for: image)
    #expect(found.symbols == nil)
    #expect(found.searched.contains(workshop.file("root") + workshop.file("outside")))
  }

  @Test func linksInACircle() throws {
    let program = try program(debugFile: nil)
    let workshop = program.workshop
    for (name, target) in [("a", "/b"), ("b", "a")] {
      try FileManager.default.createSymbolicLink(atPath: workshop.file("root/" + name), withDestinationPath: target)
    }
    let found = search(program).files(for: try image(program, "/a/app"))
    #expect(found.debugInformation == nil)
    #expect(found.refusals.map(\.reason) == [.unreadable(.cannotOpen(path: "/a/app", code: ELOOP))])
  }

  @Test func resolution() throws {
    let workshop = try Workshop()
    let root = FileSystemRoot(directory: FilePath(workshop.path))
    for (path, expected) in [
      ("/a/b", "/a/b"), ("/../../a", "/a"), ("/a/../../b", "/b"), ("//a//./b/", "/a/b"), ("/", ""), ("a", "/a"),
    ] {
      #expect(root.resolve(FilePath(path)) == FilePath(workshop.path + expected))
    }
    #expect(root.path(of: FilePath(workshop.path + "/a/b")) == FilePath("/a/b"))
    #expect(root.path(of: FilePath(workshop.path + "x/a")) == nil)
    #expect(root.path(of: FilePath("/")) == nil)
    #expect(FileSystemRoot(directory: nil).resolve(FilePath("/a/../b")) == FilePath("/a/../b"))
    // A name from a document may hold anything.
    #expect(
      root.resolve(FilePath(bytes: [0x2f, 0x61, 0, 0x62]))
        == FilePath(bytes: Array((workshop.path + "/a").utf8) + [0, 0x62]))
  }

  @Test func missingSysrootIsTold() throws {
    let workshop = try Workshop()
    let search = DebugFileSearch(sysroot: workshop.file("no"))
    #expect(search.unreadableDirectories.map(\.path) == [workshop.file("no")])
  }

  /// What debug files refer to is found there too.
  @Test(.enabled(if: Tools.dwz, Tools.noDwz)) func sharedDebugInformation() throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: [])
    let workshop = program.workshop
    try workshop.run("g++", "-g", "-Wl,--build-id=sha1", "-Wl,-z,now", "app-main.o", "app-cart.o", "-o", "other")
    try workshop.run("dwz", "-M", "/usr/lib/debug/.dwz/service", "-m", "shared", "app", "other")
    try workshop.copy("app", to: "root/opt/service/app")
    try workshop.move("shared", to: "root/usr/lib/debug/.dwz/service")
    program.expectFullNames(try program.symbolicated(search(program), image: try image(program)))
  }

  @Test func splitUnits() throws {
    let program = try InlinedProgram(try Workshop(), compiler: .gcc, flags: ["-gsplit-dwarf"])
    let workshop = program.workshop
    try workshop.copy("app", to: "root/opt/service/app")
    for name in ["app-main.dwo", "app-cart.dwo"] {
      // As if the container were where it was compiled.
      try workshop.move(name, to: "root" + workshop.file(name))
    }
    program.expectFullNames(try program.symbolicated(search(program), image: try image(program)))
  }
}
