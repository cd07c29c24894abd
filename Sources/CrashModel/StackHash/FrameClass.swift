private import Glibc

/// Whose code a frame runs, and how that was decided.
public struct FrameClass: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable {
    /// A pseudo-function of the compiler that names a failed check.
    case trap
    /// The application's own code.
    case app
    /// A dependency that the application builds.
    case lib
    /// The Swift runtime, its standard libraries, the system.
    case runtime = "rt"
    /// Nothing is known, or what is known names another function than the one that ran.
    case unknown = "unk"
  }

  public var kind: Kind
  /// Module and canonical name, as they go into the hash; nil for code that nobody wrote.
  public var name: String?
  private let decidedBy: FrameRule
  /// The frame has no name, and lies in an image of the application of which no frame has debug information: it is one
  /// of the application's as far as anybody can tell, and stands for itself by its offset.
  public var isNamelessApplication = false

  init(kind: Kind, name: String?, rule: FrameRule, isNamelessApplication: Bool = false) {
    self.kind = kind
    self.name = name
    self.decidedBy = rule
    self.isNamelessApplication = isNamelessApplication
  }

  /// Before anything is known.
  static let undecided = FrameClass(kind: .unknown, name: nil, rule: .noSymbol)

  /// The rule that decided, in words.
  public var rule: String { decidedBy.text }
}

/// Decides the classes of a stack's frames.
struct FrameClassifier {
  /// Modules of the application itself.
  let applicationModules: Set<String>
  let images: [Image]
  /// Images in which some frame has debug information: there a function without any is nobody's.
  private(set) var describedImages = SmallIndexSet()
  /// Images that the application brought along.
  private(set) var applicationImages = SmallIndexSet()
  /// Images of the system, among those with frames.
  private(set) var systemImages = SmallIndexSet()
  let hasStaticRuntime: Bool
  let names: NameCache

  init(
    applicationModules: Set<String>, report: CrashReport, frames: [StackAnalysis.ClassifiedFrame], names: NameCache
  ) {
    self.applicationModules = applicationModules
    self.names = names
    images = report.images
    hasStaticRuntime = report.hasStaticRuntime
    let executable = report.executableImageIndex
    var seen = SmallIndexSet()
    for position in frames.indices {
      guard let index = frames[position].frame.captured.imageIndex else { continue }
      if frames[position].frame.hasDebugInformation { describedImages.insert(index) }
      guard seen.insert(index), images.indices.contains(index) else { continue }
      if images[index].isSystem { systemImages.insert(index) }
      if report.isApplicationImage(index, executable: executable) { applicationImages.insert(index) }
    }
  }

  /// Modules of the toolchain.
  static let standardModules: Set<String> = [
    "Swift", "_Concurrency", "_StringProcessing", "_RegexParser", "_Differentiation", "_Backtracing", "_Volatile",
    "SwiftOnoneSupport", "Synchronization", "Observation", "Distributed", "Runtime", "Foundation",
    "FoundationEssentials", "FoundationInternationalization", "FoundationNetworking", "FoundationXML", "Dispatch",
    "Glibc", "Musl", "Builtin", "__C", "__C_Synthesized", "Cxx", "CxxStdlib", "XCTest", "Testing", "RegexBuilder",
  ]

  /// Parts of a path that a dependency's sources are checked out below.
  static let dependencyFolders = [
    "/checkouts/", "/vendor/", "/third_party/", "/SourcePackages/", "/node_modules/",
  ]

  /// Starts of the names of C and C++ functions of the runtimes, which a static executable has in its own image.
  static let runtimePrefixes: [StaticString] = [
    "swift_", "_swift_", "__swift_", "_ZN5swift", "_ZNK5swift", "_dispatch_", "dispatch_", "__DISPATCH", "pthread_",
    "__pthread", "_pthread", "__libc_", "__GI_", "_int_", "__cxa_", "__gxx_", "__gnu_", "_ZSt", "_ZNSt", "_ZNKSt",
    "_ZN9__gnu", "_ZN10__cxxabiv1", "_Znw", "_Zna", "_Zdl", "_Zda", "std::", "__restore_rt", "__stack_chk", "__fortify",
    "__chk_fail", "__assert_fail", "__malloc", "malloc_", "_IO_", "__memcpy", "__memmove", "__memset", "__str",
    "_Unwind_", "__run_exit_handlers", "crash_support_thread_start", "_CFRunLoop", "CFRunLoop", "__CFRunLoop",
  ]
  static let runtimeNames: Set<String> = [
    "abort", "raise", "gsignal", "malloc", "free", "calloc", "realloc", "memcpy", "memmove", "memset", "memcmp",
    "strlen",
    "strcpy", "strcmp", "strncpy", "strcat", "printf", "start_thread", "clone", "clone3", "_start", "__clone", "exit",
    "kill", "tgkill", "pause", "nanosleep", "clock_nanosleep", "poll", "epoll_wait", "read", "write", "qsort",
    "qsort_r",
    "__tls_get_addr", "_dl_fini", "tcache_thread_shutdown", "arena_thread_freeres", "__exit_thread",
  ]

