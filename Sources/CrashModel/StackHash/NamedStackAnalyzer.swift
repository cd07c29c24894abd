/// `StackHasher.analyze` and redaction for reports whose frames all have their names, at the speed at which they are read.
///
/// What the analysis makes of a frame does not depend on the report but for a few facts: whether its image is the
/// system's, whether that image has debug information, which module is the application's. So each frame is classified
/// once for each combination of these, by the same `FrameClassifier`, and remembered; and so are the hashes of blamed
/// functions. What is left for a report is a look-up for each of its frames.
///
/// Exact: what was remembered is found by comparing all that it was made of, byte by byte, and a report that is not of the
/// plain kind (a hang, a stack overflow, nobody to blame, names without debug information) gets no answer here but by
/// `StackHasher`. Bounded: with more than so many frames or contexts all are forgotten.
package struct NamedStackAnalyzer {
  private let hasher: StackHasher
  private let redactor: Redactor?
  private let hash = ByteHash()

  /// Some 150 bytes each.
  private static let frameLimit = 1 << 18
  private static let textLimit = 64 << 20
  /// Some kilobytes each: images and their paths.
  private static let contextLimit = 1 << 10
  private static let hashLimit = 1 << 17
  private static let redactedLimit = 1 << 16

  private var frames: [KnownFrame] = []
  /// The texts of each frame, one behind the other. They are compared for each frame of each report, and to reach for three
  /// Strings would take longer than all else.
  private var frameTexts: [UInt8] = []
  private var frameSlots: [UInt32] = Array(repeating: 0, count: 1 << 12)
  private var contexts: [KnownContext] = []
  private var contextsByHash: [UInt64: [Int]] = [:]
  private var lastContext: Int?
  private var hashes: [HashKey: StackHash] = [:]
  private var enclosing: [InternedStrings.ID: InternedStrings.ID?] = [:]
  /// What redaction makes of texts that come again and again.
  private var redactedTexts: [InternedStrings.ID: InternedStrings.ID] = [:]
  private var generation = 0
  /// Changes when the numbers of contexts lose their meaning.
  package private(set) var contextGeneration = 0
  private var lastReason: (number: InternedStrings.ID, isFault: Bool, hasSites: Bool)?

  /// Of the report that is looked at: its frames.
  private var numbers: [Int] = []
  /// Of each image, whether a frame of the report in it has debug information.
  private var described: [Bool] = []

  /// - Parameters:
  ///   - hasher: without rules, which look at more than this does.
  ///   - redactor: nil to leave what reports say as it is.
  package init?(hasher: StackHasher, redactor: Redactor?) {
    guard hasher.rules == nil else { return nil }
    self.hasher = hasher
    self.redactor = redactor
  }

  /// What of a report's analysis goes into a group.
  package struct Result {
    package var hash: StackHash
    package var reason: InternedStrings.ID
    /// The blamed function.
    package var blame: InternedStrings.ID
    package var file: InternedStrings.ID?
    package var line: Int?
    package var siteLine: Int?
    /// Of all reports with the same context.
    package var context: Int
  }

  package private(set) var callPath: [InternedStrings.ID] = []
  /// The lines of the stack's text, without their numbers.
  package private(set) var stackLines: [InternedStrings.ID] = []

  /// A report of this context, redacted, without its threads.
  package func template(ofContext context: Int) -> CrashReport { contexts[context].template }

  // MARK: What is remembered

  // Of numbers alone, as it is looked at for each frame of each report.
  private struct KnownFrame {
    var function: InternedStrings.ID
    var rawFunction: InternedStrings.ID?
    var file: InternedStrings.ID?
    var line: Int32?
    var declarationLine: Int32?
    var inlined: Bool
    var hasDebugInformation: Bool
    var hash: UInt64
    /// In `frameTexts`: function, linker name, file.
    var textStart: Int
    var lengths: (function: Int32, rawFunction: Int32, file: Int32)
    /// It is a check of the compiler's by its name, or has none: nothing for here.
    var isUnusual: Bool
    /// What ends a process in this function.
    var ending: InternedStrings.ID?
    var text: InternedStrings.ID
    var textLength: Int32
    /// The last two that were asked for: more need functions that several programs have.
    var first: KnownClass?
    var second: KnownClass?

    var isInlinedWithoutLine: Bool { inlined && (line ?? 0) == 0 }
  }

  private struct KnownClass {
    /// What it depends on besides the frame.
    var key: UInt32
    var kind: FrameClass.Kind
    var name: InternedStrings.ID?
  }

  private final class KnownContext: Sendable {
    let key: [UInt8]
    let template: CrashReport
    let scope: InternedStrings.ID
    let modules: Set<String>
    /// Contexts with the same modules of the application have the same number.
    let module: UInt32
    let systemImages: [Bool]
    let isException: Bool
    let signalNumber: Int32?
    /// Where neither message nor frame says more.
    let signalReason: Reason
    let signalReasonNumber: InternedStrings.ID

    init(
      key: [UInt8], template: CrashReport, scope: InternedStrings.ID, modules: Set<String>, module: UInt32,
      _ strings: inout InternedStrings
    ) {
      (self.key, self.template, self.scope, self.modules, self.module) = (key, template, scope, modules, module)
      systemImages = template.images.map(\.isSystem)
      isException = template.type.map { !$0.hasPrefix("SIG") } ?? false
      signalNumber = template.signal?.number
      signalReason = Reason(runtimeFailure: nil, message: nil, signal: template.signal)
      signalReasonNumber = strings.intern(signalReason.rawValue)
    }
  }

  private struct HashKey: Hashable {
    var scope: InternedStrings.ID
    var reason: InternedStrings.ID
    var name: InternedStrings.ID
  }

  private mutating func forget() {
    frames.removeAll(keepingCapacity: true)
    frameTexts.removeAll(keepingCapacity: true)
    frameSlots = Array(repeating: 0, count: 1 << 12)
    contexts = []
    contextGeneration += 1
    contextsByHash = [:]
    lastContext = nil
    hashes = [:]
    enclosing = [:]
    redactedTexts = [:]
    lastReason = nil
  }

  // MARK: Analysis

  /// - Parameters:
  ///   - strings: where the numbers in the answer are from.
  ///   - stackLimit: how long the stack's text may be, in bytes; nil where none is wanted.
  ///   - whole: the same report, asked for where nothing of its kind was seen before; nil if it cannot be read.
  /// - Returns: nil for a report that is not for here.
  package mutating func analyze(
    _ report: NamedReport, in strings: inout InternedStrings, stackLimit: Int?, whole: () -> CrashReport?
  ) -> Result? {
    if strings.generation != generation || frames.count > Self.frameLimit || frameTexts.count > Self.textLimit
      || hashes.count > Self.hashLimit
      || contexts.count > Self.contextLimit || redactedTexts.count > Self.redactedLimit
    {
      forget()
      generation = strings.generation
    }
    let count = report.frames.count
    // Deeper stacks are cut in their middle.
    guard count > 0, count <= StackHasher.topLimit, let context = context(of: report, &strings, whole) else {
      return nil
    }
    let imageCount = contexts[context].systemImages.count
    described.removeAll(keepingCapacity: true)
    described.append(contentsOf: repeatElement(false, count: imageCount))
    numbers.removeAll(keepingCapacity: true)
    for index in 0..<count {
      let number = number(of: report.frames[index], &strings)
      guard !frames[number].isUnusual else { return nil }
      if let image = report.frames[index].imageIndex {
        guard image < imageCount else { return nil }
        if frames[number].hasDebugInformation { described[Int(image)] = true }
      }
      numbers.append(number)
    }
    guard let reason = reason(of: report, contexts[context], &strings) else { return nil }
    if lastReason?.number != reason {
      let text = Reason(rawValue: strings[reason])
      lastReason = (reason, text.isFault, text.hasSites)
    }
    guard let isFault = lastReason?.isFault, let hasSites = lastReason?.hasSites else { return nil }

    var blamed: Int?
    callPath.removeAll(keepingCapacity: true)
    for index in 0..<count {
      let known = classify(index, report.frames[index].imageIndex, context, &strings)
      guard let name = known.name, known.kind == .app || known.kind == .lib else {
        // What is inlined into a function without debug information could be to blame.
        if blamed == nil, known.kind != .runtime, !frames[numbers[index]].hasDebugInformation { return nil }
        continue
      }
      if blamed == nil {
        guard frames[numbers[index]].hasDebugInformation else { return nil }
        guard known.kind == .app || isFault else { continue }
        blamed = index
      }
      if callPath.last != name { callPath.append(name) }
      if callPath.count == StackAnalysis.callPathLimit { break }
    }
    guard let blamed, let name = callPath.first else { return nil }
    let frame = frames[numbers[blamed]]
    let key = HashKey(scope: contexts[context].scope, reason: reason, name: name)
    let hash: StackHash
    if let known = hashes[key] {
      hash = known
    } else {
      hash = StackHasher.describedHash(
        scope: strings[key.scope], reason: Reason(rawValue: strings[reason]), name: strings[name])
      hashes[key] = hash
    }
    stackLines.removeAll(keepingCapacity: true)
    if let stackLimit, !writeStackLines(limit: stackLimit) { return nil }
    return Result(
      hash: hash, reason: reason, blame: name, file: frame.file, line: frame.line.map(Int.init),
      siteLine: hasSites ? siteLine(blamed, name, report, context, &strings) : nil, context: context)
  }

  /// What redaction makes of a text that comes again and again.
  package mutating func redacted(_ bytes: UnsafeRawBufferPointer, in strings: inout InternedStrings)
    -> InternedStrings.ID
  {
    let text = strings.intern(bytes)
    guard let redactor else { return text }
    if let known = redactedTexts[text] { return known }
    let redacted = redactor.redacted(strings[text]).map { strings.intern($0) } ?? text
    redactedTexts[text] = redacted
    return redacted
  }

  /// - Returns: nil where the text stays as it is.
  package func redacted(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard let redactor else { return nil }
    let text = bytes.bindMemory(to: UInt8.self)
    return redactor.redacted(text.span).map { String(decoding: $0, as: UTF8.self) }
  }

  private mutating func reason(
    of report: NamedReport, _ context: KnownContext, _ strings: inout InternedStrings
  ) -> InternedStrings.ID? {
    if context.signalNumber == 11 || context.signalNumber == 7 {
      var signal = context.template.signal
      signal?.address = report.signalAddress
      guard !Reason.isStackOverflow(signal: signal, depth: report.depth, stackPointer: report.stackPointer) else {
        return nil
      }
    }
    if let message = report.message {
      let text = redacted(message) ?? String(decoding: message, as: UTF8.self)
      if let reason = Reason(message: text) { return strings.intern(reason.rawValue) }
    }
    if context.isException { return strings.intern(Reason.cxxTerminate.rawValue) }
    if let number = context.signalNumber, Reason.isSelfInflicted(number) {
      for number in numbers.prefix(StackHasher.endingLimit) {
        if let ending = frames[number].ending { return ending }
      }
    }
    if context.signalReason == .illegalInstruction, let known = report.reason { return redacted(known, in: &strings) }
    return context.signalReasonNumber
  }

  private mutating func siteLine(
    _ blamed: Int, _ name: InternedStrings.ID, _ report: NamedReport, _ context: Int, _ strings: inout InternedStrings
  ) -> Int? {
    guard let line = frames[numbers[blamed]].line, line > 0 else { return nil }
    let enclosing: InternedStrings.ID?
    if let known = self.enclosing[name] {
      enclosing = known
    } else {
      enclosing = StackAnalysis.enclosingFunction(of: strings[name]).map { strings.intern($0) }
      self.enclosing[name] = .some(enclosing)
    }
    guard let enclosing else { return frames[numbers[blamed]].declarationLine.map { Int(line) - Int($0) } }
    for index in blamed..<numbers.count {
      if let declaration = frames[numbers[index]].declarationLine,
        classify(index, report.frames[index].imageIndex, context, &strings).name == enclosing
      {
        return Int(line) - Int(declaration)
      }
    }
    return nil
  }

  // MARK: Frames

  private mutating func number(of frame: NamedReport.Frame, _ strings: inout InternedStrings) -> Int {
    var value = hash(frame.function)
    value = hash(frame.rawFunction ?? .init(start: nil, count: 0), behind: value)
    value = hash(frame.file ?? .init(start: nil, count: 0), behind: value)
    let lines =
      UInt64(UInt32(bitPattern: frame.line ?? -1)) << 32 | UInt64(UInt32(bitPattern: frame.declarationLine ?? -1))
    value = hash(lines ^ (frame.inlined ? 1 << 31 : 0) ^ (frame.hasDebugInformation ? 1 << 63 : 0), behind: value)
    let mask = frameSlots.count - 1
    var slot = Int(truncatingIfNeeded: value) & mask
    while frameSlots[slot] != 0 {
      let number = Int(frameSlots[slot]) - 1
      if frames[number].hash == value, isSame(frames[number], frame) { return number }
      slot = (slot + 1) & mask
    }
    return add(frame, hash: value, &strings)
  }

  private func isSame(_ known: KnownFrame, _ frame: NamedReport.Frame) -> Bool {
    guard known.line == frame.line, known.declarationLine == frame.declarationLine, known.inlined == frame.inlined,
      known.hasDebugInformation == frame.hasDebugInformation,
      Int(known.lengths.function) == frame.function.count,
      Int(known.lengths.rawFunction) == frame.rawFunction?.count ?? -1,
      Int(known.lengths.file) == frame.file?.count ?? -1
    else { return false }
    return frameTexts.withUnsafeBytes { texts in
      var start = known.textStart
      func isNext(_ text: UnsafeRawBufferPointer?) -> Bool {
        guard let text else { return true }
        defer { start += text.count }
        return ByteHash.isEqual(UnsafeRawBufferPointer(rebasing: texts[start..<start + text.count]), text)
      }
      return isNext(frame.function) && isNext(frame.rawFunction) && isNext(frame.file)
    }
  }

  private mutating func add(_ frame: NamedReport.Frame, hash: UInt64, _ strings: inout InternedStrings) -> Int {
    let function = strings.intern(frame.function)
    let raw = frame.rawFunction.map { strings.intern($0) }
    let file = frame.file.map { strings.intern($0) }
    let linkerName = strings[raw ?? function]
    let isUnusual =
      linkerName.isEmpty || linkerName.hasPrefix(runtimeFailurePrefix)
      || strings[function].hasPrefix(runtimeFailurePrefix)
    var text = strings[function]
    if let file {
      text += " at " + strings[file]
      if let line = frame.line, line > 0 { text += ":\(line)" }
    }
    let number = frames.count
    let textStart = frameTexts.count
    for text in [frame.function, frame.rawFunction, frame.file] { if let text { frameTexts += text } }
    frames.append(
      KnownFrame(
        function: function, rawFunction: raw, file: file, line: frame.line, declarationLine: frame.declarationLine,
        inlined: frame.inlined, hasDebugInformation: frame.hasDebugInformation, hash: hash, textStart: textStart,
        lengths: (
          Int32(clamping: frame.function.count), Int32(clamping: frame.rawFunction?.count ?? -1),
          Int32(clamping: frame.file?.count ?? -1)
        ), isUnusual: isUnusual,
        ending: Reason(endingFunctions: CollectionOfOne(linkerName)).map { strings.intern($0.rawValue) },
        text: strings.intern(text),
        textLength: Int32(clamping: text.utf8.count)))
    if frames.count * 2 > frameSlots.count {
      frameSlots = Array(repeating: 0, count: frameSlots.count * 2)
      for number in frames.indices { place(number) }
    } else {
      place(number)
    }
    return number
  }

  private mutating func place(_ number: Int) {
    let mask = frameSlots.count - 1
    var slot = Int(truncatingIfNeeded: frames[number].hash) & mask
    while frameSlots[slot] != 0 { slot = (slot + 1) & mask }
    frameSlots[slot] = UInt32(number + 1)
  }

  private mutating func classify(
    _ index: Int, _ image: Int32?, _ context: Int, _ strings: inout InternedStrings
  ) -> KnownClass {
    let number = numbers[index]
    let isFolded = index + 1 < numbers.count && frames[numbers[index + 1]].isInlinedWithoutLine
    var key = contexts[context].module << 4 | (isFolded ? 1 : 0)
    if let image {
      key |= 2 | (contexts[context].systemImages[Int(image)] ? 4 : 0) | (described[Int(image)] ? 8 : 0)
    }
    if let known = frames[number].first, known.key == key { return known }
    if let known = frames[number].second, known.key == key { return known }
    let found = classify(
      frames[number], image: image.map(Int.init), isDescribed: image.map { described[Int($0)] } ?? false,
      isFolded: isFolded, contexts[context], strings)
    let known = KnownClass(key: key, kind: found.kind, name: found.name.map { strings.intern($0) })
    frames[number].second = frames[number].first
    frames[number].first = known
    return known
  }

  /// By the same code as all other frames, of a stack that says as much of the frame's image as the report does.
  private func classify(
    _ known: KnownFrame, image: Int?, isDescribed: Bool, isFolded: Bool, _ context: KnownContext,
    _ strings: InternedStrings
  ) -> FrameClass {
    let captured = CapturedFrame(kind: .programCounter, address: nil, imageIndex: image)
    let frame = SymbolicatedFrame(
      captured: captured, status: .resolved, function: strings[known.function],
      rawFunction: known.rawFunction.map { strings[$0] }, file: known.file.map { strings[$0] },
      line: known.line.map(Int.init), declarationLine: known.declarationLine.map(Int.init), inlined: known.inlined,
      hasDebugInformation: known.hasDebugInformation)
    var stack = [StackAnalysis.ClassifiedFrame(frame)]
    if isDescribed {
      stack.append(.init(SymbolicatedFrame(captured: captured, status: .resolved, hasDebugInformation: true)))
    }
    return FrameClassifier(
      applicationModules: context.modules, report: context.template, frames: stack, names: hasher.names
    ).classify(frame, isFolded: isFolded)
  }

  /// - Returns: false where a line alone is longer than all may be.
  private mutating func writeStackLines(limit: Int) -> Bool {
    var length = 0
    for (index, number) in numbers.enumerated() {
      let digits = index < 10 ? 1 : index < 100 ? 2 : 3
      let next = length + (index > 0 ? 1 : 0) + digits + 1 + Int(frames[number].textLength)
      guard next <= limit else { return index > 0 }
      length = next
      stackLines.append(frames[number].text)
    }
    return true
  }

  // MARK: Contexts

  private mutating func context(
    of report: NamedReport, _ strings: inout InternedStrings, _ whole: () -> CrashReport?
  ) -> Int? {
    if let lastContext, contexts[lastContext].key == report.context { return lastContext }
    let value = report.context.withUnsafeBytes { hash($0) }
    for number in contextsByHash[value] ?? [] where contexts[number].key == report.context {
      lastContext = number
      return number
    }
    guard var template = whole(), template.kind == .crash else { return nil }
    template.threads = []
    template.crashedThreadIndex = nil
    (template.message, template.reason, template.stackHash, template.previousStackHashes) = (nil, nil, nil, [])
    (template.timestamp, template.suppressedCount) = (nil, nil)
    template.signal?.address = nil
    redactor?.redactSummary(of: &template)
    let modules = hasher.modules(of: template)
    let number = contexts.count
    contexts.append(
      KnownContext(
        key: report.context, template: template, scope: strings.intern(hasher.scope(of: template)), modules: modules,
        module: UInt32(contexts.first { $0.modules == modules }?.module ?? UInt32(number)), &strings))
    contextsByHash[value, default: []].append(number)
    lastContext = number
    return number
  }
}
