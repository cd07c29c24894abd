import CLibdw
import CrashModel
import Foundation
import Testing

@testable import Symbolication

@Suite struct DebugFileSearchTests {
  private static let source = "#include <stdlib.h>\nint main(void) {\n  abort();\n}\n"

  /// `app` stripped, `app.full` as built, `app.debug` with the debug information alone.
  private func workshop(link: Bool = true, buildID: Bool = true) throws -> Workshop {
    let workshop = try Workshop()
    try workshop.write("app.c", Self.source)
    try workshop.run("gcc", "-g", "-O1", "-Wl,--build-id=\(buildID ? "sha1" : "none")", "app.c", "-o", "app.full")
    try workshop.run("objcopy", "--only-keep-debug", "app.full", "app.debug")
    try workshop.run("strip", "app.full", "-o", "app")
    if link { try workshop.run("objcopy", "--add-gnu-debuglink=app.debug", "app") }
    return workshop
  }

  private func image(_ workshop: Workshop, _ path: String? = nil) -> Image {
    let path = path ?? workshop.file("app")
    return Image(
      path: path, buildID: (try? DebugFile(path: path))?.buildID, address: Address(rawValue: 0x10000), size: 0x10000)
  }

  private func mainAddress(_ workshop: Workshop) throws -> UInt64 {
    try #require(try workshop.calls(in: "app.full", to: "abort").first)
  }

  private func search(files: [String] = [], directories: [String] = []) -> DebugFileSearch {
    DebugFileSearch(files: files, directories: directories, systemDirectory: nil)
  }

  @Test func givenFile() throws {
    let workshop = try workshop(link: false)
    let found = search(files: [workshop.file("app.debug")]).files(for: image(workshop))
    #expect(found.debugInformation?.path == workshop.file("app.debug"))
    #expect(found.refusals.isEmpty)
    let symbolicator = Symbolicator(search: search(files: [workshop.file("app.debug")]))
    let result = symbolicator.symbolicate(
      report([frame(0x10000 + (try mainAddress(workshop)))], image: image(workshop)))
    #expect(result.report.names == ["main"])
    #expect(result.report.threads[0].frames[0].symbolicated?.line == 3)
    #expect(result.images.map(\.status) == [.debugInformation])
    #expect(result.images.map(\.file) == [workshop.file("app.debug")])
  }

  @Test func debugLinkBesideAndBelow() throws {
    let workshop = try workshop()
    #expect(try DebugFile(path: workshop.file("app")).debugLink?.name == "app.debug")
    #expect(search().files(for: image(workshop)).debugInformation?.path == workshop.file("app.debug"))
    try FileManager.default.createDirectory(atPath: workshop.file(".debug"), withIntermediateDirectories: false)
    try FileManager.default.moveItem(atPath: workshop.file("app.debug"), toPath: workshop.file(".debug/app.debug"))
    #expect(search().files(for: image(workshop)).debugInformation?.path == workshop.file(".debug/app.debug"))
    let system = DebugFileSearch(systemDirectory: workshop.file("system"))
    let target = workshop.file("system" + workshop.path)
    try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
    try FileManager.default.moveItem(atPath: workshop.file(".debug/app.debug"), toPath: target + "/app.debug")
    #expect(system.files(for: image(workshop)).debugInformation?.path == target + "/app.debug")
  }

