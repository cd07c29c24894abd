private import CCrashFormat
package import CrashModel

/// A report that grows while a log is read.
///
/// What the input decides the size of is bounded here, once for all formats, and said in a note.
struct ReportDraft {
  var report = CrashReport(id: "")
  /// What the frames say of images that the log does not list, by name.
  private var imageIndices: [String: Int] = [:]
  private var hasPlacedImages = false
  private(set) var frameCount = 0
  private var isCut = false
  /// A frame without a name was read.
  private(set) var hasNamelessFrames = false
  /// Of names and paths.
  private var textBytes = 0
  private var hasAddresses = false
  private var hasNamesWithoutAddress = false

  static let frameLimit = 65_536
  static let threadLimit = 16_384
  static let imageLimit = 16_384
  private static let noteLimit = 16
  /// Of all names and paths of a crash, in bytes: three times what the deepest stack that is kept needs.
  private static let textLimit = 16 * 1024 * 1024

  /// Begins another thread; what follows belongs to it.
  mutating func beginThread(name: String? = nil, id: UInt32? = nil, crashed: Bool = false) {
    guard report.threads.count < Self.threadLimit else {
      isCut = true
      return
    }
    report.threads.append(ThreadInfo(id: id, name: name.map { String($0.prefix(256)) }, crashed: crashed))
  }

  /// Of a thread that did not say so itself.
  mutating func markCrashed(_ index: Int) {
    if report.threads.indices.contains(index) { report.threads[index].crashed = true }
  }

  /// The thread that frames are added to; one is begun where there is none.
  mutating func withThread(_ body: (inout ThreadInfo) -> Void) {
    if report.threads.isEmpty { beginThread() }
    body(&report.threads[report.threads.count - 1])
  }

  var hasFrames: Bool { frameCount > 0 }

  /// - Parameter hasAddress: the log gives one; 0 stands for it where it does not.
  mutating func add(_ frame: SymbolicatedFrame, hasAddress: Bool = true) {
    let size = [frame.function, frame.rawFunction, frame.file].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    guard frameCount < Self.frameLimit, hasRoom(for: size) else {
      isCut = true
      return
    }
    frameCount += 1
    if frame.function == nil { hasNamelessFrames = true }
    if hasAddress { hasAddresses = true } else { hasNamesWithoutAddress = true }
    // A frame without a name is what was captured, and not one for which no name was found.
    withThread {
      $0.frames.append(frame.function == nil && frame.file == nil ? .captured(frame.captured) : .symbolicated(frame))
    }
  }

  /// The frame that was read last, alone, where it has no name and says in which image it lies and where in it.
  var lastFrame: CrashReport? {
    guard let frame = report.threads.last?.frames.last, frame.symbolicated?.function == nil,
      var captured = frame.captured,
      let index = captured.imageIndex, report.images[index].isPlaced
    else { return nil }
    var alone = CrashReport(id: "")
    alone.images = [report.images[index]]
    captured.imageIndex = 0
    alone.threads = [ThreadInfo(crashed: true, frames: [.captured(captured)])]
    alone.crashedThreadIndex = 0
    return alone
  }

  /// Goes over the frames of the last thread once more.
  mutating func changeFrames(_ change: (inout [Frame]) -> Void) {
    guard let last = report.threads.indices.last, report.threads[last].frames.count > 1 else { return }
    change(&report.threads[last].frames)
  }

  private mutating func hasRoom(for size: Int) -> Bool {
    textBytes += size
    return textBytes <= Self.textLimit
  }

  /// A gap of so many frames.
  mutating func addOmitted(_ count: UInt64) {
    guard frameCount < Self.frameLimit else {
      isCut = true
      return
    }
    frameCount += 1
    withThread { $0.frames.append(.omitted(count: count)) }
  }

  mutating func add(_ image: Image) {
    guard report.images.count < Self.imageLimit, hasRoom(for: image.path.utf8.count) else {
      isCut = true
      return
    }
    report.images.append(image)
    if image.isPlaced { hasPlacedImages = true }
  }

