import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Symbolication

/// Where a table answers, no debug file is opened; but never is a name taken from anything that a search would not find.
@Suite struct RememberedFindingsTests {
  /// Says how often a file had to be looked for.
  private final class CountingReader: ImageReader {
    private let reader: LocalImageReader
    var searches = 0

    init(_ search: DebugFileSearch) { reader = LocalImageReader(search) }

    var givenFiles: [(path: String, buildID: BuildID?)] {
      searches += 1
      return reader.givenFiles
    }
    var unreadableFiles: [DebugFileError] {
      searches += 1
      return reader.unreadableFiles
    }
    var unreadableDirectories: [DebugFileError] {
      searches += 1
      return reader.unreadableDirectories
    }
    func image(ofFile path: FilePath) throws(DebugFileError) -> Image { try reader.image(ofFile: path) }
    func report(ofCore path: FilePath) throws(DebugFileError) -> [UInt8] { try reader.report(ofCore: path) }
    func answers(for image: Image, file: FilePath?) -> any ImageAnswers {
      searches += 1
      return reader.answers(for: image, file: file)
    }
  }

  private struct Outcome {
    var result: SymbolicatedReport
    var searches: Int

    func saysTheSame(as other: Outcome) -> Bool {
      result.report == other.result.report && result.images == other.result.images
    }
  }

  private let workshop: Workshop
  private let program: InlinedProgram
  private let cache: AddressTableCache

  init() throws {
    workshop = try Workshop()
    program = try InlinedProgram(workshop, compiler: .gcc, flags: ["-g"])
    #expect(mkdir(workshop.file("cache"), 0o700) == 0)
    cache = AddressTableCache(directory: workshop.file("cache"))
  }

  private func symbolicate(
    _ image: Image? = nil, use: AddressTables.Use = .always, directories: [String] = []
  ) throws -> Outcome {
    func search() -> DebugFileSearch { DebugFileSearch(directories: directories, systemDirectory: nil) }
    let counting = CountingReader(search())
    let symbolicator = Symbolicator(
      RememberingImageReader(counting, search: search(), cache: cache), nearestLines: false,
      tables: AddressTables(use: use, cache: cache))
    let image = try image ?? program.image()
    let frames = program.addresses.map { frame(image.address.rawValue + $0) }
    let result = symbolicator.symbolicate(report(frames, image: image))
    #expect(symbolicator.givenFiles.isEmpty && symbolicator.unreadableFiles.isEmpty)
    _ = symbolicator.unreadableDirectories
    return Outcome(result: result, searches: counting.searches)
  }

  private func notes() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: workshop.file("cache")).filter { $0.hasSuffix(".findings") }
  }

  @Test func whereATableAnswersNoFileIsOpened() throws {
    let first = try symbolicate()
    program.expectFullNames(first.result)
    #expect(first.searches == 1)
    #expect(try notes().count == 1)
    for use in [AddressTables.Use.always, .whenWorthIt] {
      let second = try symbolicate(use: use)
      #expect(second.searches == 0)
      #expect(second.saysTheSame(as: first), "the image's summary too")
    }
  }

  @Test func aFileThatChangedIsLookedAtAgain() throws {
    let first = try symbolicate()
    // The same bytes under another inode, and then the same inode with another time.
    let path = program.path
    try FileManager.default.copyItem(atPath: path, toPath: path + ".new")
    #expect(rename(path + ".new", path) == 0)
    var outcome = try symbolicate()
    #expect(outcome.searches == 1 && outcome.saysTheSame(as: first))
    #expect(try symbolicate().searches == 0)
    #expect(utimensat(AT_FDCWD, path, nil, 0) == 0)
    outcome = try symbolicate()
    #expect(outcome.searches == 1 && outcome.saysTheSame(as: first))
    let image = try program.image()
    #expect(unlink(path) == 0)
    #expect(try symbolicate(image).result.images.first?.status != .debugInformation)
    #expect(try notes().isEmpty, "what is not true any more is not kept")
  }

  @Test func anotherQuestionIsAskedAnew() throws {
    _ = try symbolicate()
    #expect(try symbolicate(directories: [workshop.file("elsewhere")]).searches == 1, "other places to look in")
    var other = try program.image()
    other.buildID = BuildID(bytes: Array(repeating: 7, count: 20))
    let mismatch = try symbolicate(other)
    #expect(mismatch.searches == 1)
    #expect(mismatch.result.images.first?.status != .debugInformation)
    other.buildID = nil
    #expect(try symbolicate(other).searches == 1, "nothing proves that it is the file that ran")
    #expect(try symbolicate(other).searches == 1)
  }

  @Test func aSearchThatMightStillFindMoreIsNotRemembered() throws {
    try workshop.run("strip", "-g", program.path)
    let stripped = try symbolicate()
    #expect(stripped.searches == 1)
    #expect(try notes().isEmpty)
    #expect(try symbolicate().searches == 1)
  }

  @Test func aDamagedNoteIsNotBelieved() throws {
    let first = try symbolicate()
    let path = workshop.file("cache/") + (try #require(try notes().first))
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    for size in stride(from: 0, to: whole.count, by: 7) {
      try whole.prefix(size).write(to: URL(fileURLWithPath: path))
      let outcome = try symbolicate()
      #expect(outcome.searches == 1 && outcome.saysTheSame(as: first))
    }
    for index in whole.indices {
      var damaged = Array(whole)
      damaged[index] ^= 0x11
      let key = Array(whole.dropFirst(10).prefix(32))
      #expect(damaged.withUnsafeBytes { RememberedFindings.findings($0, key: key) } == nil)
    }
  }

  @Test func aNoteWithoutItsTableLeadsToTheFiles() throws {
    let first = try symbolicate()
    for name in try FileManager.default.contentsOfDirectory(atPath: workshop.file("cache"))
    where name.hasSuffix(".addrtable") {
      #expect(unlink(workshop.file("cache/") + name) == 0)
    }
    let second = try symbolicate(use: .whenWorthIt)
    #expect(second.searches == 1 && second.saysTheSame(as: first))
  }
}
