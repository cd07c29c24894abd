internal import CrashModel

/// Reports of a service that has many bugs, made from a number: the same ones in every run, on every machine.
///
/// As `symbolicate --format ndjson` writes them: named frames with inlined functions, images, breadcrumbs, the stack hash
/// with the quality of debug information. A few bugs make most of the crashes, every caller of a function may lead to
/// its bug, and every release has its own addresses.
struct GeneratedReports {
  private static let releaseCount = 6
  private static let functionCount = 4_000
  private let bugCount: Int
  private let functions: [Function]
  private let hasher = StackHasher()
  private var random: SplitMix
  /// What the analysis makes of each bug, whichever way led to it: made once, as ten million analyses would take longer
  /// than what is to be measured.
  private var analyses: [Int: (reason: Reason, hash: StackHash)] = [:]

  private struct Function {
    var name: String
    var rawName: String
    var file: String
  }

  init(bugs: Int, seed: UInt64) {
    bugCount = max(bugs, 1)
    random = SplitMix(state: seed)
    functions = (0..<max(Self.functionCount, bugCount)).map { Self.function(number: $0) }
  }

  private static let nouns = [
    "Store", "Cart", "Invoice", "Courier", "Session", "Ledger", "Catalog", "Coupon", "Refund", "Warehouse", "Mailer",
    "Parcel",
  ]
  private static let verbs = [
    "load", "merge", "settle", "encode", "reserve", "apply", "expire", "dispatch", "compare", "open",
  ]

  private static func function(number: Int) -> Function {
    let type = nouns[number % nouns.count] + String(number / 120)
    let method = verbs[number / nouns.count % verbs.count] + "All"
    return Function(
      name: "\(type).\(method)(for:)",
      rawName: "$s6orderd\(type.utf8.count)\(type)C\(method.utf8.count)\(method)3forySi_tF",
      file: "/build/orderd/Sources/orderd/\(nouns[number % nouns.count])/\(type).swift")
  }

  private static let runtime: [(function: String, raw: String)] = [
    (
      "_assertionFailure(_:_:file:line:flags:)",
      "$ss17_assertionFailure__4file4line5flagss5NeverOs12StaticStringV_SSAHSus6UInt32VtF"
    ),
    (
      "Array._checkSubscript(_:wasNativeTypeChecked:)",
      "$sSa15_checkSubscript_20wasNativeTypeChecked0E0s16_DependenceTokenVSi_SbtF"
    ),
    ("Array.subscript.getter", "$sSayxSicig"),
  ]
  private static let outermost = [
    "swift_job_runImpl", "_dispatch_root_queue_drain", "_dispatch_worker_thread", "start_thread", "__clone3",
  ]

  /// - Parameter number: gives the report its id and its time.
  mutating func next(number: Int) -> CrashReport {
    // Squared twice, so that the first tenth of the bugs makes more than half of the crashes.
    let share = random.fraction()
    let bug = min(Int(share * share * share * share * Double(bugCount)), bugCount - 1)
    let release = random.below(Self.releaseCount)
    var report = CrashReport(id: Self.id(number))
    report.timestamp = Timestamp(rawValue: 1_790_000_000_000_000_000 + Int64(number) * 260_000_000)
    report.type = "SIGILL"
    report.signal = SignalInfo(
      number: 4, name: "SIGILL", code: 2, codeName: "ILL_ILLOPN", address: Address(rawValue: 0x5500_0000_0000))
    report.process = ProcessInfo(
      id: Int32(1_000 + number % 30_000), executable: "/srv/orderd/bin/orderd", host: "orderd-\(random.below(40))",
      system: "Debian GNU/Linux 12 (bookworm)", architecture: "x86_64", startTime: report.timestamp)
    report.service = "orderd"
    report.release = "1.\(release).0"
    report.environment = "production"
    report.operation = "POST /orders/merge"
    report.tags = [Tag(key: "region", value: "eu-west"), Tag(key: "tier", value: "gold")]
    report.breadcrumbs = (0..<10).map { index in
      Breadcrumb(
        timestamp: Timestamp(
          rawValue: 1_790_000_000_000_000_000 + Int64(number) * 260_000_000 - Int64(10 - index) * 1_000_000),
        category: "http",
        message: "request GET /orders/\(random.below(9_000)), answered with 200 after some milliseconds")
    }
    report.images = Self.images(release: release)
    report.crashedThreadIndex = 0
    report.threads = [
      ThreadInfo(
        id: UInt32(2_000 + number % 30_000), crashed: true, depth: 20, registers: Self.registers,
        frames: frames(bug: bug, release: release))
    ]
    let known: (reason: Reason, hash: StackHash)
    if let analysis = analyses[bug] {
      known = analysis
    } else {
      let analysis = hasher.analyze(report)
      known = (analysis.reason, analysis.hash)
      analyses[bug] = known
    }
    report.reason = known.reason
    report.stackHash = known.hash
    return report
  }

