import CrashModel
import Foundation
import TestSupport
import Testing

/// What `symbolicate` says of a core.
struct CoreReading {
  private struct Document: Decodable {
    struct Signal: Decodable {
      var number: Int32
      var code: Int32?
      var address: String?
    }
    struct Thread: Decodable {
      struct Frame: Decodable {
        var address: String?
        var inlined: Bool?
        var function: String?
      }
      var id: UInt32
      var crashed: Bool?
      var frames: [Frame]
    }
    var signal: Signal?
    var message: String?
    var threads: [Thread]
  }

  private let document: Document

  init(_ core: String) throws {
    let outcome = try ChildProcess([
      builtProduct("symbolicate"), "--no-cache", "--format", "json", core,
    ]).run()
    #expect(outcome.status == .exited(0) || outcome.status == .exited(1), "\(outcome.errorText)")
    document = try JSONDecoder().decode(Document.self, from: Data(outcome.output))
  }

  private static func hex(_ text: String) -> UInt64? { UInt64(text.dropFirst(2), radix: 16) }

  /// Frames of all threads as the debugger finds them; signal and address as the handler of the same crash did; the
  /// message that the program wrote.
  ///
  /// - Parameter isRaisedAgain: the host's own handler ended the process, by a signal of its own.
  func expect(
    _ stacks: [UInt32: [UInt64]], like captured: CrashReport, said text: String, isRaisedAgain: Bool = false
  ) {
    #expect(document.threads.count == stacks.count)
    for thread in document.threads {
      let frames = thread.frames.filter { $0.inlined != true }.compactMap { $0.address.flatMap(Self.hex) }
      guard let judge = stacks[thread.id] else {
        Issue.record("the debugger knows no thread \(thread.id)")
        continue
      }
      if frames.count > 400 {
        #expect(judge.count > 300 && frames.prefix(300) == judge.prefix(300), "thread \(thread.id)")
      } else {
        #expect(frames == judge, "thread \(thread.id)")
      }
    }
    #expect(document.threads.filter { $0.crashed == true }.map(\.id) == [captured.crashedThread?.id])
    #expect(document.signal?.number == captured.signal?.number)
    if !isRaisedAgain {
      #expect(document.signal?.code == captured.signal?.code)
      #expect(document.signal?.address.flatMap(Self.hex) == captured.signal?.address?.rawValue)
    }
    // The runtime writes the same words to standard error; numbers in them are redacted in the report.
    let fatal = text.split(separator: "\n").first { $0.contains("Fatal error: ") }
    if let line = fatal, let start = line.range(of: "Fatal error: ") {
      let said = line[start.upperBound...].prefix(12).prefix { !$0.isNumber && $0 != "@" }
      #expect(document.message?.contains("Fatal error: " + said) == true, "\(document.message ?? "nil")")
    } else if text.contains("malloc(): ") {
      #expect(document.message?.hasPrefix("malloc(): ") == true)
    }
  }
}
