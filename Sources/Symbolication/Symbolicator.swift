public import CrashModel

/// Names the frames of reports.
///
/// Keeps the files that it opened, so that the next report of the same build is cheap. Not thread-safe, as libdw is not:
/// one for each task.
///
/// ```swift
/// let symbolicator = Symbolicator(search: DebugFileSearch(directories: ["/srv/debug"]))
/// let result = symbolicator.symbolicate(report)
/// for frame in result.report.crashedThread?.frames ?? [] { print(frame.symbolicated?.function ?? "?") }
/// ```
public final class Symbolicator {
  /// Files stay open for this many images; each has a descriptor and a mapping.
  static let maximumOpenImages = 128

  private let reader: any ImageReader
  let nearestLines: Bool
  private let tables: AddressTables
  private var found: [ImageKey: SymbolSource] = [:]
  private var order: [ImageKey] = []

  private struct ImageKey: Hashable {
    var path: String
    var buildID: BuildID?
    /// One that was named to be read.
    var file: FilePath?
  }

  /// - Parameters:
  ///   - search: where to look for debug files.
  ///   - nearestLines: whether code that has no line gets the nearest line of its function, marked as approximate. Of the
  ///     calls in optimized Swift code two thirds have none.
  ///   - tables: when to make a file's debug information into a table, and where to keep it.
  public convenience init(
    search: DebugFileSearch = DebugFileSearch(), nearestLines: Bool = true, tables: AddressTables = AddressTables()
  ) {
    self.init(LocalImageReader(search), nearestLines: nearestLines, tables: tables)
  }

  /// A symbolicator that reads debug files in a process of its own, forked when the first one is needed.
  ///
  /// Files are read by libelf and libdw, in which one that is damaged, or made for that, can crash, never end, or take all
  /// memory. Then that process ends, the file, or only its debug information, counts as unreadable with the reason, and
  /// everything else is answered by the next process. Tables are read by this one.
  ///
  /// For programs with one thread: after a fork, a lock that another thread held stays locked for ever. With several, every
  /// file counts as unreadable. The process inherits the program's descriptors, other than 0, 1 and 2.
  ///
  /// ```swift
  /// let symbolicator = Symbolicator(isolating: { DebugFileSearch(directories: ["/srv/untrusted"]) })
  /// ```
  ///
  /// - Parameters:
  ///   - makeSearch: called in each process that is started, and here; makes the search and asks it nothing.
  ///   - limits: what reading a file may cost.
  ///   - nearestLines: as above.
  ///   - tables: as above.
  public convenience init(
    isolating makeSearch: @escaping () -> DebugFileSearch, limits: ReaderLimits = ReaderLimits(),
    nearestLines: Bool = true, tables: AddressTables = AddressTables()
  ) {
    var reader: any ImageReader = IsolatedImageReader(limits: limits, makeSearch: makeSearch)
    if tables.use != .never, let cache = tables.cache {
      reader = RememberingImageReader(reader, search: makeSearch(), cache: cache)
    }
    self.init(reader, nearestLines: nearestLines, tables: tables)
  }

  init(_ reader: any ImageReader, nearestLines: Bool, tables: AddressTables) {
    self.reader = reader
    self.nearestLines = nearestLines
    self.tables = tables
  }

  /// Files that the search was given and that can be read, with their build ids.
  public var givenFiles: [(path: String, buildID: BuildID?)] { reader.givenFiles }

  /// Files that the search was given and that cannot be read.
  public var unreadableFiles: [DebugFileError] { reader.unreadableFiles }

  /// Directories that the search was given and that cannot be read.
  public var unreadableDirectories: [DebugFileError] { reader.unreadableDirectories }

  /// Names every frame of the report.
  ///
  /// Frames that were named before are named anew from their addresses, so that running twice gives the same; where no
  /// file is found for a frame, it keeps what it had. Never fails: what is missing is in `images`.
  public func symbolicate(_ report: CrashReport) -> SymbolicatedReport {
    var report = report
    let stacks = report.threads.map { $0.frames.map(PhysicalFrame.init).mergingInlined() }
    // All addresses of an image are resolved at once: each unit is read once for all of them.
    var addresses: [Int: Set<UInt64>] = [:]
    var counts: [Int: Int] = [:]
    let places = stacks.map { stack in
      stack.map { frame -> Place? in
        guard let captured = frame.captured, let place = Place(captured, in: report.images) else { return nil }
        addresses[place.imageIndex, default: []].insert(place.offset.rawValue)
        counts[place.imageIndex, default: 0] += 1
        return place
      }
    }
    var resolved: [Int: [UInt64: ResolvedAddress]] = [:]
    var summaries: [ImageSummary] = []
    for (index, offsets) in addresses.sorted(by: { $0.key < $1.key }) {
      let image = report.images[index]
      let symbols = self.symbols(for: image)
      resolved[index] = resolve(offsets, of: image, with: symbols)
      // Not before: what a file is worth, its reading shows.
      let findings = symbols.findings
      summaries.append(
        ImageSummary(
          imageIndex: index, path: image.path, buildID: image.buildID, status: findings.status, file: findings.file,
          isUnverified: findings.isUnverified, frameCount: counts[index] ?? 0, namelessFrameCount: 0,
          refusals: findings.refusals, companionProblems: symbols.companionProblems))
    }
    var nameless: [Int: Int] = [:]
    let statuses = Dictionary(summaries.map { ($0.imageIndex, $0.status) }, uniquingKeysWith: { first, _ in first })
    var failures: [SymbolicatedReport.RuntimeFailure] = []
    for (threadIndex, stack) in stacks.enumerated() {
      var frames: [Frame] = []
      for (frame, place) in zip(stack, places[threadIndex]) {
        let answer = place.flatMap { resolved[$0.imageIndex]?[$0.offset.rawValue] } ?? ResolvedAddress()
        if let text = answer.runtimeFailure {
          failures.append(.init(threadIndex: threadIndex, frameIndex: frames.count, text: text))
        }
        let named = frame.named(by: answer, at: place, imageStatus: place.flatMap { statuses[$0.imageIndex] })
        if let place, named.last?.symbolicated?.function == nil { nameless[place.imageIndex, default: 0] += 1 }
        frames += named
      }
      report.threads[threadIndex].frames = frames
    }
    for index in summaries.indices { summaries[index].namelessFrameCount = nameless[summaries[index].imageIndex] ?? 0 }
    return SymbolicatedReport(report: report, runtimeFailures: failures, images: summaries)
  }

