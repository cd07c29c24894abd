/// Computes `stack_hash` with algorithm g1 (`docs/stack-hash.md`).
///
/// A pure function of the report: the same in the daemon at its next start and in `symbolicate`, whatever the order in
/// which reports come.
///
/// ```swift
/// let analysis = StackHasher().analyze(report)
/// print(analysis.hash.digits, analysis.reason, analysis.blame?.function ?? "nobody")
/// ```
public struct StackHasher: Sendable {
  /// The algorithm's id, part of the hash.
  public static let algorithm = "g1"

  /// Modules that are the application's besides the one that is named like its executable.
  public var applicationModules: Set<String>

  /// Leave the build out of hashes of quality `symtab`, so that they hold across builds.
  ///
  /// Names without inlined functions change with the optimiser's mood, so that one bug has several such hashes and several
  /// bugs share one. For whoever has no debug files and never will, and wants to see releases together all the same. These
  /// hashes are other ones than without this option, and never meet them.
  public var leavesBuildOut = false

  /// What the team knows about its own code.
  public var rules: (any StackRules)?

  let names = NameCache()

  public init(
    applicationModules: Set<String> = [], leavesBuildOut: Bool = false, rules: (any StackRules)? = nil
  ) {
    self.applicationModules = applicationModules
    self.leavesBuildOut = leavesBuildOut
    self.rules = rules
  }

  // Enough for every recursion to show its cycle, and few enough to name.
  static let topLimit = 256
  private static let bottomLimit = 64
  // From the trap to the function that decided on it: `abort` alone takes four frames.
  static let endingLimit = 8

  /// - Parameter runtimeFailure: text of the compiler's pseudo-function at the crashing address, if one was found there.
  public func analyze(_ report: CrashReport, runtimeFailure: String? = nil) -> StackAnalysis {
    let thread = report.crashedThread
    var frames: [StackAnalysis.ClassifiedFrame] = []
    frames.reserveCapacity(thread?.frames.count ?? 0)
    for frame in thread?.frames ?? [] {
      switch frame {
      case .symbolicated(let frame): frames.append(.init(frame))
      case .captured(let frame): frames.append(.init(SymbolicatedFrame(captured: frame, status: .noSymbols)))
      case .omitted: break
      }
    }
    if report.kind == .hang, let thread { Self.dropMovingFrames(of: thread, from: &frames) }
    if frames.count > Self.topLimit + Self.bottomLimit {
      frames.removeSubrange(Self.topLimit..<frames.count - Self.bottomLimit)
    }
    var failure = runtimeFailure
    // A loop: the types of a lazy one would be put together from their names, which takes as long as ten frames.
    for index in frames.indices.prefix(4) where failure == nil { failure = frames[index].frame.runtimeFailure }
    let reason = reason(of: report, thread: thread, frames: frames, runtimeFailure: failure)

    let classifier = FrameClassifier(
      applicationModules: modules(of: report), report: report, frames: frames, names: names)
    for index in frames.indices {
      frames[index].frameClass = classifier.classify(
        frames[index].frame, isFolded: index + 1 < frames.count && frames[index + 1].frame.isInlinedWithoutLine)
    }
    if let entry = threadEntry(of: frames, in: report), frames[entry].frameClass.isNamelessApplication {
      frames[entry].frameClass = FrameClass(kind: .runtime, name: nil, rule: .noSymbolAtThreadStart)
    }
    var analysis = StackAnalysis(
      reason: reason, hash: StackHash(digits: "", quality: .offsets), blame: nil, frames: consume frames)
    let revision = rules?.revise(&analysis, report: report)
    let scope = scope(of: report)
    if reason == .stackOverflow {
      blameRecursion(&analysis, report: report, scope: scope)
    } else {
      blameFrame(&analysis, report: report, scope: scope, revision: revision)
    }
    applyGroup(to: &analysis, report: report, scope: scope)
    return analysis
  }

  /// The tag by which a program says itself which crashes belong together.
  public static let groupTag = "fingerprint"