  /// An image of which only the name or the path is known; the same for every frame in it.
  mutating func image(named name: String) -> Int? {
    if let index = imageIndices[name] { return index }
    guard report.images.count < Self.imageLimit, hasRoom(for: name.utf8.count) else {
      isCut = true
      return nil
    }
    imageIndices[name] = report.images.count
    report.images.append(Image(path: name, buildID: nil, address: Address(rawValue: 0), size: 0))
    return report.images.count - 1
  }

  /// The index of an image that a frame names where the log lists none; where it does, the address will tell.
  mutating func imageIndex(ofUnlisted name: String) -> Int? { hasPlacedImages ? nil : image(named: name) }

  /// An image of which a frame says how far it is from the image's beginning; the same for every frame in it.
  ///
  /// - Parameters:
  ///   - offset: the distance from the load address, or, if `isVirtual`, the address that the ELF file itself gives.
  mutating func image(path: String, address: UInt64, offset: UInt64, isVirtual: Bool, buildID: BuildID? = nil) -> Int? {
    let bias = address &- offset
    // Where the file itself says that the image begins is not known. Any number will do for both beginnings, as only
    // their distance counts, but 0, which stands for "ask the file".
    let first = isVirtual ? Self.page : 0
    let start = bias &+ first
    let key = path + "\0" + String(start, radix: 16)
    let index: Int
    if let known = imageIndices[key] {
      index = known
    } else {
      guard report.images.count < Self.imageLimit, hasRoom(for: path.utf8.count) else {
        isCut = true
        return nil
      }
      index = report.images.count
      imageIndices[key] = index
      report.images.append(
        Image(path: path, buildID: nil, address: Address(rawValue: start), size: Self.page, firstVirtualAddress: first))
      hasPlacedImages = true
    }
    if let buildID { report.images[index].buildID = buildID }
    // What is known of its size: it reaches as far as this frame.
    let reach = address &- start
    if reach < 1 << 40, reach >= report.images[index].size { report.images[index].size = (reach | (Self.page - 1)) + 1 }
    return index
  }

  private static let page: UInt64 = 4_096

  mutating func note(_ text: String) {
    guard report.notes.count < Self.noteLimit, !report.notes.contains(text) else { return }
    report.notes.append(text)
  }

  mutating func setSignal(_ number: Int32, address: UInt64? = nil) {
    let known = report.signal?.number == number ? report.signal?.address : nil
    report.signal = SignalInfo(
      number: number, name: SignalNames.name(number), address: address.map(Address.init(rawValue:)) ?? known)
    report.type = SignalNames.name(number)
  }

  /// The finished report.
  ///
  /// - Parameters:
  ///   - format: for the notes: `gdb output`.
  ///   - advice: how to have load addresses in it the next time.
  func finished(format: String, advice: String? = nil) -> CrashReport {
    var draft = self
    if draft.report.crashedThreadIndex == nil {
      draft.report.crashedThreadIndex = draft.report.threads.firstIndex(where: \.crashed)
    }
    if draft.isCut {
      draft.note("the log goes on; only \(Self.frameLimit) frames and \(Self.imageLimit) images of it are kept")
    }
    draft.mergeImages()
    draft.placeFrames()
    draft.dropUnusedImages()
    if draft.hasNamesWithoutAddress, !draft.hasAddresses {
      draft.note("the \(format) gives no addresses: names are those that it has, and cannot be looked up")
    } else if draft.hasAddresses, !draft.report.images.contains(where: \.isPlaced) {
      draft.note(
        "the \(format) \(UnplacedImages.words), so that its addresses cannot be looked up"
          + (advice.map { "; \($0)" } ?? ""))
    }
    draft.nameExecutable()
    draft.report.id = Self.identifier(of: draft.report, occurrence: 0)
    return draft.report
  }

