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
  /// The rule that decided, in words.
  public var rule: String
  /// The frame has no name, and lies in an image of the application of which no frame has debug information: it is one
  /// of the application's as far as anybody can tell, and stands for itself by its offset.
  public var isNamelessApplication = false
}

/// Decides the classes of a stack's frames.
struct FrameClassifier {
  /// Modules of the application itself.
  let applicationModules: Set<String>
  let images: [Image]
  /// Images in which some frame has debug information: there a function without any is nobody's.
  let describedImages: Set<Int>
  /// Images that the application brought along.
  let applicationImages: Set<Int>
  let hasStaticRuntime: Bool
  let names: NameCache

  init(applicationModules: Set<String>, report: CrashReport, frames: [SymbolicatedFrame], names: NameCache) {
    self.applicationModules = applicationModules
    self.names = names
    images = report.images
    describedImages = Set(frames.filter(\.hasDebugInformation).compactMap(\.captured.imageIndex))
    applicationImages = Set(Set(frames.compactMap(\.captured.imageIndex)).filter(report.isApplicationImage))
    hasStaticRuntime = report.hasStaticRuntime
  }

  /// Modules of the toolchain.
  private static let standardModules: Set<String> = [
    "Swift", "_Concurrency", "_StringProcessing", "_RegexParser", "_Differentiation", "_Backtracing", "_Volatile",
    "SwiftOnoneSupport", "Synchronization", "Observation", "Distributed", "Runtime", "Foundation",
    "FoundationEssentials", "FoundationInternationalization", "FoundationNetworking", "FoundationXML", "Dispatch",
    "Glibc", "Musl", "Builtin", "__C", "__C_Synthesized", "Cxx", "CxxStdlib", "XCTest", "Testing", "RegexBuilder",
  ]

  /// Parts of a path that a dependency's sources are checked out below.
  private static let dependencyFolders = [
    "/checkouts/", "/vendor/", "/third_party/", "/SourcePackages/", "/node_modules/",
  ]

  /// Starts of the names of C and C++ functions of the runtimes, which a static executable has in its own image.
  private static let runtimePrefixes = [
    "swift_", "_swift_", "__swift_", "_ZN5swift", "_ZNK5swift", "_dispatch_", "dispatch_", "__DISPATCH", "pthread_",
    "__pthread", "_pthread", "__libc_", "__GI_", "_int_", "__cxa_", "__gxx_", "__gnu_", "_ZSt", "_ZNSt", "_ZNKSt",
    "_ZN9__gnu", "_ZN10__cxxabiv1", "_Znw", "_Zna", "_Zdl", "_Zda", "std::", "__restore_rt", "__stack_chk", "__fortify",
    "__chk_fail", "__assert_fail", "__malloc", "malloc_", "_IO_", "__memcpy", "__memmove", "__memset", "__str",
    "_Unwind_", "__run_exit_handlers", "crash_support_thread_start", "_CFRunLoop", "CFRunLoop", "__CFRunLoop",
  ]
  private static let runtimeNames: Set<String> = [
    "abort", "raise", "gsignal", "malloc", "free", "calloc", "realloc", "memcpy", "memmove", "memset", "memcmp",
    "strlen",
    "strcpy", "strcmp", "strncpy", "strcat", "printf", "start_thread", "clone", "clone3", "_start", "__clone", "exit",
    "kill", "tgkill", "pause", "nanosleep", "clock_nanosleep", "poll", "epoll_wait", "read", "write", "qsort",
    "qsort_r",
    "__tls_get_addr", "_dl_fini", "tcache_thread_shutdown", "arena_thread_freeres", "__exit_thread",
  ]
  func classify(_ frame: SymbolicatedFrame, caller: SymbolicatedFrame?) -> FrameClass {
    guard let raw = frame.rawFunction ?? frame.function, !raw.isEmpty else {
      return classifyNameless(frame)
    }
    let function = frame.function ?? Demangler.simplified(raw) ?? raw
    if raw.hasPrefix(runtimeFailurePrefix) || function.hasPrefix(runtimeFailurePrefix) {
      return FrameClass(kind: .trap, name: nil, rule: "the compiler's name for a failed check")
    }
    return SwiftName.isSwift(raw)
      ? classifySwift(frame, raw: raw, function: function, caller: caller)
      : classifyC(frame, raw: raw, function: function)
  }

  private func classifyNameless(_ frame: SymbolicatedFrame) -> FrameClass {
    guard let index = frame.captured.imageIndex, applicationImages.contains(index), !describedImages.contains(index)
    else { return FrameClass(kind: .unknown, name: nil, rule: "no symbol") }
    return hasStaticRuntime
      ? FrameClass(
        kind: .unknown, name: nil, rule: "no symbol, in an image that may hold the runtime too",
        isNamelessApplication: true)
      : FrameClass(
        kind: .app, name: nil, rule: "no symbol, in an image of the application", isNamelessApplication: true)
  }