  // A group that was asked for by the report's tag, or by a rule.
  private func applyGroup(to analysis: inout StackAnalysis, report: CrashReport, scope: String) {
    let verdict = rules?.judge(analysis, report: report)
    analysis.ignoresSite = verdict?.ignoresSite ?? false
    let asked = report.tags.first { $0.key == Self.groupTag }?.value
    guard let text = asked ?? verdict?.group, !text.isEmpty else { return }
    var name = ""
    var rest = Substring(text)
    // Once over the text, so that what is put in is not looked through for further marks.
    while let open = rest.firstIndex(of: "{") {
      name += rest[..<open]
      rest = rest[open...]
      let marks = [
        ("{default}", analysis.hash.digits), ("{function}", analysis.blame?.function ?? ""),
        ("{reason}", analysis.reason.rawValue),
      ]
      if let mark = marks.first(where: { rest.hasPrefix($0.0) }) {
        name += mark.1
        rest = rest.dropFirst(mark.0.count)
      } else {
        name += "{"
        rest = rest.dropFirst()
      }
    }
    name += rest
    // What the name is made of decides how far it holds: a text of its own holds everywhere.
    let isOwn = !text.utf8Contains("{default}") && !text.utf8Contains("{function}")
    analysis.key = Self.algorithm + "\0" + scope + "\0group\0" + name
    analysis.hash = Self.hash(of: analysis.key, quality: isOwn ? .dwarf : analysis.hash.quality)
    analysis.group = name
  }

  // What a thread that hangs happens to call does not identify the hang: the innermost frame that every sample had does.
  // Functions inlined into that one go too, as they may be what it happened to do.
  private static func dropMovingFrames(of thread: ThreadInfo, from frames: inout [StackAnalysis.ClassifiedFrame]) {
    guard let staying = thread.stayingFrames else { return }
    var left = staying
    var first = frames.endIndex
    while first > frames.startIndex, left > 0 {
      first -= 1
      let frame = frames[first].frame
      if !frame.inlined, frame.captured.kind != .asyncResume { left -= 1 }
    }
    frames.removeSubrange(..<first)
  }

  // The function that a thread begins in: `start_thread` and `clone3` of glibc stand outside of it. With the capture
  // linked in it is always the capture's own, which is in the application's image; were it to blame, all crashes within
  // the runtime's threads would be one bug.
  private func threadEntry(of frames: [StackAnalysis.ClassifiedFrame], in report: CrashReport) -> Int? {
    let outer = frames.suffix(2)
    let isLibc = outer.allSatisfy { entry in
      entry.frame.captured.imageIndex.map {
        report.images.indices.contains($0)
          && ["libc.", "libc-", "libpthread"].contains(where: report.images[$0].name.hasPrefix)
      } ?? false
    }
    if frames.count > 2, isLibc { return frames.count - 3 }
    return frames.lastIndex { $0.frame.rawFunction == "start_thread" }.flatMap { $0 > 0 ? $0 - 1 : nil }
  }

  private func reason(
    of report: CrashReport, thread: ThreadInfo?, frames: [StackAnalysis.ClassifiedFrame], runtimeFailure: String?
  ) -> Reason {
    if report.kind == .hang { return .hang }
    if report.kind == .exception { return .handledError(report.type) }
    if report.kind == .termination { return .ended(report.ending, signal: report.signal?.name) }
    if report.kind == .snapshot { return .snapshot }
    let pointer = thread?.registers.first { $0.name == "rsp" || $0.name == "sp" }?.value
    let type = report.type.flatMap { $0.hasPrefix("SIG") ? nil : $0 }
    let computed = Reason(
      runtimeFailure: runtimeFailure, message: report.message, exceptionType: type, signal: report.signal,
      depth: thread?.depth, stackPointer: pointer,
      innermostFunctions: frames.prefix(Self.endingLimit).compactMap { $0.frame.rawFunction ?? $0.frame.function })
    // A report that was symbolicated before knows its reason; its pseudo-frames are gone.
    if runtimeFailure == nil, computed == .illegalInstruction, let known = report.reason { return known }
    return computed
  }

  func scope(of report: CrashReport) -> String {
    report.service ?? (report.process?.executable == nil ? nil : report.executableName) ?? ""
  }

  /// All modules of the application.
  func modules(of report: CrashReport) -> Set<String> { applicationModules.union(ownModules(of: report)) }

  // A package's executable has the module of its name, with the characters replaced that a module's name cannot have.
  private func ownModules(of report: CrashReport) -> Set<String> {
    guard let executable = report.executableName else { return [] }
    if executable.utf8.allSatisfy({ Byte.isAlphanumeric($0) || $0 == UInt8(ascii: "_") }) { return [executable] }
    return [String(executable.map { $0.isLetter || $0.isNumber || $0 == "_" ? $0 : "_" })]
  }

  // MARK: Blame

