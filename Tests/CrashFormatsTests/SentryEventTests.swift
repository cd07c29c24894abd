import CrashFormats
import CrashModel
import Foundation
import TestSupport
import Testing

struct SentryEventTests {
  private func event(_ report: CrashReport) throws -> [String: Any] {
    try #require(
      try JSONSerialization.jsonObject(with: Data(SentryEventWriter().event(of: report))) as? [String: Any])
  }

  private func exception(_ event: [String: Any]) throws -> [String: Any] {
    try #require((event["exception"] as? [String: Any])?["values"] as? [[String: Any]])[0]
  }

  @Test func envelope() throws {
    let envelope = SentryEventWriter().envelope(of: sampleReport())
    let lines = envelope.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    #expect(lines.count == 4 && lines[3].isEmpty)
    let header = try JSONSerialization.jsonObject(with: Data(lines[1])) as? [String: Any]
    #expect(header?["length"] as? Int == lines[2].count)
    #expect(header?["type"] as? String == "event")
    #expect(String(decoding: lines[0], as: UTF8.self) == #"{"event_id":"0192a3b4c5d67e8f9a0b1c2d3e4f5a6b"}"#)
  }

  /// Any other id makes one of 32 digits too, always the same.
  @Test func eventID() throws {
    var report = sampleReport()
    for id in ["", "x", "0192A3B4-C5D6-7E8F-9A0B-1C2D3E4F5A6B", "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6", "\u{0}\n"] {
      report.id = id
      let first = try #require(try event(report)["event_id"] as? String)
      #expect(first.utf8.count == 32 && first.allSatisfy { "0123456789abcdef".contains($0) }, "\(first)")
      #expect(try event(report)["event_id"] as? String == first)
    }
    report.id = "0192A3B4-C5D6-7E8F-9A0B-1C2D3E4F5A6B"
    #expect(try event(report)["event_id"] as? String == "0192a3b4c5d67e8f9a0b1c2d3e4f5a6b")
  }

  @Test func debugID() throws {
    var report = sampleReport()
    for (id, expected) in [
      ("a4b7e00e1409a2223c02df7c20e9291932ccdc25", "0ee0b7a4-0914-22a2-3c02-df7c20e92919"),
      ("01020304", "04030201-0000-0000-0000-000000000000"),
    ] {
      report.images[0].buildID = BuildID(id)
      let meta = try #require(try event(report)["debug_meta"] as? [String: Any])
      let image = try #require(meta["images"] as? [[String: Any]])[0]
      #expect(image["debug_id"] as? String == expected)
      #expect(image["code_id"] as? String == id)
    }
    report.images[0].buildID = nil
    #expect(try event(report)["debug_meta"] == nil)
  }

  @Test func exceptionIsNotSynthetic() throws {
    let exception = try exception(try event(sampleReport()))
    let mechanism = try #require(exception["mechanism"] as? [String: Any])
    #expect(mechanism["synthetic"] as? Bool == false)
    #expect(mechanism["handled"] as? Bool == false)
    #expect(exception["type"] as? String == "Index out of range")
    let frames = try #require((exception["stacktrace"] as? [String: Any])?["frames"] as? [[String: Any]])
    #expect(frames.count == 5)
    // Oldest first.
    #expect(frames.last?["function"] as? String == "inlinedLeaf(_:_:)")
    #expect(frames.last?["in_app"] as? Bool == true)
    #expect(frames.first?["instruction_addr"] as? String == "0x1")
    #expect(try event(sampleReport())["fingerprint"] as? [String] == sampleReport().stackHash.map { [$0.digits] })
  }

  @Test func releaseAndTags() throws {
    var report = sampleReport()
    #expect(try event(report)["release"] as? String == "orderd@1.4.0")
    report.release = "shop@2.0/rc\n1"
    #expect(try event(report)["release"] as? String == "shop@2.0-rc-1")
    report.environment = "None"
    #expect(try event(report)["environment"] == nil)
    report.tags = [
      Tag(key: "a b\"c", value: "line\nline"), Tag(key: "a_b_c", value: "later"), Tag(key: "empty", value: ""),
      Tag(key: String(repeating: "k", count: 99), value: String(repeating: "v", count: 999)),
    ]
    let tags = try #require(try event(report)["tags"] as? [String: String])
    #expect(tags["a_b_c"] == "later")
    #expect(tags["empty"] == nil)
    #expect(tags[String(repeating: "k", count: 32)]?.count == 200)
    #expect(tags["reason"] == "bounds")
  }

  @Test func threadsHaveTheirOwnNumbers() throws {
    var report = sampleReport()
    report.threads = [4711, nil, 4711, 1, nil].map { ThreadInfo(id: $0, frames: report.threads[0].frames) }
    report.crashedThreadIndex = 2
    let event = try event(report)
    let threads = try #require((event["threads"] as? [String: Any])?["values"] as? [[String: Any]])
    #expect(Set(threads.compactMap { $0["id"] as? Int }).count == 5)
    #expect(threads.map { $0["stacktrace"] != nil } == [true, true, false, true, true])
    #expect(try exception(event)["thread_id"] as? Int == threads[2]["id"] as? Int)
  }

  /// A tracker refuses an event beyond a megabyte whole.
  @Test func neverTooLarge() throws {
    var report = sampleReport()
    let frames = Array(repeating: report.threads[0].frames[0], count: 400)
    report.threads += Array(repeating: ThreadInfo(frames: frames), count: 20)
    var bytes = SentryEventWriter().event(of: report)
    #expect(bytes.count <= 1_000_000)
    #expect(String(decoding: bytes, as: UTF8.self).contains("left_out"))
    let frame = try #require(try exception(event(report))["stacktrace"] as? [String: Any])
    #expect((frame["frames"] as? [Any])?.count == 5)
    report.threads = [ThreadInfo(frames: Array(repeating: report.threads[0].frames[0], count: 10_000))]
    bytes = SentryEventWriter().event(of: report)
    #expect(bytes.count <= 1_000_000)
    #expect(String(decoding: bytes, as: UTF8.self).contains("(9800 frames not kept)"))
  }

  @Test func snapshotWithoutACrash() throws {
    var report = sampleReport()
    (report.kind, report.fatal, report.crashedThreadIndex, report.message) = (.snapshot, false, nil, nil)
    let event = try event(report)
    #expect(event["exception"] == nil)
    #expect(event["level"] as? String == "info")
    #expect((event["message"] as? [String: String])?["formatted"] == "Snapshot of all threads")
  }
}
