import CrashModel
import Foundation
import TestSupport
import Testing

@Suite struct StackHashTests {
  /// The algorithm must hold what it reached on the labelled set. Floors a little below the measured figures: a change
  /// that costs more is a worse algorithm, a change that gains raises them.
  @Test func groupsTheLabelledStacks() throws {
    let entries = try LabelledStacks(view: "full").entries
    #expect(entries.count == 1078)
    let hasher = StackHasher()
    let hashes = entries.map { hasher.analyze(LabelledStacks.report(of: $0)).hash }
    let score = LabelledStacks.score(zip(entries, hashes).map { (bug: $0.bug, group: $1.digits) })
    if let path = getenv("STACK_HASH_PREDICTIONS") {
      let text = zip(entries, hashes).map { "\($0.id)\t\($1.digits)" }.joined(separator: "\n") + "\n"
      try text.write(toFile: String(cString: path), atomically: true, encoding: .utf8)
    }
    #expect(score.f1 > 0.90, "\(score)")
    #expect(score.precision > 0.90, "\(score)")
    #expect(hashes.allSatisfy { $0.digits.utf8.count == 32 && Hex.bytes($0.digits)?.count == 16 })

    // Nothing of one report reaches the next one: another order, the same keys.
    var generator = SeededGenerator(seed: 3)
    for index in entries.indices.shuffled(using: &generator).prefix(300) {
      #expect(hasher.analyze(LabelledStacks.report(of: entries[index])).hash == hashes[index])
    }
  }

  /// With symbol tables alone the key is the build's, and holds within a release.
  @Test func groupsWithinABuildBySymbolTables() throws {
    let entries = try LabelledStacks(view: "symtab").entries
    let hasher = StackHasher()
    let hashes = entries.map { hasher.analyze(LabelledStacks.report(of: $0)).hash }
    #expect(hashes.allSatisfy { $0.quality < .dwarf })
    let releases = Set(entries.map(\.rel)).sorted()
    let score = LabelledStacks.score(
      zip(entries, hashes).map {
        (bug: $0.bug * releases.count + (releases.firstIndex(of: $0.rel) ?? 0), group: $0.rel + $1.digits)
      })
    #expect(score.f1 > 0.80, "\(score)")
    // Across builds nothing may meet.
    let shared = Dictionary(grouping: zip(entries, hashes), by: { $0.1.digits }).values.map {
      Set($0.map(\.0.rel)).count
    }
    #expect(shared.allSatisfy { $0 == 1 })
  }

  // MARK: Rules, one by one

  static func frame(
    _ raw: String, file: String? = "/src/Sources/app/a.swift", line: Int? = 10, inlined: Bool = false, image: Int? = 0,
    offset: UInt64 = 0x100, described: Bool = true
  ) -> Frame {
    .symbolicated(
      SymbolicatedFrame(
        captured: CapturedFrame(
          kind: .returnAddress, address: Address(rawValue: 0x5000_0000 &+ offset), imageIndex: image,
          imageOffset: ImageOffset(rawValue: offset)),
        status: .resolved, function: Demangler.simplified(raw) ?? raw, rawFunction: raw, file: described ? file : nil,
        line: described ? line : nil, inlined: inlined, hasDebugInformation: described))
  }

  static func report(
    _ frames: [Frame], signal: Int32 = 4, message: String? = nil, service: String? = "orderd",
    executable: String = "/srv/orderd", build: String = "aa11", depth: UInt64? = nil
  ) -> CrashReport {
    var report = CrashReport(id: "r")
    report.service = service
    report.process = ProcessInfo(executable: executable)
    report.signal = SignalInfo(number: signal, name: "SIG\(signal)")
    report.message = message
    report.images = [
      Image(path: executable, buildID: BuildID(build), address: Address(rawValue: 0x5000_0000), size: 1 << 24),
      Image(
        path: "/usr/lib/swift/linux/libswiftCore.so", buildID: BuildID("cc33"), address: Address(rawValue: 0x7000_0000),
        size: 1 << 24),
    ]
    report.threads = [ThreadInfo(crashed: true, depth: depth ?? UInt64(frames.count), frames: frames)]
    report.crashedThreadIndex = 0
    return report
  }

  static let load = "$s6orderd5StoreC4load2idS2i_tF"
  static let save = "$s6orderd5StoreC4save2idS2i_tF"
  static let subscripts = "$sSa15_checkSubscript_20wasNativeTypeCheckeds16_DependenceTokenVSi_SbtF"
  static let bounds = runtimeFailurePrefix + "Index out of range"