  /// Each frame's image, by its address.
  private mutating func placeFrames() {
    guard hasPlacedImages else { return }
    let map = ImageMap(report.images)
    for thread in report.threads.indices {
      for index in report.threads[thread].frames.indices {
        let frame = report.threads[thread].frames[index]
        guard var captured = frame.captured, captured.imageIndex.map({ !report.images[$0].isPlaced }) ?? true,
          captured.hasAddress, let found = map.index(of: captured.lookupAddress)
        else { continue }
        captured.imageIndex = found
        report.threads[thread].frames[index] = frame.with(captured)
      }
    }
  }

  /// An image that only its name is known of is the one of that name that was placed.
  private mutating func mergeImages() {
    guard hasPlacedImages else { return }
    var placed: [String: Int] = [:]
    for index in report.images.indices where report.images[index].isPlaced {
      for name in [report.images[index].path, report.images[index].name] where placed[name] == nil {
        placed[name] = index
      }
    }
    renumber { index, images in images[index].isPlaced ? index : placed[images[index].path] ?? index }
  }

  /// Names that a list of images gave a place to.
  private mutating func dropUnusedImages() {
    var used = Set<Int>()
    for thread in report.threads {
      for frame in thread.frames { if let index = frame.captured?.imageIndex { used.insert(index) } }
    }
    var places: [Int: Int] = [:]
    var kept: [Image] = []
    for index in report.images.indices where report.images[index].isPlaced || used.contains(index) {
      places[index] = kept.count
      kept.append(report.images[index])
    }
    guard kept.count < report.images.count else { return }
    renumber { index, _ in places[index] }
    report.images = kept
  }

  private mutating func renumber(_ place: (Int, [Image]) -> Int?) {
    let images = report.images
    for thread in report.threads.indices {
      for index in report.threads[thread].frames.indices {
        let frame = report.threads[thread].frames[index]
        guard var captured = frame.captured, let old = captured.imageIndex, images.indices.contains(old) else {
          continue
        }
        let new = place(old, images)
        guard new != old else { continue }
        captured.imageIndex = new
        report.threads[thread].frames[index] = frame.with(captured)
      }
    }
  }

  /// Logs list images by address, or as frames come: the first that is not the system's is the program, where it lies as
  /// programs do.
  private mutating func nameExecutable() {
    guard report.process?.executable == nil,
      let image = report.images.first(where: {
        !$0.isSystem && !$0.path.isEmpty && !$0.path.hasPrefix("[") && !$0.name.contains(".so")
      })
    else { return }
    var process = report.process ?? ProcessInfo()
    process.executable = image.path
    report.process = process
  }

  /// Made from the content, so that the same crash read twice has the same id.
  ///
  /// - Parameter occurrence: how many equal ones the input held before.
  static func identifier(of report: CrashReport, occurrence: Int) -> String {
    var nameless = report
    nameless.id = occurrence == 0 ? "" : String(occurrence)
    let bytes = nameless.json()
    var digest = [UInt8](repeating: 0, count: 32)
    bytes.withUnsafeBytes { crash_sha256($0.baseAddress, $0.count, &digest) }
    let milliseconds = (report.timestamp?.rawValue ?? 0) / 1_000_000
    return UUIDText.string(UUIDText.version7(milliseconds: milliseconds, entropy: Array(digest.prefix(16))))
  }
}

/// What is said of a log that has addresses and no images.
package enum UnplacedImages {
  static let words = "does not say where images were loaded"

  /// Frames of the report had names to be found, and the log nothing to find them by.
  package static func isNoted(in report: CrashReport) -> Bool {
    report.notes.contains { $0.utf8.count < 512 && $0.contains(words) }
  }
}

extension Frame {
  /// The same with another address, kind or image.
  fileprivate func with(_ captured: CapturedFrame) -> Frame {
    switch self {
    case .captured: return .captured(captured)
    case .symbolicated(var frame):
      frame.captured = captured
      return .symbolicated(frame)
    case .omitted: return self
    }
  }
}