  private func blameFrame(
    _ analysis: inout StackAnalysis, report: CrashReport, scope: String, revision: StackRevision? = nil
  ) {
    var blamed: Int?
    for index in analysis.frames.indices {
      if index == revision?.boundary { break }
      if revision?.helpers.contains(index) ?? false, !analysis.reason.isFault { continue }
      let frameClass = analysis.frames[index].frameClass
      // Nearer than any other code of the application's: passing over it would blame a caller, or the runtime, for what
      // only lacks a name.
      if frameClass.isNamelessApplication {
        blameOffset(&analysis, from: index, report: report, scope: scope)
        return
      }
      guard frameClass.name != nil else { continue }
      if frameClass.kind == .app || (frameClass.kind == .lib && analysis.reason.isFault) {
        blamed = index
        break
      }
    }
    if let blamed {
      let entry = analysis.frames[blamed]
      analysis.frames[blamed].isBlamed = true
      let name = entry.frameClass.name ?? ""
      analysis.blame = Blame(function: name, file: entry.frame.file, line: entry.frame.line)
      finish(
        &analysis, scope: scope, name: name, quality: entry.frame.hasDebugInformation ? .dwarf : .symtab,
        build: buildKey([entry.frame], in: report))
      return
    }
    // Nobody's own code: the first names that there are.
    let named = analysis.frames.filter { $0.frameClass.name != nil }.prefix(3)
    if let first = named.first {
      analysis.blame = Blame(function: first.frameClass.name ?? "", file: first.frame.file, line: first.frame.line)
      let described = named.contains { $0.frame.hasDebugInformation }
      finish(
        &analysis, scope: scope, name: named.map { $0.frameClass.name ?? "" }.joined(separator: "|"),
        quality: described ? .dwarf : .symtab, build: buildKey(named.map(\.frame), in: report))
      return
    }
    blameOffset(&analysis, from: nil, report: report, scope: scope)
  }

  // Without a name: where the application's image was left, by build.
  private func blameOffset(_ analysis: inout StackAnalysis, from first: Int?, report: CrashReport, scope: String) {
    var own: [Int]
    if let first {
      let image = analysis.frames[first].frame.captured.imageIndex
      own = analysis.frames.indices.filter {
        analysis.frames[$0].frameClass.isNamelessApplication && analysis.frames[$0].frame.captured.imageIndex == image
      }
    } else {
      own = analysis.frames.indices.filter { analysis.frames[$0].frame.captured.imageIndex != nil }
      if own.isEmpty { own = Array(analysis.frames.indices.prefix(1)) }
    }
    // A static standard library's frames lie in the application's image: its own first frame is behind them.
    blameOffsets(&analysis, of: Array(own.prefix(report.hasStaticRuntime ? 2 : 1)), report: report, scope: scope)
  }

  private func blameOffsets(_ analysis: inout StackAnalysis, of own: [Int], report: CrashReport, scope: String) {
    let frames = own.map { analysis.frames[$0].frame }
    for index in own { analysis.frames[index].isBlamed = true }
    let places = frames.compactMap { place(of: $0, in: report) }
    if !places.isEmpty { analysis.blame = Blame(function: places.joined(separator: ", ")) }
    finish(&analysis, scope: scope, name: "", quality: .offsets, build: buildKey(frames, in: report))
  }

  // `orderd+0x1a2b`, from the image's load address on.
  private func place(of frame: SymbolicatedFrame, in report: CrashReport) -> String? {
    guard let index = frame.captured.imageIndex, report.images.indices.contains(index) else { return nil }
    return report.images[index].name + "+" + Hex.prefixed(offset(of: frame, in: report))
  }

  // The address itself only where no image is known: where that is loaded changes from run to run.
  private func offset(of frame: SymbolicatedFrame, in report: CrashReport) -> UInt64 {
    if let offset = frame.captured.imageOffset { return offset.rawValue }
    guard let index = frame.captured.imageIndex, report.images.indices.contains(index) else {
      return frame.captured.address.rawValue
    }
    return report.images[index].offset(of: frame.captured.address).rawValue
  }

