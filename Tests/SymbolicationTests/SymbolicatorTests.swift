import CrashModel
import Foundation
import Symbolication
import Testing

@Suite struct SymbolicatorTests {
  private func program() throws -> (Workshop, Image, [String: UInt64]) {
    let workshop = try Workshop()
    try workshop.write(
      "app.c",
      """
      #include <stdio.h>
      #include <stdlib.h>
      static inline __attribute__((always_inline)) void inner(int x) {
        if (x) abort();
      }
      __attribute__((noinline)) void work(int x) {
        inner(x);
        puts("done");
      }
      int main(int argc, char **argv) {
        work(argc);
        return 0;
      }
      """)
    try workshop.run("gcc", "-g", "-O1", "app.c", "-o", "app")
    let image = Image(
      path: workshop.file("app"), buildID: try workshop.buildID(of: workshop.file("app")),
      address: Address(rawValue: 0x5555_5555_4000), size: 0x8000)
    var returns: [String: UInt64] = [:]
    for callee in ["abort", "puts", "work"] {
      returns[callee] = 0x5555_5555_4000 + (try #require(try workshop.calls(in: "app", to: callee).first)) + 1
    }
    return (workshop, image, returns)
  }

  private let symbolicator = Symbolicator(search: DebugFileSearch(systemDirectory: nil))

  @Test func inlinedFramesAndStatuses() throws {
    let (workshop, image, returns) = try program()
    var crash = report(
      [
        frame(try #require(returns["abort"]), .returnAddress),
        frame(try #require(returns["work"]), .returnAddress, image: nil),
        frame(0x1234, .returnAddress, image: nil), frame(try #require(returns["work"]), .returnAddress, image: 7),
      ], image: image)
    crash.threads[0].frames.insert(.omitted(count: 5), at: 1)
    crash.threads.append(ThreadInfo(frames: [.captured(frame(try #require(returns["puts"]), .returnAddress))]))
    let result = symbolicator.symbolicate(crash)
    #expect(result.report.names == ["inner", "work", nil, "main", nil, "main"])
    let frames = result.report.threads[0].frames
    #expect(frames.map { $0.symbolicated?.inlined } == [true, false, nil, false, false, false])
    #expect(frames.map { $0.symbolicated?.line } == [4, 7, nil, 11, nil, 11])
    #expect(frames.map { $0.symbolicated?.declarationLine } == [3, 6, nil, 10, nil, 10])
    #expect(frames.map { $0.symbolicated?.status } == [.resolved, .resolved, nil, .resolved, .noImage, .resolved])
    #expect(frames[2] == .omitted(count: 5))
    #expect(frames[0].symbolicated?.file == workshop.file("app.c"))
    #expect(frames[0].symbolicated?.hasDebugInformation == true)
    #expect(frames[0].captured?.address == frames[1].captured?.address)
    // An address in no image that lies in one gets it.
    #expect(frames[3].captured?.imageIndex == 0)
    #expect(result.report.threads[1].frames.map { $0.symbolicated?.line } == [8])
    #expect(result.images.map(\.frameCount) == [4])
    #expect(result.runtimeFailure == nil)

    let again = symbolicator.symbolicate(result.report)
    #expect(again.report == result.report)
    #expect(again.images == result.images)
  }

  /// A report that was named where the files were keeps its names where they are not.
  @Test func namesStayWhereNoFileIsFound() throws {
    let (workshop, image, returns) = try program()
    defer { withExtendedLifetime(workshop) {} }
    let crash = report([frame(try #require(returns["abort"]), .returnAddress)], image: image)
    let named = symbolicator.symbolicate(crash).report
    #expect(named.names == ["inner", "work"])
    let nowhere = Symbolicator(search: DebugFileSearch(systemDirectory: nil, usesImagePaths: false))
    let result = nowhere.symbolicate(named)
    #expect(result.report == named)
    guard case .notFound? = result.images.first?.status else {
      Issue.record("\(result.images)")
      return
    }
    #expect(nowhere.symbolicate(crash).report.names == [nil])
  }

  @Test func emptyReports() {
    let empty = CrashReport(id: "0190a000-0000-7000-8000-000000000000")
    let result = symbolicator.symbolicate(empty)
    #expect(result.report == empty)
    #expect(result.images.isEmpty)
  }

  @Test func addressesInAnyOrderAndTwice() throws {
    let (workshop, image, returns) = try program()
    let base = image.address.rawValue
    let work = try #require(returns["work"]) - base - 1
    let abort = try #require(returns["abort"]) - base - 1
    let answers = try symbolicator.symbolize(file: workshop.file("app"), addresses: [work, .max, abort, work, 0])
    #expect(answers.map { $0.functions.map(\.function) } == [["main"], [], ["inner", "work"], ["main"], []])
    #expect(try symbolicator.symbolize(file: workshop.file("app"), addresses: []).isEmpty)
  }
}
