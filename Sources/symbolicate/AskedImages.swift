internal import CrashModel
private import Glibc
internal import Symbolication

/// A file that `symbolicate addr` was asked about.
final class AskedImage {
  let path: FilePath
  /// Nil where the file cannot be read.
  let lookup: ImageLookup?
  /// Why there is no answer where there is none.
  let reason: String
  /// Its only names are those that other files may call.
  let isStripped: Bool
  /// Addresses without an answer.
  var nameless = 0
  /// As the value of a JSON member, quotes included.
  private(set) lazy var jsonPath: [UInt8] = {
    var writer = JSONWriter()
    writer.string(path.description)
    return writer.bytes
  }()

  init(path: FilePath, lookup: ImageLookup?, reason: String, isStripped: Bool) {
    self.path = path
    self.lookup = lookup
    self.reason = reason
    self.isStripped = isStripped
  }
}

/// The files that were asked about, by the bytes of their names.
///
/// At most 256 at once: each has descriptors and mappings. Whoever asks about more starts again behind them.
struct AskedImages {
  private(set) var all: [AskedImage] = []
  private var indices: [[UInt8]: Int32] = [:]
  /// Where names were last found, so that no array need be made to ask the dictionary: by length and last bytes.
  private var recent: [Int32]
  private let symbolicator: Symbolicator
  private let diagnostics: Diagnostics
  /// Something was said that makes the result incomplete.
  private(set) var hasProblem = false
  /// Files that could be read.
  private(set) var readable = 0

  static let limit = 256
  private static let recentCount = 64

  init(options: Options, diagnostics: Diagnostics, progress: Progress?) {
    symbolicator = options.symbolicator(
      files: [], nearestLines: options.format != .text || options.addr.nearestLines)
    if let progress { symbolicator.whileWaiting = { progress.wait("reading debug files") } }
    self.diagnostics = diagnostics
    recent = Array(repeating: -1, count: Self.recentCount)
    // Asking starts the process that reads.
    for error in options.debugDirectories.isEmpty ? [] : symbolicator.unreadableDirectories {
      diagnostics.error(error.path, "\(error.reason); it is not used")
      hasProblem = true
    }
  }

  var isFull: Bool { all.count >= Self.limit }

  /// - Returns: nil for a file that was not asked about before: `add` it.
  @inline(__always)
  mutating func index(of name: UnsafeRawBufferPointer) -> Int32? {
    let slot = Self.slot(name)
    let index = recent[slot]
    if index >= 0, Self.isEqual(all[Int(index)].path.bytes, name) { return index }
    guard let found = indices[Array(name)] else { return nil }
    recent[slot] = found
    return found
  }

  mutating func add(_ name: UnsafeRawBufferPointer) -> Int32 {
    let path = FilePath(bytes: name)
    let index = Int32(truncatingIfNeeded: all.count)
    all.append(open(path))
    indices[path.bytes] = index
    recent[Self.slot(name)] = index
    return index
  }

  @inline(never)
  func displayName(of name: UnsafeRawBufferPointer, in image: Int32) -> UnsafeRawBufferPointer {
    all[Int(image)].lookup?.displayName(of: name) ?? name
  }

  /// Closes all files and forgets them.
  mutating func removeAll() {
    tellNameless()
    all = []
    indices = [:]
    recent = Array(repeating: -1, count: Self.recentCount)
  }

  /// Says which files lacked names.
  mutating func tellNameless() {
    for image in all where image.isStripped && image.nameless > 0 {
      let count = image.nameless == 1 ? "1 address in it has" : "\(image.nameless) addresses in it have"
      say(
        image.path,
        "has no debug information and is stripped, so that \(count) no name; name the file as it was before "
          + "strip or its debug file, or its directory with --debug-dir DIR")
    }
  }

  private mutating func open(_ path: FilePath) -> AskedImage {
    if path.hasNUL {
      say(path, "its name holds a NUL, which no file's does")
      return AskedImage(path: path, lookup: nil, reason: "the file's name holds a NUL", isStripped: false)
    }
    do throws(DebugFileError) {
      let lookup = try symbolicator.lookup(of: path)
      readable += 1
      for refusal in lookup.refusals { diagnostics.detail(path.description, refusal.description) }
      var reason = "no function is known there"
      var isStripped = false
      switch lookup.status {
      case .debugInformation: break
      case .symbolsOnly(let problem):
        if let problem { say(path, "its debug information cannot be read: \(problem)") }
      case .dynamicSymbolsOnly(let problem):
        if let problem { say(path, "its debug information cannot be read: \(problem)") }
        reason = "the file is stripped, and no function that other files may call lies there"
        isStripped = true
      case .notFound, .buildIDMismatch, .unreadable, .noNames:
        say(path, "has neither debug information nor symbols; try --debug-dir DIR")
        reason = "the file has neither debug information nor symbols"
      }
      return AskedImage(path: path, lookup: lookup, reason: reason, isStripped: isStripped)
    } catch {
      say(path, error.reason)
      return AskedImage(path: path, lookup: nil, reason: error.reason, isStripped: false)
    }
  }

  private mutating func say(_ path: FilePath, _ message: String) {
    hasProblem = true
    diagnostics.errorOnce("\(AddrCommand.shortened(path)): \(message)")
  }

  @inline(__always)
  private static func slot(_ name: UnsafeRawBufferPointer) -> Int {
    guard name.count >= 8 else { return name.count }
    // Names of files differ at their ends.
    let last = name.loadUnaligned(fromByteOffset: name.count &- 8, as: UInt64.self)
    let mixed = (last ^ UInt64(truncatingIfNeeded: name.count)) &* 0x9e37_79b9_7f4a_7c15
    return Int(truncatingIfNeeded: mixed >> 58)
  }

  @inline(__always)
  private static func isEqual(_ bytes: [UInt8], _ name: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count == name.count, let other = name.baseAddress else { return false }
    return bytes.withUnsafeBytes { memcmp($0.baseAddress ?? other, other, name.count) == 0 }
  }
}