  private func analyze(_ report: CrashReport) -> StackAnalysis { StackHasher().analyze(report) }

  /// `in_app` of each frame, as it is written into a report.
  private func ownership(_ analysis: StackAnalysis, of frames: [Frame]) -> [Bool?] {
    var report = Self.report(frames)
    analysis.decideOwnership(in: &report)
    return report.threads[0].frames.map { $0.symbolicated?.inApp }
  }

  /// Both ends and the middle of a stack that is too deep to be analysed as a whole.
  @Test func everyFrameOfADeepStackIsDecided() {
    let app = Self.frame(Self.load)
    let runtime = Self.frame("swift_retain", offset: 0x200)
    let frames = [runtime] + Array(repeating: app, count: 600) + [.omitted(count: 5), runtime]
    let decided = ownership(analyze(Self.report(frames, signal: 11)), of: frames)
    #expect(decided == [false] + Array(repeating: true, count: 600) + [nil, false])
  }

  @Test func theBlamedFunctionDecides() {
    let one = analyze(
      Self.report([
        Self.frame(Self.bounds, inlined: true), Self.frame(Self.subscripts, line: 0, inlined: true),
        Self.frame(Self.load),
      ]))
    let other = analyze(
      Self.report([
        Self.frame(Self.bounds, inlined: true), Self.frame(Self.subscripts, line: 0, inlined: true),
        Self.frame(Self.save),
      ]))
    #expect(one.reason == .bounds && one.hash.quality == .dwarf)
    #expect(one.blame?.function == "orderd.Store.load(id:)")
    #expect(one.frames.map(\.frameClass.kind) == [.trap, .runtime, .app])
    #expect(one.frames.map(\.isBlamed) == [false, false, true])
    #expect(one.key == "g1\0orderd\0bounds\0orderd.Store.load(id:)")
    #expect(one.hash.digits == String(SHA256Tests.digest(Array(one.key.utf8)).prefix(32)))
    // The same functions of the runtime on top, another bug.
    #expect(one.hash != other.hash)
    #expect(ownership(one, of: one.frames.map { .symbolicated($0.frame) }) == [false, false, true])
  }

  /// Optimised, the check is inlined and the function specialised; not optimised, the runtime's frames are physical and
  /// there is a message. The bug is the same, in another build, at another offset, on another line.
  @Test func sameBugInBothSettings() {
    let optimised = analyze(
      Self.report([
        Self.frame(Self.bounds, line: 0, inlined: true), Self.frame(Self.subscripts, line: 0, inlined: true),
        Self.frame("$s6orderd5StoreC4load2idS2i_tFTf4nd_n", line: 41),
      ]))
    let plain = analyze(
      Self.report(
        [
          Self.frame(
            "$ss17_assertionFailure__4file4line5flagss5NeverOs12StaticStringV_SSAHSus6UInt32VtF", image: 1,
            described: false),
          Self.frame(Self.subscripts, image: 1, described: false), Self.frame(Self.load, line: 43, offset: 0x900),
        ], message: "Swift/ContiguousArrayBuffer.swift:692: Fatal error: Index out of range\n", build: "bb22"))
    #expect(optimised.hash == plain.hash)
  }

  @Test func scopeAndReasonAreInTheKey() {
    let frames = [Self.frame(Self.load)]
    let segv = analyze(Self.report(frames, signal: 11)).hash
    #expect(segv != analyze(Self.report(frames, signal: 8)).hash)
    #expect(segv != analyze(Self.report(frames, signal: 11, service: "billing")).hash)
    // Without a service the executable's name is the scope, wherever the file lies.
    let here = analyze(Self.report(frames, signal: 11, service: nil)).hash
    #expect(here == segv)
    #expect(here == analyze(Self.report(frames, signal: 11, service: nil, executable: "/opt/v2/orderd")).hash)
  }

