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

  /// Called several times a second while another process reads debug files or asks a server, for those who show that work
  /// is going on; never by a symbolicator that reads them itself.
  public var whileWaiting: (() -> Void)? {
    didSet { reader.whileWaiting = whileWaiting }
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
  public func symbolicate(_ report: consuming CrashReport) -> SymbolicatedReport {
    var report = report
    let stacks = report.threads.map { PhysicalFrame.stack(of: $0.frames) }
    // All addresses of an image are resolved at once: each unit is read once for all of them.
    var asked = AskedOffsets(imageCount: report.images.count)
    var map: ImageMap?
    let places = stacks.map { stack in
      stack.map { frame -> Place? in
        guard let captured = frame.captured, let place = Place(captured, in: report.images, map: &map) else {
          return nil
        }
        asked.add(place)
        return place
      }
    }
    asked.sort()
    var answers: [[(offset: UInt64, answer: ResolvedAddress)]] = []
    var summaries: [ImageSummary] = []
    // Of a frame of the image that gets no name.
    var lacking: [FrameStatus] = []
    for (index, offsets) in asked.images {
      let image = report.images[index]
      let symbols = self.symbols(for: image)
      answers.append(resolve(offsets, of: image, with: symbols))
      // Not before: what a file is worth, its reading shows.
      let findings = symbols.findings
      if case .buildIDMismatch = findings.status {
        lacking.append(.buildIDMismatch)
      } else {
        lacking.append(.noSymbols)
      }
      summaries.append(
        ImageSummary(
          imageIndex: index, path: image.path, buildID: image.buildID, status: findings.status, file: findings.file,
          isUnverified: findings.isUnverified, frameCount: offsets.count, namelessFrameCount: 0,
          refusals: findings.refusals, companionProblems: symbols.companionProblems))
    }
    var failures: [SymbolicatedReport.RuntimeFailure] = []
    for (threadIndex, stack) in stacks.enumerated() {
      var frames: [Frame] = []
      frames.reserveCapacity(stack.count * 4)
      for (frame, place) in zip(stack, places[threadIndex]) {
        guard let place else {
          frame.append(to: &frames, namedBy: [], at: nil, lacking: .noImage)
          continue
        }
        let number = asked.number(ofImage: place.imageIndex)
        let offset = place.offset.rawValue
        let position = answers[number].partitioningIndex { $0.offset >= offset }
        if position < answers[number].count, answers[number][position].offset == offset {
          if let text = answers[number][position].answer.runtimeFailure {
            failures.append(.init(threadIndex: threadIndex, frameIndex: frames.count, text: text))
          }
          frame.append(
            to: &frames, namedBy: answers[number][position].answer.functions, at: place, lacking: lacking[number])
        } else {
          frame.append(to: &frames, namedBy: [], at: place, lacking: lacking[number])
        }
        if !(frames.last?.hasFunction ?? false) { summaries[number].namelessFrameCount += 1 }
      }
      report.threads[threadIndex].frames = frames
    }
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

  /// What the core of a process says of its end: a `crash-report/1` document, all threads, without names of functions.
  ///
  /// Stacks are walked by the files that the search finds for the core's images.
  ///
  /// - Throws: `DebugFileError` where it is no core that can be read.
  package func report(ofCore path: FilePath) throws(DebugFileError) -> [UInt8] { try reader.report(ofCore: path) }

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

  /// - Parameter offsets: in any order.
  private func resolve(
    _ offsets: [UInt64], of image: Image, with symbols: SymbolSource
  ) -> [(offset: UInt64, answer: ResolvedAddress)] {
    var image = image
    // Logs of other tools do not say where an executable at a fixed address begins; the file does.
    if image.firstVirtualAddress == 0, let first = symbols.findings.firstVirtualAddress {
      image.firstVirtualAddress = first
    }
    var sorted = offsets.sorted()
    var count = 0
    for offset in sorted where count == 0 || sorted[count - 1] != offset {
      sorted[count] = offset
      count += 1
    }
    sorted.removeSubrange(count...)
    // The same distance for all, so the order stays; wrapping around would break it, and no code lies there.
    let addresses = sorted.map { image.virtualAddress(of: ImageOffset(rawValue: $0)) }
    guard zip(addresses, addresses.dropFirst()).allSatisfy({ $0 < $1 }) else { return [] }
    return zip(sorted, symbols.resolve(addresses, nearestLines: nearestLines)).map { (offset: $0, answer: $1) }
  }
}

/// The offsets that a report asks for, by image.
private struct AskedOffsets {
  /// Of images with frames; by image after `sort`.
  private(set) var images: [(imageIndex: Int, offsets: [UInt64])] = []
  /// For each image of the report its place in `images`; negative where it has no frame.
  private var numbers: [Int32]

  init(imageCount: Int) { numbers = Array(repeating: -1, count: imageCount) }

  mutating func add(_ place: Place) {
    if numbers[place.imageIndex] < 0 {
      numbers[place.imageIndex] = Int32(truncatingIfNeeded: images.count)
      images.append((place.imageIndex, []))
    }
    images[Int(numbers[place.imageIndex])].offsets.append(place.offset.rawValue)
  }

  mutating func sort() {
    images.sort { $0.imageIndex < $1.imageIndex }
    for (number, image) in images.enumerated() { numbers[image.imageIndex] = Int32(truncatingIfNeeded: number) }
  }

  func number(ofImage index: Int) -> Int { Int(numbers[index]) }
}

/// Where the code that a frame stands for lies: the image, and the distance of the address to look up.
struct Place {
  var imageIndex: Int
  var offset: ImageOffset

  /// - Returns: nil where the address lies in no image.
  ///
  /// - Parameter map: of the images; made when a frame needs it, as most reports say of each frame where it lies.
  init?(_ frame: CapturedFrame, in images: [Image], map: inout ImageMap?) {
    let address = frame.lookupAddress
    if let index = frame.imageIndex, images.indices.contains(index) {
      guard images[index].isPlaced else { return nil }
      imageIndex = index
    } else {
      let known = map ?? ImageMap(images)
      map = known
      guard let index = known.index(of: address) else { return nil }
      imageIndex = index
    }
    offset = images[imageIndex].offset(of: address)
  }
}

/// A captured frame and the names that it had, or a gap.
struct PhysicalFrame {
  /// Innermost first; more than one where functions were inlined.
  var frames: ArraySlice<Frame>

  /// A thread's frames, the functions that an earlier run found inlined together with the one that they were inlined into.
  static func stack(of frames: [Frame]) -> [PhysicalFrame] {
    var stack: [PhysicalFrame] = []
    stack.reserveCapacity(frames.count)
    var start = 0
    var isOpen = false
    for (index, frame) in frames.enumerated() {
      if isOpen, frames[index - 1].captured?.address == frame.captured?.address {
        stack[stack.count - 1].frames = frames[start...index]
      } else {
        start = index
        stack.append(PhysicalFrame(frames: frames[index...index]))
      }
      if case .symbolicated(let frame) = frame { isOpen = frame.inlined } else { isOpen = false }
    }
    return stack
  }

  /// Nil for a gap.
  var captured: CapturedFrame? { frames.last?.captured }

  private var hasNames: Bool { frames.contains { $0.hasFunction } }

  /// Appends the frame as the functions name it; as it was, where they have no name and the frame had one.
  ///
  /// - Parameter status: of a frame without any.
  func append(
    to result: inout [Frame], namedBy functions: [SymbolicatedFunction], at place: Place?, lacking status: FrameStatus
  ) {
    guard var captured, functions.contains(where: { $0.function != nil }) || !hasNames else {
      result.append(contentsOf: frames)
      return
    }
    if captured.imageIndex == nil, let place { captured.imageIndex = place.imageIndex }
    if functions.isEmpty {
      result.append(.symbolicated(SymbolicatedFrame(captured: captured, status: status)))
      return
    }
    let inApp = frames.last?.symbolicated?.inApp
    for function in functions {
      var frame = SymbolicatedFrame(
        captured: captured, status: .resolved, names: function.names, line: function.line, column: function.column,
        declarationLine: function.declarationLine, approximate: function.approximate, inlined: function.inlined,
        inApp: inApp, hasDebugInformation: function.hasDebugInformation)
      frame.source = source(at: function)
      result.append(.symbolicated(frame))
    }
  }
}

extension PhysicalFrame {
  /// The lines that the report came with for this place.
  private func source(at function: SymbolicatedFunction) -> SourceLines? {
    for case .symbolicated(let frame) in frames {
      if let source = frame.source, frame.line == function.line, frame.file == function.file { return source }
    }
    return nil
  }
}

extension Frame {
  fileprivate var hasFunction: Bool {
    if case .symbolicated(let frame) = self { frame.function != nil } else { false }
  }
}
