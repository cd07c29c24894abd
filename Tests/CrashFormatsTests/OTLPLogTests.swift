import CrashFormats
import CrashModel
import Foundation
import TestSupport
import Testing

struct OTLPLogTests {
  private func parts(_ report: CrashReport) throws -> (resource: [String: Any], record: [String: Any]) {
    let root = try JSONSerialization.jsonObject(with: Data(OTLPLogWriter().json(of: report))) as? [String: Any]
    let logs = try #require((root?["resourceLogs"] as? [[String: Any]])?.first)
    let scope = try #require((logs["scopeLogs"] as? [[String: Any]])?.first)
    let record = try #require((scope["logRecords"] as? [[String: Any]])?.first)
    return (attributes(logs["resource"]), record.merging(attributes(record)) { first, _ in first })
  }

  private func attributes(_ value: Any?) -> [String: Any] {
    let list = (value as? [String: Any])?["attributes"] as? [[String: Any]] ?? []
    let keys = list.compactMap { $0["key"] as? String }
    #expect(Set(keys).count == list.count)
    return Dictionary(
      list.compactMap { entry in
        guard let key = entry["key"] as? String, let value = entry["value"] as? [String: Any] else { return nil }
        #expect(value.count == 1)
        return value.values.first.map { (key, $0) }
      }, uniquingKeysWith: { first, _ in first })
  }

  @Test func conventions() throws {
    let (resource, record) = try parts(sampleReport())
    #expect(resource["service.name"] as? String == "orderd")
    #expect(resource["service.version"] as? String == "1.4.0")
    #expect(resource["host.arch"] as? String == "amd64")
    #expect(resource["process.pid"] as? String == "4711")
    #expect(record["timeUnixNano"] as? String == "1796015553042000000")
    #expect(record["severityNumber"] as? Int == 21)
    #expect(record["eventName"] as? String == "exception")
    #expect(record["exception.type"] as? String == "Index out of range")
    #expect((record["exception.message"] as? String)?.hasPrefix("Fatal error: Index out of range") == true)
    #expect(
      (record["exception.stacktrace"] as? String)?.contains(
        "inlinedLeaf(_:_:) in orderd at /src/orderd/main.swift:7:68") == true)
    #expect(record["crash.tag.region"] as? String == "eu-west")
    #expect(record["log.record.uid"] as? String == sampleReport().id)
  }

  @Test func handledErrorsAreErrors() throws {
    var report = sampleReport()
    (report.kind, report.fatal, report.type, report.timestamp) = (.exception, false, "orderd.CartError", nil)
    let (_, record) = try parts(report)
    #expect(record["severityText"] as? String == "ERROR")
    #expect(record["exception.type"] as? String == "orderd.CartError")
    #expect(record["timeUnixNano"] == nil)
  }

  /// A tag of the same name as another takes its place, and none takes that of our own attributes.
  @Test func keysAreUnique() throws {
    for seed in 0..<100 { _ = try parts(hostileReport(seed: UInt64(seed))) }
    var report = sampleReport()
    report.tags = [Tag(key: "a", value: "1"), Tag(key: "a", value: "2")]
    #expect(try parts(report).record["crash.tag.a"] as? String == "2")
  }
}