  @Test func messagesAreNotHashed() {
    let frames = [Self.frame(Self.load)]
    #expect(
      analyze(Self.report(frames, message: "a.swift:1: Fatal error: order 17 lost")).hash
        == analyze(Self.report(frames, message: "a.swift:9: Fatal error: order 18 lost")).hash)
  }

  /// A library's failed precondition is its caller's mistake, a bad index in it is its own.
  @Test func contractsBlameTheCaller() {
    let library = Self.frame("$s3Kit4RingV4pushyyxF", file: "/src/.build/checkouts/kit/Sources/Kit/Ring.swift")
    let frames = [library, Self.frame(Self.load)]
    #expect(
      analyze(Self.report(frames, message: "a.swift:1: Precondition failed: full")).blame?.function
        == "orderd.Store.load(id:)")
    #expect(
      analyze(Self.report(frames, message: "a.swift:1: Fatal error: Index out of range")).blame?.function
        == "Kit.Ring.push(_:)")
    #expect(
      analyze(Self.report([library, library], message: "a.swift:1: Precondition failed")).blame?.function
        == "Kit.Ring.push(_:)")
  }

  @Test func modulesDecideWhoseCodeItIs() {
    let rows: [(Frame, FrameClass.Kind)] = [
      (Self.frame(Self.load), .app),
      (Self.frame("$s4Core4RingV4pushyyxF", file: "/src/Sources/Core/Ring.swift"), .app),
      (Self.frame("$s3Kit4RingV4pushyyxF", file: "/src/.build/checkouts/kit/Sources/Kit/Ring.swift"), .lib),
      (Self.frame("$s3Kit4RingV4pushyyxF", file: "/src/vendor/kit/Ring.swift"), .lib),
      (Self.frame("$s3Kit4RingV4pushyyxF", file: "/x/SourcePackages/kit/Ring.swift"), .lib),
      // The standard library in the application's own image, as a static executable has it.
      (Self.frame(Self.subscripts, file: nil), .runtime), (Self.frame("swift_retain", file: nil), .runtime),
      // The application's extension of a type of the standard library.
      (Self.frame("$sSa6orderdE4topsyyF"), .app),
      (Self.frame("ledger_post", file: "/src/Sources/CLedger/ledger.c"), .app),
      (Self.frame("inflate", file: "/src/vendor/zlib/inflate.c"), .lib),
      (Self.frame("anything", image: 1), .runtime),
      (Self.frame("$s6orderd5StoreCAA7ServiceA2aDP6handleySiSiFTW"), .runtime),
    ]
    for (frame, expected) in rows {
      let frameClass = analyze(Self.report([frame])).frames[0].frameClass
      #expect(frameClass.kind == expected, "\(frame.symbolicated?.rawFunction ?? "") \(frameClass)")
      #expect(!frameClass.rule.isEmpty)
    }
  }

  /// Folded functions carry one of their names, and no debug information.
  @Test func foldedFunctionsAreNobodys() {
    let folded = analyze(
      Self.report([
        Self.frame(Self.save, described: false), Self.frame(Self.load, line: 0, inlined: true),
        Self.frame("$s6orderd5StoreC3runyyF"),
      ]))
    #expect(folded.frames[0].frameClass.kind == .unknown)
    #expect(folded.blame?.function == "orderd.Store.load(id:)")
    let partial = analyze(Self.report([Self.frame(Self.save + "TA", described: false), Self.frame(Self.load)]))
    #expect(partial.blame?.function == "orderd.Store.load(id:)")
  }

  @Test func recursionIsItsCycle() {
    let even = Self.frame("$s6orderd4evenyS2iF")
    let odd = Self.frame("$s6orderd3oddyS2iF")
    func stack(_ first: Frame, _ second: Frame, top: String) -> CrashReport {
      var frames = [Self.frame(top)]
      for _ in 0..<100 { frames += [first, second] }
      frames += [.omitted(count: 90_000)]
      frames += Array(repeating: Self.frame("$s6orderd4mainyyF"), count: 2)
      return Self.report(frames, signal: 11, depth: 90_203)
    }
    let one = analyze(stack(even, odd, top: "swift_retain"))
    #expect(one.reason == .stackOverflow)
    #expect(one.blame?.function == "orderd.even(_:), orderd.odd(_:)")
    // Whichever function hit the guard page, and whatever it called there.
    #expect(one.hash == analyze(stack(odd, even, top: "malloc")).hash)
    #expect(one.hash != analyze(stack(even, even, top: "malloc")).hash)
  }

  // MARK: Quality

  @Test func qualities() {
    func frames(_ described: Bool) -> [Frame] { [Self.frame(Self.load, described: described)] }
    let described = analyze(Self.report(frames(true)))
    let named = analyze(Self.report(frames(false)))
    let address = CapturedFrame(
      kind: .programCounter, address: Address(rawValue: 0x5000_0100), imageIndex: 0,
      imageOffset: ImageOffset(rawValue: 0x100))
    let bare = analyze(Self.report([.captured(address)]))
    #expect(described.hash.quality == .dwarf && named.hash.quality == .symtab && bare.hash.quality == .offsets)
    #expect(bare.blame?.function == "orderd+0x100")
    #expect(Set([described, named, bare].map(\.hash.digits)).count == 3)
    // With debug information across builds, without it within one.
    #expect(described.hash == analyze(Self.report(frames(true), build: "bb22")).hash)
    #expect(named.hash != analyze(Self.report(frames(false), build: "bb22")).hash)
    #expect(named.hash == analyze(Self.report(frames(false))).hash)
    #expect(bare.hash != analyze(Self.report([.captured(address)], build: "bb22")).hash)
    // The load address is in no key.
    var moved = address
    moved.address = Address(rawValue: 0x6666_0100)
    #expect(bare.hash == analyze(Self.report([.captured(moved)])).hash)
  }

  static func nameless(_ offset: UInt64, image: Int = 0) -> Frame {
    let base: UInt64 = image == 0 ? 0x5000_0000 : 0x7000_0000
    return .symbolicated(
      SymbolicatedFrame(
        captured: CapturedFrame(
          kind: .returnAddress, address: Address(rawValue: base &+ offset), imageIndex: image,
          imageOffset: ImageOffset(rawValue: offset)), status: .noSymbols))
  }

  /// A stripped executable: its frames have no name, those of the runtime's libraries do.
  @Test func namelessCodeOfTheApplicationIsToBlame() {
    let trap = Self.frame(Self.subscripts, image: 1, described: false)
    let outer = Self.frame("swift_job_run", image: 1, described: false)
    func stack(_ offset: UInt64, build: String = "aa11", executable: String = "/srv/orderd") -> CrashReport {
      Self.report([trap, Self.nameless(offset), Self.nameless(0x900), outer], executable: executable, build: build)
    }
    let one = analyze(stack(0x100))
    #expect(one.blame?.function == "orderd+0x100")
    #expect(one.hash.quality == .offsets && one.frames.map(\.isBlamed) == [false, true, false, false])
    #expect(ownership(one, of: one.frames.map { .symbolicated($0.frame) }) == [false, true, true, false])
    #expect(one.key == "g1\0orderd\0ill\0\0offsets\0aa11+0x100")
    // Another place of the same build, and the same place of another build, are other bugs.
    #expect(one.hash != analyze(stack(0x200)).hash && one.hash != analyze(stack(0x100, build: "bb22")).hash)
    // An executable is the application's wherever it lies.
    #expect(analyze(stack(0x100, executable: "/usr/lib/orderd/orderd")).blame?.function == "orderd+0x100")
    // A symbol further out, which an export left, is a caller.
    var exported = stack(0x100)
    exported.threads[0].frames.insert(Self.frame("plugin_main", described: false), at: 3)
    #expect(analyze(exported).hash == one.hash)
    // Where the runtime is linked in, its frames have no name either: two places, as one is in the runtime.
    var linked = stack(0x100)
    linked.images[1].path = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    #expect(analyze(linked).blame?.function == "orderd+0x100, orderd+0x900")
    #expect(analyze(linked).frames[1].frameClass.kind == .unknown)
  }

  @Test func namelessCodeElsewhereIsNotToBlame() {
    let load = Self.frame(Self.load, offset: 0x900)
    // A place without a symbol in an image that has debug information, in a library of the system's, in no image.
    for nameless in [Self.nameless(0x100), Self.nameless(0x100, image: 1), Self.nameless(0x100, image: 7)] {
      let analysis = analyze(Self.report([nameless, load]))
      #expect(analysis.blame?.function == "orderd.Store.load(id:)" && analysis.hash.quality == .dwarf)
    }
    let named = analyze(Self.report([Self.frame(Self.load, described: false), Self.nameless(0x100)]))
    #expect(named.blame?.function == "orderd.Store.load(id:)" && named.hash.quality == .symtab)
  }

  /// Every thread of a program with crash reports begins in the capture's function, in the program's own image.
  @Test func whereAThreadBeginsIsNotToBlame() {
    func stack(_ inner: [Frame], named: Bool) -> CrashReport {
      var report = Self.report([])
      report.images.append(
        Image(
          path: "/usr/lib/x86_64-linux-gnu/libc.so.6", buildID: BuildID("ee55"),
          address: Address(rawValue: 0x8000_0000), size: 1 << 20))
      let outer =
        named
        ? [Self.frame("start_thread", image: 2, described: false), Self.frame("clone3", image: 2, described: false)]
        : [Self.nameless(0x10, image: 2), Self.nameless(0x20, image: 2)]
      report.threads[0].frames = inner + [Self.nameless(0x700)] + outer
      return report
    }
    for named in [true, false] {
      let runtime = Self.frame("swift_job_run", image: 1, described: false)
      let none = analyze(stack([runtime], named: named))
      #expect(none.blame?.function == "swift_job_run" && none.hash.quality == .symtab)
      #expect(analyze(stack([runtime, Self.nameless(0x100), runtime], named: named)).blame?.function == "orderd+0x100")
    }
  }

  @Test func namelessRecursionIsItsCycle() {
    func stack(_ first: UInt64, _ second: UInt64, top: String) -> CrashReport {
      var frames = [Self.frame(top, image: 1, described: false), Self.nameless(0xf00)]
      for _ in 0..<100 { frames += [Self.nameless(first), Self.nameless(second)] }
      return Self.report(frames, signal: 11, depth: 90_000)
    }
    let one = analyze(stack(0x100, 0x200, top: "swift_retain"))
    #expect(one.reason == .stackOverflow && one.hash.quality == .offsets)
    #expect(one.blame?.function == "orderd+0x100, orderd+0x200")
    #expect(one.hash == analyze(stack(0x200, 0x100, top: "malloc")).hash)
    #expect(one.hash != analyze(stack(0x100, 0x300, top: "malloc")).hash)
  }

  /// The executable's path is redacted in a report, and is in the hash in two ways.
  @Test func redactionKeepsTheHash() {
    for executable in ["/home/ay/bin/orderd", "/srv/20261130051233/orderd", "/srv/orderd-20261130051233"] {
      for frames in [[Self.frame("$s6orderd5StoreC4load2idS2i_tF", file: nil)], [Self.nameless(0x100)]] {
        let report = Self.report(frames, signal: 11, service: nil, executable: executable)
        var redacted = report
        Redactor().redact(&redacted)
        #expect(redacted.process?.executable != executable)
        #expect(analyze(redacted).hash == analyze(report).hash, "\(executable)")
      }
    }
  }

  /// Of what a report lacks an offset, the image has the load address.
  @Test func offsetsAreFromTheImageNotFromTheProcess() {
    func hash(base: UInt64) -> StackHash {
      var report = Self.report([])
      report.images[0].address = Address(rawValue: base)
      report.threads[0].frames = [
        .captured(CapturedFrame(kind: .programCounter, address: Address(rawValue: base + 0x100), imageIndex: 0))
      ]
      return analyze(report).hash
    }
    #expect(hash(base: 0x5000_0000) == hash(base: 0x6666_0000))
  }

  /// No thread, no frames, frames of no image, garbage: a hash and a reason all the same, and no trap.
  @Test func poorReports() {
    var generator = SeededGenerator(seed: 5)
    let pieces = [
      Self.load, Self.bounds, "", "$s", "_Z", "\0", "a(b<c", "((((", "closure #1 in ", "operator<", "$sTW", "ğ\u{301}",
    ]
    #expect(analyze(CrashReport(id: "x")).hash.digits.utf8.count == 32)
    for _ in 0..<2000 {
      let frames = (0..<Int.random(in: 0...5, using: &generator)).map { _ in
        Self.frame(
          (0..<Int.random(in: 0...3, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }
            .joined(), line: Bool.random(using: &generator) ? 0 : -1, inlined: Bool.random(using: &generator),
          image: [nil, 0, 1, 99, -1].randomElement(using: &generator) ?? 0,
          offset: [0, .max, 77].randomElement(using: &generator) ?? 0,
          described: Bool.random(using: &generator))
      }
      var report = Self.report(frames, signal: Int32.random(in: -3...70, using: &generator))
      if Bool.random(using: &generator) {
        report.crashedThreadIndex = [nil, -1, 5].randomElement(using: &generator) ?? nil
      }
      if Bool.random(using: &generator) { report.images = [] }
      let analysis = analyze(report)
      #expect(analysis.hash.digits.utf8.count == 32 && !analysis.reason.rawValue.isEmpty)
    }
  }
}
