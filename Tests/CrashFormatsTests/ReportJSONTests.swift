import CrashFormats
import CrashModel
import Foundation
import TestSupport
import Testing

struct ReportJSONTests {
  @Test func readingGivesWhatWasWritten() throws {
    let reader = try #require(ReportReader())
    let report = sampleReport()
    #expect(try reader.report(from: report.json()) == report)
    #expect(try reader.report(from: report.json(pretty: true)) == report)
    let minimal = CrashReport(id: "x", kind: .snapshot, fatal: false)
    #expect(try reader.report(from: minimal.json()) == minimal)
  }

  @Test func minimalDocument() {
    let text = String(decoding: CrashReport(id: "x", kind: .hang, fatal: false).json(), as: UTF8.self)
    #expect(text == #"{"schema":"crash-report/1","id":"x","kind":"hang","fatal":false}"#)
  }

  @Test func documentBytes() {
    let text = String(decoding: sampleReport().json(), as: UTF8.self)
    #expect(
      text.hasPrefix(
        #"{"schema":"crash-report/1","id":"0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b","kind":"crash","fatal":true,"timestamp":"2026-11-30T05:12:33.042Z","type":"SIGILL","reason":"bounds","message":"Fatal error: Index out of range \"x\" \\ \u001b[31m\nsecond line é 🚀 \u0085","stack":"#
      ))
    #expect(
      text.contains(
        #""previous_stack_hashes":[{"stack_hash":"fedcba9876543210fedcba9876543210","stack_hash_quality":"symtab"}],"thread":0,"#
      ))
    #expect(text.contains(#""tags":{"region":"eu-west","a b\"c":""}"#))
    #expect(text.contains(#"{"kind":"omitted","count":347}"#))
    #expect(
      text.contains(
        #"{"kind":"return_address","trust":"cfi","address":"0x00005599f587b3f5","image_index":0,"image_offset":"0x53f5"}"#
      ))
    #expect(text.contains(#""registers":{"rip":"0x00005599f587b9e0","rsp":"0xffffffffffffffff"}"#))
    #expect(!text.contains("\n"))
  }

  @Test func foundationReadsTheSame() throws {
    for pretty in [false, true] {
      let object = try #require(
        JSONSerialization.jsonObject(with: Data(sampleReport().json(pretty: pretty))) as? [String: Any])
      #expect(object["message"] as? String == sampleReport().message)
      #expect(object["stack"] as? String == sampleReport().stackText)
      let threads = try #require(object["threads"] as? [[String: Any]])
      #expect((threads[0]["frames"] as? [Any])?.count == 5)
      #expect((object["tags"] as? [String: String])?["a b\"c"]?.isEmpty == true)
      // What another writer makes of it is the same report to us (Foundation puts keys in another order, which is the
      // order of tags and registers: one of each is compared).
      var report = sampleReport()
      report.tags.removeLast()
      report.threads[0].registers.removeLast()
      let copy = try JSONSerialization.jsonObject(with: Data(report.json(pretty: pretty)))
      let rewritten = try JSONSerialization.data(withJSONObject: copy)
      #expect(try #require(ReportReader()).report(from: Array(rewritten)) == report)
    }
  }

  /// Every place of the document gets a value of each other type; none may be taken, none may trap.
  @Test func wrongTypeInEachField() throws {
    let reader = try #require(ReportReader())
    let root = try JSONSerialization.jsonObject(with: Data(sampleReport().json()))
    var paths: [[PathStep]] = []
    collect(root, [], &paths)
    #expect(paths.count > 100)
    let values: [(name: String, value: Any)] = [
      ("an object", [String: Any]()), ("an array", [Any]()), ("a string", "§"), ("a number", 12.5), ("a boolean", true),
    ]
    for path in paths {
      let old = kind(of: value(root, at: path[...]))
      for (name, value) in values where name != old {
        let changed = replacing(root, at: path[...], with: value)
        let bytes = Array(try JSONSerialization.data(withJSONObject: changed))
        let place = path.map(\.description).joined()
        do throws(ReportError) {
          _ = try reader.report(from: bytes)
          Issue.record("\(place): \(name) instead of \(old) was taken")
        } catch {
          let expected = place.hasPrefix(".") ? String(place.dropFirst()) : place
          #expect(error.path == expected, "\(error)")
          #expect(error.problem.contains("expected"), "\(error)")
        }
      }
    }
  }

  @Test func nullIsAbsent() throws {
    let reader = try #require(ReportReader())
    let report = try reader.report(
      from: Array(#"{"schema":"crash-report/1","id":"x","message":null,"threads":null,"new_key":[1,{"a":2}]}"#.utf8))
    #expect(report == CrashReport(id: "x"))
  }

  @Test func messagesNameThePlace() throws {
    let reader = try #require(ReportReader())
    func problem(_ text: String) -> String {
      do throws(ReportError) {
        _ = try reader.report(from: Array(text.utf8))
        return "none"
      } catch { return error.description }
    }
    #expect(
      problem(#"{"schema":"crash-report/1","id":"x","threads":[{"frames":[{"kind":"program_counter","address":4}]}]}"#)
        == "threads[0].frames[0].address: expected a hex string, found a number")
    #expect(problem(#"{"schema":"crash-report/2","id":"x"}"#).hasPrefix("schema: \"crash-report/2\" is a version that"))
    #expect(problem(#"{"schema":"crash-report/1"}"#) == "id: missing")
    #expect(
      problem(#"{"schema":"crash-report/1","id":"x","fatal":tru}"#)
        == "not JSON: expected a value, found 't' at byte 44")
    #expect(problem("{\"schema\":\"crash-report/1\",\"id\":\"\u{1}\"}").contains("at byte 33"))
    #expect(problem(#"{"a":99999999999999999999}"#) == "not JSON: a number beyond 64 bits at byte 5")
    #expect(problem("[]") == "expected an object, found an array")
    #expect(problem("") == "no JSON: nothing but white space")
    #expect(problem(String(repeating: "[", count: 100_000)).contains("nested deeper than 64 levels"))
  }

  @Test func unknownValuesAreNoted() throws {
    let reader = try #require(ReportReader())
    let text =
      #"{"schema":"crash-report/1","id":"x","kind":"meltdown","threads":[{"status":"lost","frames":[{"kind":"leap","address":"0x1"},{"kind":"leap","address":"0x2"}]}]}"#
    let report = try reader.report(from: Array(text.utf8))
    #expect(report.kind == .crash)
    #expect(report.notes.count == 3)
    #expect(report.threads[0].frames.count == 2)
  }

  @Test func cutAtEveryByte() throws {
    let reader = try #require(ReportReader())
    let bytes = sampleReport().json()
    for length in 0..<bytes.count {
      #expect(throws: ReportError.self) { try reader.report(from: Array(bytes[..<length])) }
    }
  }

  @Test func badUTF8() throws {
    let reader = try #require(ReportReader())
    for bad: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xE2, 0x82]] {
      let bytes = Array(#"{"schema":"crash-report/1","id":""#.utf8) + bad + Array("\"}".utf8)
      do throws(ReportError) {
        _ = try reader.report(from: bytes)
        Issue.record("taken: \(bad)")
      } catch {
        #expect(error.description.contains("not UTF-8"))
        #expect(error.description.contains("at byte 33"))
      }
    }
  }

  /// No bytes trap, and what is taken can be written and read again.
  @Test func seededMutations() throws {
    let reader = try #require(ReportReader())
    let original = sampleReport().json()
    var random = SeededGenerator(seed: 20_261_130)
    var taken = 0
    for _ in 0..<8_000 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[index] = UInt8.random(in: .min ... .max, using: &random)
        case 1: bytes.remove(at: index)
        case 2:
          bytes.insert(UInt8(ascii: ["\"", "{", "]", "9", ",", "\\"].randomElement(using: &random) ?? ","), at: index)
        default:
          let end = min(bytes.count, index + Int.random(in: 1...64, using: &random))
          bytes.removeSubrange(index..<end)
        }
      }
      guard let report = try? reader.report(from: bytes) else { continue }
      taken += 1
      #expect(throws: Never.self) { try reader.report(from: report.json()) }
    }
    #expect(taken > 100)
  }

  // MARK: Paths

  private enum PathStep: CustomStringConvertible {
    case key(String)
    case index(Int)

    var description: String {
      switch self {
      case .key("a b\"c"): #"["a b\"c"]"#
      case .key(let key): ".\(key)"
      case .index(let index): "[\(index)]"
      }
    }
  }

  private func collect(_ value: Any, _ path: [PathStep], _ paths: inout [[PathStep]]) {
    if !path.isEmpty { paths.append(path) }
    if let object = value as? [String: Any] {
      for (key, value) in object { collect(value, path + [.key(key)], &paths) }
    } else if let array = value as? [Any] {
      for (index, value) in array.enumerated() { collect(value, path + [.index(index)], &paths) }
    }
  }

  private func value(_ root: Any, at path: ArraySlice<PathStep>) -> Any {
    switch path.first {
    case .key(let key): value((root as? [String: Any])?[key] as Any, at: path.dropFirst())
    case .index(let index): value((root as? [Any])?[index] as Any, at: path.dropFirst())
    case nil: root
    }
  }

  private func replacing(_ root: Any, at path: ArraySlice<PathStep>, with new: Any) -> Any {
    switch path.first {
    case .key(let key):
      var object = root as? [String: Any] ?? [:]
      object[key] = replacing(object[key] as Any, at: path.dropFirst(), with: new)
      return object
    case .index(let index):
      var array = root as? [Any] ?? []
      array[index] = replacing(array[index], at: path.dropFirst(), with: new)
      return array
    case nil: return new
    }
  }

  private func kind(of value: Any) -> String {
    if value is [String: Any] { return "an object" }
    if value is [Any] { return "an array" }
    if value is String { return "a string" }
    if let number = value as? NSNumber, isBoolean(number) { return "a boolean" }
    return "a number"
  }

  private func isBoolean(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
}

