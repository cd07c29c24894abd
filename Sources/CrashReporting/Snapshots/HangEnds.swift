private import CCrashSupport
internal import CrashModel
private import Glibc

/// Hangs that this process has found, until they have ended: how long one lasted is known only behind its report.
// `@unchecked`: everything is reached under the lock.
final class HangEnds: @unchecked Sendable {
  static let shared = HangEnds()

  /// What is known of a hang: the two ends of it come in any order.
  private struct Known {
    var stored: StoredHang?
    var milliseconds: Int64?
  }

  private let lock = BareLock()
  /// By the file name of the record.
  private var hangs: [String: Known] = [:]

  private func update<Result>(_ body: (inout [String: Known]) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return body(&hangs)
  }

  /// It is over. The report is completed on a thread of its own where it is there already, and else when it is made.
  func ended(_ record: String, milliseconds: Int64) {
    let stored: StoredHang? = update { hangs in
      if let stored = hangs.removeValue(forKey: record)?.stored { return stored }
      hangs[record] = Known(milliseconds: milliseconds)
      return nil
    }
    guard let stored, let run = ActiveRun.current else { return }
    BackgroundWork.shared.begin()
    let started = BackgroundThread.run {
      defer { BackgroundWork.shared.end() }
      do throws(SystemError) {
        NextStart.complete(
          stored, milliseconds: milliseconds, spool: try Spool(path: run.directory), limits: run.limits,
          report: { DiagnosticSink.shared.send($0) })
      } catch {
        DiagnosticSink.shared.send(Diagnostic(.spoolUnavailable, "a hang's duration is not in its report: \(error)"))
      }
    }
    if !started { BackgroundWork.shared.end() }
  }

  /// For how long it lasted, where it is over.
  func milliseconds(of record: String) -> Int64? { update { $0[record]?.milliseconds } }

  /// Its report is there.
  ///
  /// - Returns: for how long it lasted, where it has ended meanwhile.
  func stored(_ record: String, _ hang: StoredHang) -> Int64? {
    update { hangs in
      if let milliseconds = hangs.removeValue(forKey: record)?.milliseconds { return milliseconds }
      hangs[record] = Known(stored: hang)
      return nil
    }
  }
}

/// Where a hang was reported.
struct StoredHang: Sendable {
  /// nil where it was counted and not stored.
  var name: ReportName?
  var entry: RunHistory.Hang
}

extension HangInfo {
  /// Adds a duration to a report that this library wrote, whose strings are the only thing in it that may be anything: inside
  /// of them every quotation mark has a backslash before it.
  ///
  /// - Returns: nil where the bytes are no such report, or have a duration.
  static func adding(milliseconds: Int64, to document: [UInt8]) -> [UInt8]? {
    guard let object = document[...].end(of: "\"hang\":{\"watch\":"),
      let samples = document[object...].end(of: "\"samples\":")
    else { return nil }
    let rest = document[samples...]
    guard let end = rest.firstIndex(where: { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      document[end] == UInt8(ascii: "}"), end > samples
    else { return nil }
    return document[..<end] + Array(",\"duration_ms\":\(milliseconds)".utf8) + document[end...]
  }
}

extension ArraySlice where Element == UInt8 {
  /// Behind the first place where these bytes are.
  fileprivate func end(of text: StaticString) -> Int? {
    text.withUTF8Buffer { text in
      guard let first = text.first, count >= text.count else { return nil }
      return (startIndex...(endIndex - text.count)).first { self[$0] == first && self[$0...].starts(with: text) }
        .map { $0 + text.count }
    }
  }
}