  /// - Parameter isFolded: the caller is inlined without a line.
  func classify(_ frame: SymbolicatedFrame, isFolded: Bool = false) -> FrameClass {
    let facts = names.facts(of: frame.names)
    switch facts.text {
    case .none: return classifyNameless(frame)
    case .failedCheck: return FrameClass(kind: .trap, name: nil, rule: .failedCheck)
    case .swift(let parts): return classifySwift(frame, parts, facts.path, isFolded: isFolded)
    case .other(let parts): return classifyC(frame, parts, facts.path)
    }
  }

  static func path(_ file: String?) -> NameCache.Facts.Path {
    guard let file else { return [] }
    if file == "<compiler-generated>" { return .isGenerated }
    var path: NameCache.Facts.Path = []
    if dependencyFolders.contains(where: { file.utf8Contains($0) }) { path.insert(.isOfDependency) }
    if file.utf8Contains("/Sources/") || file.hasPrefix("Sources/") { path.insert(.isOfPackage) }
    if file.hasPrefix("/usr/include/") || file.hasPrefix("/usr/lib/gcc/") { path.insert(.isOfSystem) }
    return path
  }

  private func classifyNameless(_ frame: SymbolicatedFrame) -> FrameClass {
    guard let index = frame.captured.imageIndex, applicationImages.contains(index), !describedImages.contains(index)
    else { return FrameClass(kind: .unknown, name: nil, rule: .noSymbol) }
    return hasStaticRuntime
      ? FrameClass(
        kind: .unknown, name: nil, rule: .noSymbolBesideRuntime, isNamelessApplication: true)
      : FrameClass(
        kind: .app, name: nil, rule: .noSymbolOfApplication, isNamelessApplication: true)
  }

  private func classifySwift(
    _ frame: SymbolicatedFrame, _ parts: NameCache.Parts, _ path: NameCache.Facts.Path, isFolded: Bool
  ) -> FrameClass {
    let name = parts.name
    if isDescribed(frame), !frame.hasDebugInformation {
      // Identical functions are folded into one, which then carries one of their names and no description. The frame
      // above it, inlined without a line, has the true one.
      let sharing = names.sharing(of: frame.names)
      if sharing.isForwarder || sharing.isMerged || parts.isGenerated {
        return FrameClass(kind: .unknown, name: nil, rule: .sharedFunction)
      }
      if isFolded {
        return FrameClass(kind: .unknown, name: nil, rule: .foldedFunction)
      }
    }
    guard let module = parts.module else {
      return FrameClass(kind: parts.isGenerated ? .runtime : .unknown, name: name, rule: .thunkOfNoModule)
    }
    if parts.isOfToolchain {
      return FrameClass(kind: .runtime, name: name, rule: .moduleOfToolchain(module))
    }
    guard !parts.isGenerated else {
      return FrameClass(kind: .runtime, name: nil, rule: .generatedCode)
    }
    if applicationModules.contains(module) {
      return FrameClass(kind: .app, name: name, rule: .moduleOfApplication(module))
    }
    if path.contains(.isOfDependency) { return FrameClass(kind: .lib, name: name, rule: .sourceOfDependency) }
    // A module of the same package is the application's too.
    if path.contains(.isOfPackage) { return FrameClass(kind: .app, name: name, rule: .moduleOfPackage(module)) }
    // Without debug information nothing tells a module of the package from one of a dependency.
    if !isDescribed(frame) {
      return FrameClass(kind: .app, name: name, rule: .moduleOutsideToolchain(module))
    }
    return FrameClass(kind: .lib, name: name, rule: .moduleOutsideApplication(module))
  }

