import CrashModel
import Foundation
import TestSupport
import Testing

/// The plugin, run for a package that depends on this one, on the build that `make samples` made of it.
@Suite struct ArchiveSymbolsTests {
  /// The plugin as SwiftPM runs it. It builds `symbolicate` for itself, once. The options are those of `build-orderd`, as
  /// others would build the service anew.
  private func archive(_ arguments: [String]) throws -> ChildProcess.Outcome {
    var child = ChildProcess(
      [
        "/usr/bin/env", "swift", "package", "--package-path", "\(Sample.root)/samples/orderd", "--scratch-path",
        "\(Sample.root)/.build/orderd/scratch/release", "--disable-index-store",
        "--allow-writing-to-package-directory", "archive-symbols",
      ] + arguments)
    child.limit = 1800
    return try child.run()
  }

  /// A service is shipped stripped, crashes, and its report is named from the store: by function, file and line.
  ///
  /// One test with all steps, as SwiftPM lets nobody else into the scratch directory while it works.
  @Test func shipsStrippedAndNamesFromTheStore() throws {
    let place = try TemporaryDirectory("archive")
    let (store, output) = ("\(place.path)/symbols", "\(place.path)/shipped")
    let product = "\(Sample.root)/.build/orderd/scratch/release/release/orderd"
    try #require(contents(of: product) != nil, "`make samples` builds the service")

    let outcome = try archive([
      "--store", store, "--release", "1.0.0", "--product", "orderd", "--strip", "--output", output,
    ])
    try #require(outcome.status == .exited(0), "\(outcome.text)\(outcome.errorText)")
    #expect(outcome.text.contains("stripped  \(output)/orderd"), "\(outcome.text)")

    let shipped = "\(output)/orderd"
    let checked = try ChildProcess([Sample.symbolicate, "check", "-f", "ndjson", shipped, product]).run()
    let facts = try checked.text.split(separator: "\n").map { try JSONObject(Array($0.utf8)) }
    #expect(facts[0].string("build_id") == facts[1].string("build_id") && facts[0].string("build_id") != nil)
    #expect(facts[1].string("names") == "lines", "the build's own products stay as they are")
    #expect(facts[0].fields["symbols"] == nil && facts[0].fields["debug_information"] == nil)
    #expect((facts[0].fields["debug_link"] as? [String: String])?["name"] == "orderd.debug")

    var service = ChildProcess(
      [shipped, "--spool", "\(place.path)/spool", "--release", "1.0.0", "GET /orders/1/lines/9"],
      environment: ["SWIFT_BACKTRACE": "enable=no"], directory: place.path)
    #expect(try service.run().status == .signaled(SIGILL))
    service.arguments = [shipped, "--spool", "\(place.path)/spool"]
    #expect(try service.run().status == .exited(0))
    let report = "\(place.path)/spool/new/" + (try #require(place.names(in: "spool/new").first))

    let bug = try #require(Sample.bugs.first { $0.request == "GET /orders/1/lines/9" })
    let without = try ChildProcess([Sample.symbolicate, report]).run()
    #expect(!without.text.contains("\(bug.file):"), "\(without.text)")
    let named = try ChildProcess([Sample.symbolicate, "-f", "json", "--debug-dir", store, report]).run()
    let frame = try #require(
      try JSONObject(named.output).crashedFrames.first { $0["in_app"] as? Bool == true && $0["function"] != nil })
    #expect((frame["function"] as? String)?.contains(bug.function) == true, "\(frame)")
    let line = try bug.line()
    #expect((frame["file"] as? String)?.hasSuffix(bug.file) == true && frame["line"] as? Int == line, "\(frame)")
    #expect(try JSONObject(named.output).string("stack_hash_quality") == "dwarf")
    let covered = try ChildProcess([Sample.symbolicate, "check", "--for", report, store]).run()
    #expect(covered.status == .exited(0) && covered.text.contains("): covered\n"), "\(covered.text)")

    // A file that was built before, with what flags ever.
    let again = try archive(["--store", store, "--release", "1.0.1", product])
    #expect(again.status == .exited(0), "\(again.errorText)")
    #expect(again.text.contains("replaced  ") && again.text.contains("for release 1.0.1"), "\(again.text)")

    for (arguments, message) in [
      ([], "no store; name one with --store DIR"), (["--product", "nope"], "this name: nope; there is orderd"),
      (["--output", output], "--output is for --strip"), (["--stirp"], "unknown option --stirp"),
    ] as [([String], String)] {
      let store = arguments.isEmpty ? [] : ["--store", store]
      let outcome = try archive(store + arguments)
      // Not which status: `swift package` of Swift 6.3 sometimes crashes after it has passed a plugin's error on.
      #expect(outcome.status != .exited(0) && outcome.errorText.contains(message), "\(outcome.errorText)")
    }
  }
}