  private mutating func frames(bug: Int, release: Int) -> [Frame] {
    var frames: [Frame] = []
    func add(_ raw: String, _ name: String, _ file: String?, image: Int, seed: Int, inlined: Bool, kind: FrameKind) {
      let offset = UInt64(truncatingIfNeeded: (seed &* 7_919 &+ release &* 104_729) & 0x3f_ffff)
      frames.append(
        .symbolicated(
          SymbolicatedFrame(
            captured: CapturedFrame(
              kind: kind, trust: .cfi, address: Address(rawValue: 0x5500_0000_0000 + UInt64(image) << 32 + offset),
              imageIndex: image, imageOffset: ImageOffset(rawValue: offset)),
            status: .resolved, function: name, rawFunction: raw, file: file, line: file == nil ? nil : 10 + seed % 400,
            column: file == nil ? nil : 9, declarationLine: file == nil ? nil : 8 + seed % 400, inlined: inlined,
            inApp: image == 0,
            hasDebugInformation: file != nil)))
    }
    for (index, function) in Self.runtime.prefix(bug % 3 + 1).enumerated() {
      add(function.raw, function.function, nil, image: 1, seed: index, inlined: false, kind: .programCounter)
    }
    let blamed = functions[bug]
    add(blamed.rawName, blamed.name, blamed.file, image: 0, seed: bug, inlined: false, kind: .returnAddress)
    for depth in 0..<8 + random.below(8) {
      let number = (bug &* 31 &+ depth &* 17 &+ random.below(3)) % functions.count
      let function = functions[number]
      add(
        function.rawName, function.name, function.file, image: 0, seed: number, inlined: depth % 3 == 0,
        kind: .returnAddress)
    }
    for (index, name) in Self.outermost.enumerated() {
      add(name, name, nil, image: index < 3 ? 1 : 2, seed: 90_000 + index, inlined: false, kind: .returnAddress)
    }
    return frames
  }

  private static let registers = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "rip"].enumerated().map {
    ThreadInfo.Register(name: $1, value: 0x7ffd_0000_0000 + UInt64($0) * 8)
  }

  private static func images(release: Int) -> [Image] {
    ["/srv/orderd/bin/orderd", "/srv/orderd/lib/libswiftCore.so", "/srv/orderd/lib/libc.so.6"].enumerated().map {
      Image(
        path: $1,
        buildID: BuildID(bytes: (0..<20).map { byte in UInt8(truncatingIfNeeded: release &* 37 &+ byte &* 11) }),
        address: Address(rawValue: 0x5500_0000_0000 + UInt64($0) << 32), size: 1 << 23)
    }
  }

  private static func id(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return "01900000-0000-7000-8000-" + String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
  }
}

/// SplitMix64: enough for spreading, and the same everywhere.
struct SplitMix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  /// 0 up to, and without, `limit`.
  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(max(limit, 1))) }

  /// 0 up to, and without, 1.
  mutating func fraction() -> Double { Double(next() >> 11) * 0x1p-53 }
}
