import CrashFormats
import CrashModel
import Foundation
import Runtime
import TestSupport
import Testing

/// The runtime's crash log as its own decoder takes it (`CrashLog` in the Swift project, not part of the `Runtime` module
/// that Swift 6.3 ships): the same keys, required and optional, with the same types. Addresses and frames are the module's.
private struct RuntimeCrashLog: Decodable {
  struct Frame: Decodable {
    enum Kind: String, Decodable {
      case programCounter, returnAddress, asyncResumePoint, omittedFrames, truncated
    }
    struct SourceLocation: Decodable {
      var file: String
      var line: Int
      var column: Int
    }
    var kind: Kind
    var address: String?
    var count: Int?
    var symbol: String?
    var offset: Int?
    var description: String?
    var image: String?
    var sourceLocation: SourceLocation?
    var inlined: Bool?
    var thunk: Bool?
    var system: Bool?
    var runtimeFailure: Bool?

    var captured: Backtrace.Frame? {
      let address = address.flatMap { Backtrace.Address($0) }
      switch (kind, address, count) {
      case (.programCounter, let address?, _): return .programCounter(address)
      case (.returnAddress, let address?, _): return .returnAddress(address)
      case (.asyncResumePoint, let address?, _): return .asyncResumePoint(address)
      case (.omittedFrames, _, let count?): return .omittedFrames(count)
      case (.truncated, _, _): return .truncated
      default: return nil
      }
    }
  }
  struct Thread: Decodable {
    var name: String?
    var crashed: Bool?
    var registers: [String: String]?
    var frames: [Frame]
  }
  struct Image: Decodable {
    var name: String?
    var buildId: String?
    var path: String?
    var baseAddress: String
    var endOfText: String
  }
  var timestamp: String
  var kind: String
  var description: String
  var faultAddress: String
  var platform: String
  var architecture: String
  var threads: [Thread]
  var capturedMemory: [String: String]?
  var omittedImages: Int?
  var images: [Image]?
  var backtraceTime: Double
}

struct SwiftCrashLogTests {
  private func decode(_ report: CrashReport) throws -> RuntimeCrashLog {
    try JSONDecoder().decode(RuntimeCrashLog.self, from: Data(SwiftCrashLogWriter().json(of: report)))
  }

  @Test func everythingOfASample() throws {
    let log = try decode(sampleReport())
    #expect(log.kind == "crashReport")
    #expect(log.timestamp == "2026-11-30T05:12:33.042000Z")
    #expect(log.description == "Illegal instruction")
    #expect(log.faultAddress == "0x00007f816e16df7f")
    #expect(log.platform == "Linux (Debian GNU/Linux 12 (bookworm))")
    #expect(log.threads.map { $0.crashed ?? false } == [true, false])
    let frames = log.threads[0].frames
    #expect(
      frames.map(\.kind) == [.programCounter, .programCounter, .omittedFrames, .returnAddress, .asyncResumePoint])
    #expect(frames[0].sourceLocation?.line == 7 && frames[0].inlined == true)
    #expect(frames[2].count == 347)
    #expect(log.images?.first?.endOfText == "0x00005599f587ce00")
  }

  /// What is looked up is the same by the runtime's types and by ours.
  @Test func addressesAreTheRuntimes() throws {
    let report = sampleReport()
    let frames = try decode(report).threads[0].frames
    for (theirs, ours) in zip(frames, report.threads[0].frames) {
      let captured = try #require(theirs.captured)
      guard let own = ours.captured else { continue }
      #expect(captured.adjustedProgramCounter == Backtrace.Address(own.lookupAddress.description))
      #expect(captured.originalProgramCounter == Backtrace.Address(own.address.description))
    }
  }

  /// The decoder throws for a missing key and for a value of another type, whatever the report is.
  @Test func everyReportDecodes() throws {
    for seed in 0..<150 {
      let report = hostileReport(seed: UInt64(seed))
      let log = try decode(report)
      #expect(log.threads.count == report.threads.count)
      for (thread, own) in zip(log.threads, report.threads) {
        #expect(thread.frames.count == own.frames.count)
        #expect(thread.frames.allSatisfy { $0.captured != nil }, "seed \(seed)")
      }
    }
    let empty = try decode(CrashReport(id: "x"))
    #expect(empty.timestamp.isEmpty && empty.platform.isEmpty && empty.threads.isEmpty)
  }

  /// Times before 1970 and at the ends of what there is.
  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000000Z"), (-1, "1969-12-31T23:59:59.999999Z"), (1_500, "1970-01-01T00:00:00.000001Z"),
      (1_796_015_553_042_123_456, "2026-11-30T05:12:33.042123Z"),
    ] as [(Int64, String)])
  func microseconds(time: Int64, text: String) throws {
    var report = CrashReport(id: "x")
    report.timestamp = Timestamp(rawValue: time)
    #expect(try decode(report).timestamp == text)
  }

  /// Where a later toolchain brings the decoder itself, it is asked; one that does not is no failure of ours.
  @Test func theDecoderOfTheToolchain() throws {
    let compiler = URL(fileURLWithPath: try which("swiftc")).resolvingSymlinksInPath()
    let library = compiler.deletingLastPathComponent().appendingPathComponent("../lib/swift/linux/Runtime.swiftmodule")
      .path
    let interfaces = (try? FileManager.default.contentsOfDirectory(atPath: library)) ?? []
    let interface = try #require(
      interfaces.first {
        $0.hasSuffix(".private.swiftinterface") && $0.hasPrefix("x86_64")
          || $0.hasPrefix("aarch64") && $0.hasSuffix(".private.swiftinterface")
      })
    let text = String(decoding: try #require(contents(of: library + "/" + interface)), as: UTF8.self)
    guard text.contains("struct CrashLog") else {
      #expect(text.contains("struct Backtrace"), "the interface of the module could not be read")
      return
    }
    let folder = try TemporaryDirectory("decoder")
    let program = """
      @_spi(CrashLog) import Runtime
      import Foundation
      let log = try JSONDecoder().decode(CrashLog<UInt64>.self, from: FileHandle.standardInput.readDataToEndOfFile())
      print(log.threads.map(\\.frames.count))
      """
    try write(Array(program.utf8), to: folder.path + "/main.swift")
    let build = try ChildProcess([compiler.path, "-o", "decode", "main.swift"], directory: folder.path).run()
    #expect(build.status == .exited(0), "\(build.errorText)")
    var decoder = ChildProcess([folder.path + "/decode"])
    decoder.input = SwiftCrashLogWriter().json(of: sampleReport())
    #expect(try decoder.run().text == "[5, 0]\n")
  }

  private func which(_ name: String) throws -> String {
    let outcome = try ChildProcess(
      ["/bin/sh", "-c", "command -v \(name)"],
      environment: ["PATH": Foundation.ProcessInfo.processInfo.environment["PATH"] ?? ""]
    ).run()
    return outcome.text.split(separator: "\n").first.map(String.init) ?? ""
  }
}