  // The functions that the recursion consists of, whichever of them hit the guard page.
  private func blameRecursion(_ analysis: inout StackAnalysis, report: CrashReport, scope: String) {
    let top = analysis.frames.prefix(Self.topLimit)
    let least = max(3, top.count / 20)
    var counts: [String: Int] = [:]
    for entry in top where entry.frameClass.kind == .app || entry.frameClass.kind == .lib {
      if let name = entry.frameClass.name { counts[name, default: 0] += 1 }
    }
    var names = counts.filter { $0.value >= least }.keys.sorted()
    let open = names.filter { !isClosure($0) }
    if !open.isEmpty { names = open }
    guard !names.isEmpty else {
      blameNamelessRecursion(&analysis, least: least, report: report, scope: scope)
      return
    }
    let members = top.filter { $0.frameClass.name.map(names.contains) ?? false }
    for index in analysis.frames.indices
    where analysis.frames[index].frameClass.name.map(names.contains) ?? false && index < top.count {
      analysis.frames[index].isBlamed = true
    }
    let first = members.first
    analysis.blame = Blame(
      function: names.joined(separator: ", "), file: first?.frame.file, line: first?.frame.line)
    let described = members.contains { $0.frame.hasDebugInformation }
    let build = first.flatMap { $0.frame.captured.imageIndex }.flatMap { buildID(ofImage: $0, in: report) } ?? ""
    finish(
      &analysis, scope: scope, name: names.joined(separator: ","), quality: described ? .dwarf : .symtab, build: build)
  }

  // The places that the recursion goes through, one of each.
  private func blameNamelessRecursion(
    _ analysis: inout StackAnalysis, least: Int, report: CrashReport, scope: String
  ) {
    let top = analysis.frames.indices.prefix(Self.topLimit)
    var candidates = top.filter { analysis.frames[$0].frameClass.isNamelessApplication }
    if candidates.isEmpty, top.allSatisfy({ analysis.frames[$0].frameClass.name == nil }) {
      candidates = Array(top)
    }
    let places = Dictionary(grouping: candidates) { buildKey([analysis.frames[$0].frame], in: report) }
    let cycle = places.filter { $0.value.count >= least }.sorted { $0.key < $1.key }
    guard !cycle.isEmpty else { return blameFrame(&analysis, report: report, scope: scope) }
    blameOffsets(&analysis, of: cycle.compactMap(\.value.first), report: report, scope: scope)
    for index in cycle.flatMap(\.value) { analysis.frames[index].isBlamed = true }
  }

  private func isClosure(_ name: String) -> Bool { name.utf8Contains("closure in ") }

  private func buildID(ofImage index: Int, in report: CrashReport) -> String? {
    guard report.images.indices.contains(index) else { return nil }
    return report.images[index].buildID?.description ?? report.images[index].path
  }

  private func buildKey(_ frames: [SymbolicatedFrame], in report: CrashReport) -> String {
    frames.map { frame in
      let index = frame.captured.imageIndex
      let image = index.flatMap { buildID(ofImage: $0, in: report) } ?? "?"
      // A log with names and without load addresses: its addresses are of this run only, and would part what is one.
      if frame.function != nil,
        !(index.map { report.images.indices.contains($0) && report.images[$0].isPlaced } ?? false)
      {
        return image
      }
      return image + "+" + Hex.prefixed(offset(of: frame, in: report))
    }.joined(separator: ",")
  }

  // The key and its digest. With debug information the build is not in it, so that the hash holds across releases; with
  // less it is, so that a poor hash never meets a better one by accident.
  private func finish(
    _ analysis: inout StackAnalysis, scope: String, name: String, quality: StackHash.Quality,
    build: @autoclosure () -> String
  ) {
    var key = Self.describedKey(scope: scope, reason: analysis.reason, name: name)
    if quality != .dwarf {
      key += "\0" + quality.rawValue
      if quality != .symtab || !leavesBuildOut { key += "\0" + build() }
    }
    analysis.key = key
    analysis.hash = Self.hash(of: key, quality: quality)
  }

  private static func describedKey(scope: String, reason: Reason, name: String) -> String {
    algorithm + "\0" + scope + "\0" + reason.rawValue + "\0" + name
  }

  /// Of a blamed function that has debug information.
  static func describedHash(scope: String, reason: Reason, name: String) -> StackHash {
    hash(of: describedKey(scope: scope, reason: reason, name: name), quality: .dwarf)
  }

  private static func hash(of key: String, quality: StackHash.Quality) -> StackHash {
    StackHash(digits: Hex.string(SHA256.digest(Array(key.utf8)).prefix(16)), quality: quality)
  }
}

extension SymbolicatedFrame {
  /// Inlined where no line says it: what the function that it was inlined into is called, when that is shared with others.
  var isInlinedWithoutLine: Bool { inlined && (line ?? 0) == 0 }

  /// The text behind `Swift runtime failure: ` where the frame is the compiler's pseudo-function.
  var runtimeFailure: String? { Self.runtimeFailure(function) ?? Self.runtimeFailure(rawFunction) }

  private static func runtimeFailure(_ name: String?) -> String? {
    guard let name, name.hasPrefix(runtimeFailurePrefix) else { return nil }
    return String(name.dropFirst(runtimeFailurePrefix.count))
  }
}
