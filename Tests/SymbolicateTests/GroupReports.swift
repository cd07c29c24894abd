import CrashModel
import TestSupport

/// A crash in a function of the service `orderd` that has its names already, so that nothing on this machine changes them.
func namedReport(
  _ number: Int, bug: Int = 0, release: String? = "1.0.0", day: Int = 1, second: Int? = nil, host: String = "h1"
) -> CrashReport {
  let digits = String(number, radix: 16)
  var report = CrashReport(
    id: "01900000-0000-7000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits)
  report.service = "orderd"
  report.release = release
  // 2026-11-01 is day 1.
  report.timestamp = Timestamp(
    rawValue: (20_757 + Int64(day)) * 86_400_000_000_000 + Int64(second ?? number) * 1_000_000_000)
  report.type = "SIGSEGV"
  report.signal = SignalInfo(number: 11, name: "SIGSEGV", address: Address(rawValue: 0))
  report.process = ProcessInfo(id: 7, executable: "/srv/orderd", host: host)
  report.images = [
    Image(
      path: "/srv/orderd", buildID: BuildID(bytes: Array(1...20)), address: Address(rawValue: 0x4000), size: 1 << 20)
  ]
  report.crashedThreadIndex = 0
  report.threads = [
    ThreadInfo(
      id: 1, crashed: true,
      frames: ["lookUp\(bug)", "serve"].enumerated().map { index, name in
        .symbolicated(
          SymbolicatedFrame(
            captured: CapturedFrame(
              kind: index == 0 ? .programCounter : .returnAddress,
              address: Address(rawValue: 0x5000 + UInt64(bug * 64)),
              imageIndex: 0, imageOffset: ImageOffset(rawValue: 0x1000 + UInt64(bug * 64))),
            status: .resolved, function: "\(name)()", rawFunction: "$s6orderd\(name.utf8.count)\(name)yyF",
            file: "/build/orderd/Store.swift", line: 10 + bug, declarationLine: 9 + bug, hasDebugInformation: true))
      })
  ]
  return report
}

extension TemporaryDirectory {
  /// Writes reports as NDJSON and gives the file's path.
  func file(_ name: String, reports: [CrashReport]) throws -> String {
    try file(name, reports.flatMap { $0.json() + [0x0A] })
  }
}