struct TimestampTests {
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("1969-12-31T23:59:59.999Z", -1_000_000),
    ("2000-02-29T12:00:00+02:00", 951_818_400_000_000_000),
    ("2016-12-31T23:59:60Z", 1_483_228_800_000_000_000), ("2016-12-31T23:59:60.5Z", 1_483_228_800_500_000_000),
    ("2016-12-31T15:59:60-08:00", 1_483_228_800_000_000_000), ("2017-01-01T05:29:60+05:30", 1_483_228_800_000_000_000),
    ("1969-12-31T23:59:60Z", 0), ("2015-06-30T23:59:60Z", 1_435_708_800_000_000_000),
    ("2026-11-30T05:12:33.0421239999Z", 1_796_015_553_042_123_999),
  ])
  func reads(text: String, nanoseconds: Int64) { #expect(Timestamp(rfc3339: text)?.rawValue == nanoseconds) }

  @Test(arguments: [
    "", "2026", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00",
    // A second 60 within a day, within a month, by local time only; a second 61.
    "2026-01-31T12:00:60Z", "2026-01-30T23:59:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31T23:59:61Z",
    "2026-01-01T00:00:00.Z", "9999-01-01T00:00:00Z", "2026-01-01T00:00:00Zx", "2026-01-01T00:00:00+0200",
  ])
  func refuses(text: String) { #expect(Timestamp(rfc3339: text) == nil) }

  @Test func agreesWithFoundation() throws {
    let formatter = ISO8601DateFormatter()
    formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
    var random = SeededGenerator(seed: 7)
    for _ in 0..<2_000 {
      let seconds = Int64.random(in: -9_000_000_000...9_000_000_000, using: &random)
      let text = Timestamp(rawValue: seconds * 1_000_000_000 + 123_456_789).rfc3339
      let date = try #require(formatter.date(from: text))
      #expect(abs(date.timeIntervalSince1970 - Double(seconds) - 0.123) < 0.001)
      #expect(Timestamp(rfc3339: text)?.rawValue == seconds * 1_000_000_000 + 123_000_000)
    }
    // Dropping digits goes below the range at its start, so that this one text cannot be read again.
    #expect(Timestamp(rfc3339: Timestamp(rawValue: .max).rfc3339) != nil)
    #expect(Timestamp(rawValue: .min).rfc3339 == "1677-09-21T00:12:43.145Z")
  }
}
