import Foundation
import TestSupport
import Testing

/// What a daemon gets that embeds the library.
@Suite struct EmbeddingTests {
  static let allowed = [
    "linux-vdso", "ld-linux", "libc.", "libm.", "libgcc_s.", "libstdc++.", "libpthread.", "libdl.", "librt.",
    "libswiftCore.", "libswift_Concurrency.", "libswift_StringProcessing.", "libswift_RegexParser.",
    "libswift_Builtin_float.", "libswiftSwiftOnoneSupport.", "libswiftGlibc.", "libswiftDispatch.", "libdispatch.",
    "libBlocksRuntime.",
  ]

  @Test(arguments: Sample.ways) func linksGlibcAndTheRuntimeOnly(way: String) throws {
    let outcome = try ChildProcess(["/usr/bin/env", "ldd", Sample.service(way)]).run()
    #expect(outcome.status == .exited(0))
    let libraries = outcome.text.split(separator: "\n").compactMap { line in
      line.split(whereSeparator: \.isWhitespace).first.map { $0.split(separator: "/").last.map(String.init) ?? "" }
    }
    #expect(libraries.count > 3)
    for library in libraries {
      #expect(Self.allowed.contains { library.hasPrefix($0) }, "\(library)")
    }
  }

  /// A package elsewhere that depends on `CrashReporting` by a git tag builds and reports a crash, where neither the
  /// headers of libdw nor those of libunwind and simdjson are.
  @Test func packageElsewhere() throws {
    let place = try TemporaryDirectory("elsewhere")
    func shell(_ script: String, in directory: String) throws -> ChildProcess.Outcome {
      var child = ChildProcess(
        ["/bin/sh", "-ec", script], environment: ["HOME": place.path, "TMPDIR": place.path], directory: directory)
      child.limit = 1800  // a build of everything
      return try child.run()
    }
    // A clone of what the working tree holds, so that the test judges what will be committed.
    let cloned = try shell(
      """
      mkdir library && cd library && git init -q .
      (cd '\(Sample.root)' && git ls-files -z --cached --others --exclude-standard | xargs -0 tar cf -) | tar xf -
      git add -A && git -c user.name=test -c user.email=test@localhost commit -qm all && git tag 9.9.9
      """, in: place.path)
    try #require(cloned.status == .exited(0), "\(cloned.errorText)")
    #expect(mkdir("\(place.path)/daemon", 0o755) == 0 && mkdir("\(place.path)/daemon/Sources", 0o755) == 0)
    #expect(mkdir("\(place.path)/daemon/Sources/daemon", 0o755) == 0)
    try write(
      Array(
        """
        // swift-tools-version: 6.2
        import PackageDescription
        let package = Package(
          name: "daemon",
          dependencies: [.package(url: "file://\(place.path)/library", exact: "9.9.9")],
          targets: [
            .executableTarget(
              name: "daemon", dependencies: [.product(name: "CrashReporting", package: "library")])
          ])

        """.utf8), to: "\(place.path)/daemon/Package.swift")
    try write(
      Array(
        """
        import CrashReporting
        try CrashReporter.start(.init(service: "daemon", directory: CommandLine.arguments[1]))
        if CommandLine.arguments.count > 2 { fatalError("as told") }
        CrashReporter.flush(timeout: .seconds(60))

        """.utf8), to: "\(place.path)/daemon/Sources/daemon/main.swift")
    // As root the headers are hidden; without it the manifest is at least shown not to ask for them at build time.
    let hide =
      geteuid() == 0
      ? "for f in /usr/include/elfutils /usr/include/libunwind.h /usr/include/libelf.h /usr/include/simdjson.h; do "
        + "if [ -d $f ]; then mount -t tmpfs none $f; elif [ -e $f ]; then mount --bind /dev/null $f; fi; done; " : ""
    let build = "swift build --disable-sandbox --quiet --product daemon"
    let script = hide.isEmpty ? build : "exec unshare -m sh -ec '\(hide)\(build)'"
    let built = try shell(script, in: "\(place.path)/daemon")
    try #require(built.status == .exited(0), "\(built.text)\(built.errorText)")
    let daemon = "\(place.path)/daemon/.build/debug/daemon"
    let quiet = ["SWIFT_BACKTRACE": "enable=no"]
    let crash = try ChildProcess([daemon, "\(place.path)/spool", "crash"], environment: quiet).run()
    #expect(crash.status == .signaled(SIGILL))
    #expect(try ChildProcess([daemon, "\(place.path)/spool"], environment: quiet).run().status == .exited(0))
    let reports = place.names(in: "spool/new")
    #expect(reports.count == 1)
    let name = try #require(reports.first)
    let report = try #require(contents(of: "\(place.path)/spool/new/\(name)"))
    #expect(try JSONObject(report).string("reason") == "fatal")
  }
}
