import Foundation
import TestSupport

/// The fault programs, compiled once for the whole run, as Debian compiles C: without frame pointers.
final class FaultHost: Sendable {
  static let shared = Result { try FaultHost() }

  let directory: TemporaryDirectory
  /// C program; Swift program with and without optimisation.
  var c: String { "\(directory.path)/host" }
  func swift(optimized: Bool) -> String { "\(directory.path)/\(optimized ? "swift-O" : "swift-Onone")" }
  var library: String { "\(directory.path)/fxlib.so" }
  /// The same layout, other names and another build id.
  var otherLibrary: String { "\(directory.path)/fxlib2.so" }

  /// Crashes while it is being loaded.
  var constructorLibrary: String { "\(directory.path)/fxctor.so" }

  /// The ways in which the program of `swift_async.swift` is built.
  enum AsyncBuild: String, CaseIterable, Sendable {
    case debug, release
    case staticRelease = "static"
  }
  func async(_ build: AsyncBuild) -> String { "\(directory.path)/async-\(build.rawValue)" }
  /// An allocator for LD_PRELOAD that counts, and bears no reentrance.
  var allocator: String { "\(directory.path)/allocator.so" }

  private init() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let faults = tests.appendingPathComponent("Faults").path
    let root = tests.deletingLastPathComponent().deletingLastPathComponent().path
    let sources = ["CCrashSupport", "Sources/CCrashFormat"].flatMap { folder in
      (try? FileManager.default.contentsOfDirectory(atPath: "\(root)/\(folder)"))?
        .filter { $0.hasSuffix(".c") }.map { "\(root)/\(folder)/\($0)" } ?? []
    }
    let includes = [
      "-D_GNU_SOURCE", "-I\(root)/CCrashSupport/include", "-I\(root)/Sources/CCrashFormat/include", "-I\(faults)",
    ]
    // Among the build's products, where one run replaces what another left: a static value has no end at which it could
    // remove anything.
    directory = try TemporaryDirectory(replacing: "\(root)/.build/fault-host")
    let support = directory.path + "/support"
    try require(["mkdir", support])
    try require(["gcc", "-std=gnu11", "-O2", "-g", "-c"] + includes + sources, in: support)
    let objects = try FileManager.default.contentsOfDirectory(atPath: support).map { "\(support)/\($0)" }
    let style = ["-O1", "-g", "-w", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]
    try require(
      ["gcc"] + style + includes + Self.programs.map { "\(faults)/\($0)" } + objects + ["-o", c, "-rdynamic"])
    try require(["gcc", "-O2", "-fPIC", "-shared", "-D_GNU_SOURCE", "\(faults)/allocator.c", "-o", allocator])
    for (path, flags) in [(library, []), (otherLibrary, ["-DOTHER"])] {
      try require(["gcc"] + style + includes + ["-fPIC", "-shared", "\(faults)/fxlib.c", "-o", path] + flags)
    }

    try require(["gcc"] + style + ["-fPIC", "-shared", "\(faults)/fxctor.c", "-o", constructorLibrary])

    let plain = "\(directory.path)/faults-plain.o"
    try require(
      ["gcc"] + style + includes + ["-Dfault_pre=fault_pre_plain", "-c", "\(faults)/faults.c", "-o", plain])
    let start = "\(directory.path)/swift-start.o"
    try require(["gcc"] + style + includes + ["-c", "\(faults)/swift_start.c", "-o", start])
    let asyncStart = "\(directory.path)/swift-async-start.o"
    try require(["gcc"] + style + includes + ["-c", "\(faults)/swift_async_start.c", "-o", asyncStart])
    for (build, flags) in [
      (AsyncBuild.debug, ["-Onone"]), (.release, ["-O"]), (.staticRelease, ["-O", "-static-stdlib"]),
    ] {
      try require(
        [
          "swiftc", "-g", "-parse-as-library", "-suppress-warnings", "-import-objc-header",
          "\(faults)/swift_async.h", "\(faults)/swift_async.swift", asyncStart, "-module-name", "asyncfaults", "-o",
          async(build),
        ] + flags + objects)
    }
    for optimized in [false, true] {
      try require(
        [
          "swiftc", optimized ? "-O" : "-Onone", "-g", "-parse-as-library", "-suppress-warnings",
          "-import-objc-header", "\(faults)/faults.h", "\(faults)/swift_faults.swift", plain, start,
          "-module-name", "swiftfaults", "-o", swift(optimized: optimized),
        ] + objects)
    }
  }

  /// All sources of the C program, the reporter's included, with the flags to find their headers.
  static func sourcesOfTheCProgram() throws -> [String] {
    let parts = try partsOfTheCProgram()
    return parts.includes + parts.host + parts.library
  }

  /// The C program's own files, those of the library, and where the compiler finds their headers.
  static func partsOfTheCProgram() throws -> (host: [String], library: [String], includes: [String]) {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let faults = tests.appendingPathComponent("Faults").path
    let root = tests.deletingLastPathComponent().deletingLastPathComponent().path
    let sources = try ["CCrashSupport", "Sources/CCrashFormat"].flatMap { folder in
      try FileManager.default.contentsOfDirectory(atPath: "\(root)/\(folder)")
        .filter { $0.hasSuffix(".c") }.map { "\(root)/\(folder)/\($0)" }
    }
    let includes = ["-I\(root)/CCrashSupport/include", "-I\(root)/Sources/CCrashFormat/include", "-I\(faults)"]
    return (programs.map { "\(faults)/\($0)" }, sources, includes)
  }

  /// The C program's own sources.
  static let programs = ["host.c", "hosts.c", "faults.c", "sandboxes.c", "lives.c", "damage.c", "corners.c"]

  private func require(_ command: [String], in folder: String? = nil) throws {
    // The Swift compiler leaves empty folders where it puts its temporary files.
    var compiler = ChildProcess(
      ["/usr/bin/env"] + command, environment: ["TMPDIR": directory.path], directory: folder)
    compiler.limit = 1200
    let outcome = try compiler.run()
    guard outcome.status == .exited(0) else {
      throw ChildProcess.LaunchFailure(description: "\(command.joined(separator: " ")): \(outcome.errorText)")
    }
  }
}
