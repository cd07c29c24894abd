import CrashModel

/// A report with a value in every field that the format has.
func sampleReport() -> CrashReport {
  var report = CrashReport(id: "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b")
  report.timestamp = Timestamp(rfc3339: "2026-11-30T05:12:33.042Z")
  report.type = "SIGILL"
  report.reason = .bounds
  report.message = "Fatal error: Index out of range \"x\" \\ \u{1b}[31m\nsecond line é 🚀 \u{85}"
  report.stackHash = StackHash(digits: String(repeating: "0123456789abcdef", count: 2), quality: .dwarf)
  report.previousStackHashes = [StackHash(digits: String(repeating: "fedcba9876543210", count: 2), quality: .symtab)]
  report.crashedThreadIndex = 0
  report.signal = SignalInfo(
    number: 4, name: "SIGILL", code: 2, codeName: "ILL_ILLOPN", address: Address(rawValue: 0x7f81_6e16_df7f),
    senderPID: 7)
  report.process = ProcessInfo(
    id: 4711, executable: "/usr/bin/orderd", host: "web-3", system: "Debian GNU/Linux 12 (bookworm)",
    architecture: "x86_64", startTime: Timestamp(rfc3339: "2026-11-29T00:00:00.000Z"))
  report.service = "orderd"
  report.release = "1.4.0"
  report.environment = "production"
  report.runID = "0192a3b4-0000-7e8f-9a0b-1c2d3e4f5a6b"
  report.operation = "POST /checkout"
  report.userID = "usr_7c1e"
  report.tags = [Tag(key: "region", value: "eu-west"), Tag(key: "a b\"c", value: "")]
  report.breadcrumbs = [
    Breadcrumb(timestamp: Timestamp(rawValue: 1_796_000_000_000_000_000), category: "db", message: "cache miss")
  ]
  report.suppressedCount = 3
  report.notes = ["the record was cut"]
  let inner = CapturedFrame(
    kind: .programCounter, trust: .context, address: Address(rawValue: 0x5599_f587_b9e0), imageIndex: 0,
    imageOffset: ImageOffset(rawValue: 0x59e0))
  let outer = CapturedFrame(
    kind: .returnAddress, trust: .cfi, address: Address(rawValue: 0x5599_f587_b3f5), imageIndex: 0,
    imageOffset: ImageOffset(rawValue: 0x53f5))
  report.threads = [
    ThreadInfo(
      id: 4711, name: "orderd", crashed: true, depth: 350, status: .captured,
      registers: [.init(name: "rip", value: 0x5599_f587_b9e0), .init(name: "rsp", value: .max)],
      frames: [
        .symbolicated(
          SymbolicatedFrame(
            captured: inner, status: .resolved, function: "inlinedLeaf(_:_:)",
            rawFunction: "$s6orderd11inlinedLeafyS2i_SitF",
            file: "/src/orderd/main.swift", line: 7, column: 68, declarationLine: 6, approximate: true, inlined: true,
            inApp: true, hasDebugInformation: true)),
        .symbolicated(
          SymbolicatedFrame(captured: inner, status: .resolved, function: "middle(_:_:)", inApp: false)),
        .omitted(count: 347), .captured(outer),
        .captured(CapturedFrame(kind: .asyncResume, trust: .async, address: Address(rawValue: 1))),
      ]),
    ThreadInfo(status: .noAnswer),
  ]
  report.images = [
    Image(
      path: "/usr/bin/orderd", buildID: BuildID("a4b7e00e1409a2223c02df7c20e92919"),
      address: Address(rawValue: 0x5599_f587_6000), size: 0x6e00, firstVirtualAddress: 0x40_0000)
  ]
  return report
}