  private func classifyC(
    _ frame: SymbolicatedFrame, _ parts: NameCache.Parts, _ path: NameCache.Facts.Path
  ) -> FrameClass {
    let name = parts.canonical
    // The standard library's generics, made for the program's types, in a log that gives no linker names.
    if frame.rawFunction == nil, frame.inlined, path == .isGenerated {
      return FrameClass(kind: .runtime, name: name, rule: .madeByCompiler)
    }
    if let index = frame.captured.imageIndex, systemImages.contains(index) {
      return FrameClass(kind: .runtime, name: name, rule: .imageOfSystem(images[index].path))
    }
    if parts.isOfRuntime { return FrameClass(kind: .runtime, name: name, rule: .functionOfRuntimes) }
    if isDescribed(frame), !frame.hasDebugInformation {
      return FrameClass(kind: .unknown, name: nil, rule: .noDebugInformation)
    }
    if path.contains(.isOfDependency) { return FrameClass(kind: .lib, name: name, rule: .sourceOfDependency) }
    if path.contains(.isOfSystem) { return FrameClass(kind: .runtime, name: name, rule: .sourceOfSystem) }
    return FrameClass(kind: name == nil ? .runtime : .app, name: name, rule: .imageOfApplication)
  }

  /// - Parameter canonical: a static function of the runtime has its own name behind `_ZL…`: the canonical one tells.
  static func isOfRuntime(_ raw: String, canonical: String?) -> Bool {
    func hasPrefix(_ text: String) -> Bool {
      var text = text
      return text.withUTF8 { bytes in runtimePrefixes.contains { bytes.span.has($0, at: 0) } }
    }
    if runtimeNames.contains(raw) || hasPrefix(raw) || isInternalToSwiftRuntime(raw) { return true }
    guard let canonical else { return false }
    return runtimeNames.contains(canonical) || hasPrefix(canonical) || canonical.hasPrefix("swift::")
  }

  // A C++ function without linkage of its own, that takes the Swift runtime's types.
  private static func isInternalToSwiftRuntime(_ raw: String) -> Bool {
    (raw.hasPrefix("_ZL") || raw.hasPrefix("_ZZL")) && raw.utf8Contains("N5swift")
  }

  private func isDescribed(_ frame: SymbolicatedFrame) -> Bool {
    frame.captured.imageIndex.map { describedImages.contains($0) } ?? false
  }
}

/// A few indices: a stack's frames lie in a handful of images, and looking through those is faster than hashing.
struct SmallIndexSet {
  private var members: [Int] = []

  func contains(_ index: Int) -> Bool { members.contains(index) }

  /// - Returns: whether it was not there before.
  @discardableResult
  mutating func insert(_ index: Int) -> Bool {
    guard !members.contains(index) else { return false }
    members.append(index)
    return true
  }
}

/// How the compiler's pseudo-functions for failed checks begin.
public let runtimeFailurePrefix = "Swift runtime failure: "

extension String {
  /// Byte-wise search: the needle is ASCII, and a path need not be valid anything.
  func utf8Contains(_ needle: String) -> Bool {
    utf8.withContiguousStorageIfAvailable { bytes in
      needle.utf8.withContiguousStorageIfAvailable { Self.contains(bytes, $0) } ?? false
    }
      ?? Array(utf8).withUnsafeBufferPointer { bytes in
        // A string that is not stored as UTF-8, which none of ours is.
        Array(needle.utf8).withUnsafeBufferPointer { Self.contains(bytes, $0) }
      }
  }

  /// `memmem`, which Swift's view of glibc does not have.
  private static func contains(_ bytes: UnsafeBufferPointer<UInt8>, _ needle: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = needle.first, let start = bytes.baseAddress, let wanted = needle.baseAddress else {
      return needle.isEmpty
    }
    var offset = 0
    while offset + needle.count <= bytes.count {
      guard let found = memchr(start + offset, Int32(first), bytes.count - needle.count - offset + 1) else {
        return false
      }
      if memcmp(found, wanted, needle.count) == 0 { return true }
      offset = UnsafeRawPointer(found) - UnsafeRawPointer(start) + 1
    }
    return false
  }
}
