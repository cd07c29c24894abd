internal import CrashFormats
internal import CrashGrouping
internal import CrashModel
private import Glibc

/// What one part of the work costs, the others left out. Processor time of this process.
struct Measurements {
  private let lines: [[UInt8]]
  private let size: Int
  private let reader: ReportReader

  /// - Parameter lines: one report each.
  init?(_ lines: [[UInt8]]) {
    guard let reader = ReportReader() else { return nil }
    self.reader = reader
    size = lines.reduce(0) { $0 + $1.count }
    // With room behind each, as a file's buffer has it.
    self.lines = lines.map { $0 + [UInt8](repeating: 0, count: ReportReader.padding) }
  }

  /// Megabytes a second from text to reports.
  func parsing(rounds: Int) throws -> Double {
    let start = Self.processorTime()
    for _ in 0..<rounds { for line in lines { _ = try report(line) } }
    return Double(size * rounds) / 1e6 / (Self.processorTime() - start)
  }

  /// What the tool does with reports whose frames have their names: megabytes a second from text to what a group takes of a
  /// report, and reports a second from there to groups. The second is the difference of two measurements, as what was
  /// read of a report is gone when the next one is parsed; the groups are made in a round before.
  func grouping(ofNamed rounds: Int) throws -> (parsing: Double, grouped: Double) {
    guard let input = InputReader(detail: .crash),
      var analyzer = NamedStackAnalyzer(hasher: StackHasher(), redactor: nil)
    else { return (0, 0) }
    var table = GroupTable()
    var reader = NamedReportReader()
    func time(_ take: (ParsedReport) -> Bool) throws -> Double {
      let start = Self.processorTime()
      for line in lines {
        let count = line.count - ReportReader.padding
        try line.withUnsafeBytes { bytes in
          try input.readLines(UnsafeRawBufferPointer(rebasing: bytes[..<count]), firstLine: 1) { parsed, _ in
            take(parsed)
          } _: { _ in
            true
          }
        }
      }
      return Self.processorTime() - start
    }
    func group(_ parsed: ParsedReport) -> Bool {
      reader.read(parsed)
        && table.add(reader.report, with: &analyzer, stackLimit: 1_000, whole: parsed.report)
    }
    _ = try time(group)
    guard input.takenCount == lines.count else { return (0, 0) }
    var (parsing, all) = (0.0, 0.0)
    for _ in 0..<rounds {
      parsing += try time { reader.read($0) }
      all += try time(group)
    }
    return (Double(size * rounds) / 1e6 / parsing, Double(lines.count * rounds) / max(all - parsing, 1e-9))
  }

  /// Megabytes a second from reports to text.
  func writing(rounds: Int) throws -> Double {
    let reports = try lines.map(report)
    var writer = JSONWriter()
    var written = 0
    let start = Self.processorTime()
    for _ in 0..<rounds {
      for report in reports {
        writer.removeAll()
        report.write(to: &writer)
        written += writer.count
      }
    }
    return Double(written) / 1e6 / (Self.processorTime() - start)
  }

  /// Reports a second from parsed reports to groups: with the analysis of the stack, and where the hash is known. The
  /// first round makes the groups, the others add to them.
  func grouping(rounds: Int) throws -> (analysed: Double, known: Double, shown: Double, groups: Int) {
    let reports = try lines.map(report)
    let hasher = StackHasher()
    var table = GroupTable()
    let start = Self.processorTime()
    for _ in 0..<rounds {
      for report in reports {
        let analysis = hasher.analyze(report)
        if var member = GroupMember(report, analysis: analysis) {
          member.hash = analysis.hash
          table.add(member)
        }
      }
    }
    let analysed = Double(reports.count * rounds) / (Self.processorTime() - start)
    let members = reports.compactMap { report in
      GroupMember(report, analysis: hasher.analyze(report)).map { (member: $0, report: report) }
    }
    // Later ones each time, as a stream has them: each is what its group is shown by.
    var later = members
    func speed(_ add: (GroupMember, CrashReport) -> Void) -> Double {
      for (member, report) in later { add(member, report) }
      var time = 0.0
      for _ in 0..<10 * rounds {
        for index in later.indices { later[index].member.timestamp?.rawValue += 3_600_000_000_000 }
        let start = Self.processorTime()
        for index in later.indices { add(later[index].member, later[index].report) }
        time += Self.processorTime() - start
      }
      return Double(10 * rounds * later.count) / time
    }
    table = GroupTable()
    let known = speed { member, _ in table.add(member) }
    var shown = GroupTable()
    let withStacks = speed { member, report in shown.add(member) { report.stackText(limit: 1_000) } }
    return (analysed, known, withStacks, table.groups().count)
  }

  private func report(_ line: [UInt8]) throws -> CrashReport {
    let document = line.withUnsafeBytes { bytes in
      Result { () throws(ReportError) in try reader.document(in: bytes, count: bytes.count - ReportReader.padding) }
    }
    switch try document.get() {
    case .report(let report): return report
    case .other(let schema): throw ReportError("expected a report, found \(schema ?? "no schema")")
    }
  }

  private static func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
