internal import CrashFormats
internal import CrashModel
private import Glibc

/// `symbolicate runs SPOOL…`: how the runs of a service ended, by release.
struct RunsCommand {
  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output

  init(options: Options, diagnostics: Diagnostics, output: Output) {
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
  }

  func run() throws(Output.Failure) -> ExitStatus {
    var documents = DocumentStream(options, output)
    var failures = 0
    var runs = 0
    var isFirst = true
    for spool in options.operands {
      let history: RunHistory
      do throws(HistoryFailure) { history = try Self.history(in: spool) } catch {
        failures += 1
        diagnostics.error(spool.description, error.message)
        try documents.error(spool.description, error.message)
        continue
      }
      runs += history.releases.reduce(0) { $0 + $1.runs }
      for release in history.releases {
        try documents.add("release-runs/1") { Self.write(release, of: spool, to: &$0) }
      }
      for hang in history.hangs {
        try documents.add("run-hang/1") { Self.write(hang, of: spool, to: &$0) }
      }
      if options.format == .text {
        try output.write((isFirst ? "" : "\n") + text(of: history, spool))
        isFirst = false
      }
    }
    try documents.end(["runs": runs, "errors": failures])
    if failures == options.operands.count { return .nothing }
    return failures > 0 ? .incomplete : .complete
  }

  private struct HistoryFailure: Error {
    var message: String
  }

  private static func history(in spool: FilePath) throws(HistoryFailure) -> RunHistory {
    let path = spool.appending(RunHistory.fileName)
    let descriptor = path.withCString { open($0, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
    guard descriptor >= 0 else { throw failure(errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw HistoryFailure(message: "'history' in it is no file") }
    var bytes = [UInt8](repeating: 0, count: RunHistory.maximumBytes)
    var length = 0
    while length < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer in
        read(descriptor, buffer.baseAddress.map { $0 + length }, buffer.count - length)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(errno) }
      if count == 0 { break }
      length += count
    }
    guard bytes.starts(with: "run-history ".utf8) else {
      throw HistoryFailure(message: "'history' in it is no history of runs")
    }
    return RunHistory(text: Array(bytes[..<length]))
  }

  private static func failure(_ number: Int32) -> HistoryFailure {
    HistoryFailure(
      message: number == ENOENT
        ? "no run has been counted here; name the directory of a service's crash reports"
        : "its history cannot be read: \(errnoText(number))")
  }

  // MARK: Text

  private func text(of history: RunHistory, _ spool: FilePath) -> String {
    var table = TextTable(columns: [
      .init("RELEASE", minimumWidth: 10), .init("RUNS", isRightAligned: true),
      .init("CRASHED", isRightAligned: true), .init("NO MEMORY", isRightAligned: true),
      .init("KILLED", isRightAligned: true), .init("SIGNAL", isRightAligned: true),
      .init("OTHER", isRightAligned: true), .init("CLEAN", isRightAligned: true),
      .init("CRASH-FREE", isRightAligned: true),
    ])
    for release in history.releases {
      let clean = Ending.Kind.allCases.filter(\.isOrderly).reduce(0) { $0 + release.count($1) }
      let counts = [
        release.count(.crashed), release.count(.outOfMemory), release.count(.killed), release.count(.terminated),
      ]
      table.add(
        [Printable.line(release.name ?? "-"), String(release.runs)] + counts.map { String($0) } + [
          String(release.runs - counts.reduce(0, +) - clean), String(clean), Self.percent(release),
        ])
    }
    var text = options.operands.count > 1 ? "\(spool.description):\n" : ""
    guard !history.releases.isEmpty else { return text + "No run has ended yet.\n" }
    text += table.text(width: output.width)
    if let last = history.runs.last {
      let how = [last.ending.rawValue, last.signal, last.stackHash].compactMap { $0 }.joined(separator: ", ")
      text += "Last run: \(Printable.line(last.id)) (\(Printable.line(how)))"
      let row = history.sameCrashesInARow
      text += row > 1 ? "; the same crash \(row) times in a row\n" : "\n"
    }
    return text + hangs(of: history)
  }

  private static let hangsShown = 10

  /// The last ones; JSON has all that are kept.
  private func hangs(of history: RunHistory) -> String {
    guard !history.hangs.isEmpty else { return "" }
    var table = TextTable(columns: [
      .init("HANG", minimumWidth: 10), .init("RELEASE"), .init("LASTED", isRightAligned: true), .init("REPORT"),
    ])
    for hang in history.hangs.suffix(Self.hangsShown) {
      table.add([
        Printable.line(hang.watch), Printable.line(hang.release ?? "-"),
        hang.milliseconds.map { "\($0 / 1_000).\($0 / 100 % 10) s" } ?? "no end", Printable.line(hang.reportID),
      ])
    }
    return "\n" + table.text(width: output.width)
  }

  /// Never 100.0 % where there was a crash.
  private static func percent(_ release: RunHistory.Release) -> String {
    guard let part = release.crashFree else { return "-" }
    let tenths = Int(part * 1_000)
    return "\(tenths / 10).\(tenths % 10) %"
  }

  // MARK: JSON

  private static func write(_ hang: RunHistory.Hang, of spool: FilePath, to writer: inout JSONWriter) {
    writer.member("spool", spool.description)
    writer.member("report_id", hang.reportID)
    writer.member("run_id", hang.runID)
    writer.member("release", hang.release)
    writer.member("watch", hang.watch)
    writer.member("duration_ms", hang.milliseconds)
  }

  private static func write(_ release: RunHistory.Release, of spool: FilePath, to writer: inout JSONWriter) {
    writer.member("spool", spool.description)
    writer.member("release", release.name)
    writer.member("runs", release.runs)
    writer.key("endings")
    writer.beginObject()
    for kind in Ending.Kind.allCases where release.count(kind) > 0 {
      writer.key(kind.rawValue)
      writer.integer(release.count(kind))
    }
    writer.endObject()
  }
}