  /// Names addresses of one file, as the file itself numbers them (its virtual addresses).
  ///
  /// Looks the addresses up as they are: for a return address, subtract 1 first. Debug information that lies elsewhere is
  /// found as for an image with the file's path and build id.
  ///
  /// - Returns: one for each address, in their order.
  /// - Throws: `DebugFileError` where the file cannot be read.
  public func symbolize(file path: String, addresses: [UInt64]) throws(DebugFileError) -> [ResolvedAddress] {
    let symbols = try source(ofFile: FilePath(path))
    let sorted = Set(addresses).sorted()
    let resolved = symbols.resolve(sorted, nearestLines: nearestLines)
    return addresses.map { address in resolved[sorted.partitioningIndex { $0 >= address }] }
  }

  func source(ofFile path: FilePath) throws(DebugFileError) -> SymbolSource {
    symbols(for: try reader.image(ofFile: path), file: path)
  }

  private func symbols(for image: Image, file: FilePath? = nil) -> SymbolSource {
    let key = ImageKey(path: image.path, buildID: image.buildID, file: file)
    if let symbols = found[key] { return symbols }
    if order.count >= Self.maximumOpenImages { found[order.removeFirst()] = nil }
    let symbols = SymbolSource(reader.answers(for: image, file: file), tables: tables)
    found[key] = symbols
    order.append(key)
    return symbols
  }

  private func resolve(
    _ offsets: Set<UInt64>, of image: Image, with symbols: SymbolSource
  ) -> [UInt64: ResolvedAddress] {
    var image = image
    // Logs of other tools do not say where an executable at a fixed address begins; the file does.
    if image.firstVirtualAddress == 0, let first = symbols.findings.firstVirtualAddress {
      image.firstVirtualAddress = first
    }
    let sorted = offsets.sorted()
    // The same distance for all, so the order stays; wrapping around would break it, and no code lies there.
    let addresses = sorted.map { image.virtualAddress(of: ImageOffset(rawValue: $0)) }
    guard zip(addresses, addresses.dropFirst()).allSatisfy({ $0 < $1 }) else { return [:] }
    let resolved = symbols.resolve(addresses, nearestLines: nearestLines)
    return Dictionary(uniqueKeysWithValues: zip(sorted, resolved))
  }
}

/// Where the code that a frame stands for lies: the image, and the distance of the address to look up.
struct Place {
  var imageIndex: Int
  var offset: ImageOffset

  /// - Returns: nil where the address lies in no image.
  init?(_ frame: CapturedFrame, in images: [Image]) {
    let address = frame.lookupAddress
    if let index = frame.imageIndex, images.indices.contains(index) {
      guard images[index].isPlaced else { return nil }
      imageIndex = index
    } else if let index = images.firstIndex(where: { $0.contains(address) }) {
      imageIndex = index
    } else {
      return nil
    }
    offset = images[imageIndex].offset(of: address)
  }
}

/// A captured frame and the names that it had, or a gap.
struct PhysicalFrame {
  /// Innermost first; more than one where functions were inlined.
  var frames: [Frame]

  init(_ frame: Frame) { frames = [frame] }

  /// Nil for a gap.
  var captured: CapturedFrame? { frames.last?.captured }

  private var hasNames: Bool { frames.contains { $0.symbolicated?.function != nil } }

  /// The frame as the answer names it; as it was, where the answer knows nothing and the frame did.
  func named(by answer: ResolvedAddress, at place: Place?, imageStatus: ImageSummary.Status?) -> [Frame] {
    guard var captured else { return frames }
    if captured.imageIndex == nil, let place { captured.imageIndex = place.imageIndex }
    if answer.functions.isEmpty {
      if hasNames { return frames }
      let status: FrameStatus =
        switch imageStatus {
        case nil: .noImage
        case .buildIDMismatch: .buildIDMismatch
        default: .noSymbols
        }
      return [.symbolicated(SymbolicatedFrame(captured: captured, status: status))]
    }
    return answer.functions.map { function in
      .symbolicated(
        SymbolicatedFrame(
          captured: captured, status: .resolved, function: function.function, rawFunction: function.rawFunction,
          file: function.file, line: function.line, column: function.column,
          declarationLine: function.declarationLine, approximate: function.approximate, inlined: function.inlined,
          inApp: frames.last?.symbolicated?.inApp, hasDebugInformation: function.hasDebugInformation))
    }
  }
}

extension [PhysicalFrame] {
  /// Puts the functions that an earlier run found inlined back to the frame that they were inlined into.
  func mergingInlined() -> [PhysicalFrame] {
    var result: [PhysicalFrame] = []
    var isOpen = false
    for frame in self {
      if isOpen, let last = result.indices.last, result[last].captured?.address == frame.captured?.address {
        result[last].frames += frame.frames
      } else {
        result.append(frame)
      }
      isOpen = frame.frames.last?.symbolicated?.inlined == true
    }
    return result
  }
}