  /// A stripped file by a path through a link: its debug file lies beside the file itself.
  @Test func addressesOfAStrippedFile() throws {
    let workshop = try workshop()
    try FileManager.default.createDirectory(atPath: workshop.file("bin"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: workshop.file("bin/run"), withDestinationPath: "../app")
    let resolved = try Symbolicator(search: search()).symbolize(
      file: workshop.file("bin/run"), addresses: [try mainAddress(workshop)])
    #expect(resolved[0].functions.map(\.function) == ["main"])
    #expect(resolved[0].functions.map(\.line) == [3])
  }

  /// Without build ids the link's checksum decides.
  @Test func debugLinkIsCheckedByChecksum() throws {
    let workshop = try workshop(buildID: false)
    let found = search().files(for: image(workshop))
    #expect(found.debugInformation?.path == workshop.file("app.debug"))
    #expect(found.isUnverified)
    let handle = try #require(FileHandle(forWritingAtPath: workshop.file("app.debug")))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data([0]))
    try handle.close()
    let other = search().files(for: image(workshop))
    #expect(other.debugInformation == nil)
    guard case .checksum? = other.refusals.first?.reason else {
      Issue.record("no refusal: \(other.refusals)")
      return
    }
  }

  @Test func directories() throws {
    let workshop = try workshop(link: false)
    let id = try workshop.buildID(of: workshop.file("app")).description
    for place in [
      "tree/.build-id/\(id.prefix(2))/\(id.dropFirst(2)).debug", "tree/\(id.prefix(2))/\(id.dropFirst(2)).debug",
      "tree/app.debug", "tree" + workshop.path + "/app", "tree/some/where/else/any-name",
    ] {
      let path = workshop.file(place)
      try FileManager.default.createDirectory(
        atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try FileManager.default.copyItem(atPath: workshop.file("app.debug"), toPath: path)
      let found = search(directories: [workshop.file("tree")]).files(for: image(workshop))
      #expect(found.debugInformation?.path == path)
      #expect(found.refusals.isEmpty)
      try FileManager.default.removeItem(atPath: workshop.file("tree"))
    }
  }

  /// Loops of links, pipes, broken links, other files: the walk comes to its end and finds the one that counts.
  @Test func directoryWithTraps() throws {
    let workshop = try workshop(link: false)
    try FileManager.default.createDirectory(atPath: workshop.file("tree/a/b"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: workshop.file("tree/a/b/up"), withDestinationPath: "../..")
    try FileManager.default.createSymbolicLink(atPath: workshop.file("tree/self"), withDestinationPath: "self")
    try FileManager.default.createSymbolicLink(atPath: workshop.file("tree/gone"), withDestinationPath: "nowhere")
    #expect(mkfifo(workshop.file("tree/app"), 0o600) == 0)
    #expect(mkfifo(workshop.file("tree/a/app.debug"), 0o600) == 0)
    try workshop.write("tree/a/text", "no ELF file")
    try workshop.write("tree/a/empty", "")
    try FileManager.default.createSymbolicLink(
      atPath: workshop.file("tree/a/b/link"), withDestinationPath: workshop.file("app.debug"))
    let index = DebugDirectoryIndex(FilePath(workshop.file("tree")))
    #expect(index.byBuildID.count == 1)
    let found = search(directories: [workshop.file("tree")]).files(for: image(workshop))
    #expect(found.debugInformation?.path == workshop.file("tree/a/b/link"))
  }

  /// Names are bytes to the system: what is no UTF-8 in them is found by the walk and given by the command line.
  @Test func namesThatAreNotUTF8() throws {
    let workshop = try workshop(link: false)
    let folder = FilePath(workshop.file("tree")).appending([0x64, 0xFF])
    let file = folder.appending([0xFE, 0x1B])
    #expect(mkdir(workshop.file("tree"), 0o700) == 0)
    #expect(folder.withCString { mkdir($0, 0o700) } == 0)
    #expect(workshop.file("app.debug").withCString { from in file.withCString { rename(from, $0) } } == 0)
    let shown = workshop.file("tree/d\\xff/\\xfe\u{1b}")
    #expect(search(directories: [workshop.file("tree")]).files(for: image(workshop)).debugInformation?.path == shown)
    for search in [
      DebugFileSearch(files: [file], directories: [], systemDirectory: nil),
      DebugFileSearch(files: [], directories: [folder], systemDirectory: nil),
    ] {
      #expect(search.unreadableFiles.isEmpty && search.unreadableDirectories.isEmpty)
      #expect(search.files(for: image(workshop)).debugInformation?.path == shown)
    }
    let missing = DebugFileSearch(files: [file], directories: [folder.appending("no"), file], systemDirectory: nil)
    #expect(missing.unreadableDirectories.map(\.path) == [workshop.file("tree/d\\xff/no"), shown])
  }

  @Test func otherBuildIsRefusedAndNamed() throws {
    let workshop = try workshop(link: false)
    try workshop.write("app.c", Self.source + "int other;\n")
    try workshop.run("gcc", "-g", "-O1", "app.c", "-o", "other/app", expectingDirectory: "other")
    let expected = try workshop.buildID(of: workshop.file("app"))
    let actual = try workshop.buildID(of: workshop.file("other/app"))
    #expect(expected != actual)
    // The path that the process had now holds another build.
    var image = image(workshop)
    image.path = workshop.file("other/app")
    for search in [
      search(), search(files: [workshop.file("other/app")]), search(directories: [workshop.file("other")]),
    ] {
      let found = search.files(for: image)
      #expect(found.debugInformation == nil)
      #expect(found.symbols == nil)
      #expect(
        found.refusals.contains(
          .init(path: workshop.file("other/app"), reason: .buildID(expected: expected, found: actual))))
    }
    let result = Symbolicator(search: search()).symbolicate(
      report([frame(0x10000 + (try mainAddress(workshop)))], image: image))
    #expect(result.images.map(\.status) == [.buildIDMismatch(path: workshop.file("other/app"), found: actual)])
    #expect(result.report.threads[0].frames[0].symbolicated?.status == .buildIDMismatch)
    #expect(result.report.names == [nil])
    #expect(result.images[0].refusals[0].description.contains(expected.description))
    #expect(result.images[0].refusals[0].description.contains(actual.description))
  }

  @Test func missingFileNamesThePlaces() throws {
    let workshop = try workshop(link: false)
    var image = image(workshop)
    image.path = "/nowhere/app"
    let search = DebugFileSearch(
      files: [workshop.file("app.c")], directories: [workshop.file("none")], systemDirectory: workshop.file("system"))
    #expect(search.unreadableFiles == [.notELF(path: workshop.file("app.c"))])
    let result = Symbolicator(search: search).symbolicate(report([frame(0x10010)], image: image))
    guard case .notFound(let places) = result.images[0].status else {
      Issue.record("\(result.images[0].status)")
      return
    }
    let id = try #require(image.buildID).description
    #expect(places.contains("/nowhere/app"))
    #expect(places.contains { $0.hasPrefix(workshop.file("none")) })
    #expect(places.contains(workshop.file("system/.build-id/\(id.prefix(2))/\(id.dropFirst(2)).debug")))
    #expect(result.report.threads[0].frames[0].symbolicated?.status == .noSymbols)
  }

  @Test func imageWithoutABuildIDCountsFromItsOwnPathOnly() throws {
    let workshop = try workshop(link: false, buildID: false)
    #expect(search(files: [workshop.file("app.debug")]).files(for: image(workshop)).debugInformation == nil)
    let found = search(directories: [workshop.path]).files(for: image(workshop, workshop.file("app.full")))
    #expect(found.debugInformation?.path == workshop.file("app.full"))
    #expect(found.isUnverified)
  }

  @Test func kernelImageHasNoFile() throws {
    let image = Image(
      path: "linux-vdso.so.1", buildID: BuildID("0123456789abcdef0123"), address: Address(rawValue: 0x7000_0000),
      size: 0x2000)
    let result = Symbolicator(search: search()).symbolicate(report([frame(0x7000_0100)], image: image))
    #expect(result.images.map(\.status) == [.notFound(places: [])])
  }
}