  private func classifySwift(
    _ frame: SymbolicatedFrame, raw: String, function: String, caller: SymbolicatedFrame?
  ) -> FrameClass {
    let parts = names.parts(rawFunction: raw, function: function)
    let canonical = parts.canonical
    let name = canonical.map { function in parts.module.map { "\($0).\(function)" } ?? function }
    if isDescribed(frame), !frame.hasDebugInformation {
      // Identical functions are folded into one, which then carries one of their names and no description. The frame
      // above it, inlined without a line, has the true one.
      if parts.isForwarder || parts.isMerged || canonical == nil {
        return FrameClass(kind: .unknown, name: nil, rule: "a shared or forwarding function without debug information")
      }
      if let caller, caller.inlined, (caller.line ?? 0) == 0 {
        return FrameClass(kind: .unknown, name: nil, rule: "folded with the function that its caller's inlining names")
      }
    }
    guard let module = parts.module else {
      return FrameClass(kind: canonical == nil ? .runtime : .unknown, name: name, rule: "a thunk of no module")
    }
    if Self.standardModules.contains(module) {
      return FrameClass(kind: .runtime, name: name, rule: "module \(module) of the toolchain")
    }
    guard canonical != nil else {
      return FrameClass(kind: .runtime, name: nil, rule: "code that the compiler made up")
    }
    if applicationModules.contains(module) {
      return FrameClass(kind: .app, name: name, rule: "module \(module) is the application's")
    }
    if let file = frame.file {
      if Self.dependencyFolders.contains(where: { file.utf8Contains($0) }) {
        return FrameClass(kind: .lib, name: name, rule: "source below a dependency's checkout")
      }
      // The layout of a Swift package: a module of the same package is the application's too.
      if file.utf8Contains("/Sources/") || file.hasPrefix("Sources/") {
        return FrameClass(kind: .app, name: name, rule: "module \(module) of a package that is no dependency")
      }
    }
    // Without debug information nothing tells a module of the package from one of a dependency.
    if !isDescribed(frame) {
      return FrameClass(kind: .app, name: name, rule: "module \(module) is not the toolchain's")
    }
    return FrameClass(kind: .lib, name: name, rule: "module \(module) is not the application's")
  }

  private func classifyC(_ frame: SymbolicatedFrame, raw: String, function: String) -> FrameClass {
    let name = names.parts(rawFunction: raw, function: function).canonical
    // The standard library's generics, made for the program's types, in a log that gives no linker names.
    if frame.rawFunction == nil, frame.inlined, frame.file == "<compiler-generated>" {
      return FrameClass(kind: .runtime, name: name, rule: "code that the compiler made up")
    }
    if let index = frame.captured.imageIndex, images.indices.contains(index), images[index].isSystem {
      return FrameClass(kind: .runtime, name: name, rule: "image \(images[index].name) of the system")
    }
    // A static function of the runtime has its own name behind `_ZL…`: the canonical one tells.
    let isRuntime = { (text: String) in Self.runtimePrefixes.contains { text.hasPrefix($0) } }
    if Self.runtimeNames.contains(raw) || name.map(Self.runtimeNames.contains) ?? false || isRuntime(raw)
      || name.map(isRuntime) ?? false
      || name?.hasPrefix("swift::") ?? false || isInternalToSwiftRuntime(raw)
    {
      return FrameClass(kind: .runtime, name: name, rule: "a function of the runtimes")
    }
    if isDescribed(frame), !frame.hasDebugInformation {
      return FrameClass(kind: .unknown, name: nil, rule: "no debug information in an image that has it")
    }
    if let file = frame.file, Self.dependencyFolders.contains(where: { file.utf8Contains($0) }) {
      return FrameClass(kind: .lib, name: name, rule: "source below a dependency's checkout")
    }
    if let file = frame.file, file.hasPrefix("/usr/include/") || file.hasPrefix("/usr/lib/gcc/") {
      return FrameClass(kind: .runtime, name: name, rule: "source among the system's headers")
    }
    return FrameClass(kind: name == nil ? .runtime : .app, name: name, rule: "C or C++ of the application's image")
  }

  // A C++ function without linkage of its own, that takes the Swift runtime's types.
  private func isInternalToSwiftRuntime(_ raw: String) -> Bool {
    (raw.hasPrefix("_ZL") || raw.hasPrefix("_ZZL")) && raw.utf8Contains("N5swift")
  }

  private func isDescribed(_ frame: SymbolicatedFrame) -> Bool {
    frame.captured.imageIndex.map(describedImages.contains) ?? false
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
