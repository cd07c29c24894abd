import CrashFormats
import CrashModel
import Foundation
import Testing

/// The captured logs, and what reading them gives.
enum LogSamples {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Resources")

  static let names: [String] = {
    let files = try? FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("logs").path)
    return (files ?? []).sorted()
  }()

  /// The runtime's own, which come through log systems.
  static let swiftNames = names.filter { $0.hasPrefix("swift-") && $0 != "swift-markup.txt" }

  static func text(_ name: String) throws -> String {
    String(decoding: try Data(contentsOf: folder.appendingPathComponent("logs/\(name)")), as: UTF8.self)
  }

  static func bytes(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: folder.appendingPathComponent("logs/\(name)")))
  }

  /// What a reader finds: the reports, and everything else as a sentence.
  static func read(_ bytes: [UInt8]) throws -> (reports: [CrashReport], others: [String]) {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("log-\(UUID().uuidString)")
    try Data(bytes).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    var reports: [CrashReport] = []
    var others: [String] = []
    try #require(InputReader()).read(path: url.path) { event in
      switch event {
      case .report(let report, _): reports.append(report)
      case .skipped(let why, let line): others.append("\(line ?? 0): skipped: \(why)")
      case .problem(let why, let line): others.append("\(line ?? 0): \(why)")
      }
      return true
    }
    return (reports, others)
  }

  static func read(_ text: String) throws -> (reports: [CrashReport], others: [String]) { try read(Array(text.utf8)) }

  static func report(_ text: String) throws -> CrashReport {
    let found = try read(text)
    #expect(found.reports.count == 1, "\(found.reports.count) reports")
    #expect(found.others == [])
    return try #require(found.reports.first)
  }

  /// Without what a log system adds: its time, and the id that is made from it.
  static func content(_ report: CrashReport) -> CrashReport {
    var report = report
    report.id = ""
    report.timestamp = nil
    return report
  }
}
