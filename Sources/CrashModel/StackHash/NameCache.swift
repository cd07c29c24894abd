/// What the hash needs to know of a function's name, remembered.
///
/// A month of crashes runs through few functions many times, and taking a name apart means demangling it. Bounded: a
/// stream of ever new names must not keep them all.
final class NameCache: Sendable {
  // A class, as it is handed out for each frame, and copies of four Strings would be counted four times.
  final class Parts: Sendable {
    /// Swift only.
    let module: String?
    /// Whose module that is, as far as it does not depend on the report.
    let isOfToolchain: Bool
    /// nil for code that nobody wrote.
    let canonical: String?
    /// Nobody wrote it. Whoever wants to know no more than that need not touch the name.
    let isGenerated: Bool
    /// Module and canonical name, as they go into the hash.
    let name: String?
    /// C and C++ only: a function of the runtimes, wherever it lies.
    let isOfRuntime: Bool

    init(rawFunction: String, function: String) {
      let canonical = CanonicalName.of(function: function, rawFunction: rawFunction)
      let isSwift = SwiftName.isSwift(rawFunction)
      let module = isSwift ? SwiftName.module(of: rawFunction) : nil
      self.canonical = canonical
      isGenerated = canonical == nil
      self.module = module
      isOfToolchain = module.map { FrameClassifier.standardModules.contains($0) } ?? false
      name = canonical.map { canonical in module.map { "\($0).\(canonical)" } ?? canonical }
      isOfRuntime = !isSwift && FrameClassifier.isOfRuntime(rawFunction, canonical: canonical)
    }
  }

  /// What the texts of a frame say of it, whatever the report.
  final class Facts: Sendable {
    let text: Text
    let path: Path

    enum Text: Sendable {
      case none
      /// A pseudo-function of the compiler that names a failed check.
      case failedCheck
      case swift(Parts)
      case other(Parts)
    }

    /// What the source's path says.
    struct Path: OptionSet, Sendable {
      var rawValue: UInt8

      static let isOfDependency = Path(rawValue: 1)
      /// The layout of a Swift package.
      static let isOfPackage = Path(rawValue: 2)
      /// A header of the system's.
      static let isOfSystem = Path(rawValue: 4)
      /// No path, as the compiler made the code up.
      static let isGenerated = Path(rawValue: 8)
    }

    init(text: Text, path: Path) {
      self.text = text
      self.path = path
    }
  }

  /// What makes a function that has no debug information nobody's.
  struct Sharing: Sendable {
    var isForwarder: Bool
    var isMerged: Bool
  }

  /// Some 300 bytes each.
  private static let limit = 200_000
  private let known = Lock<[String: Parts]>([:])
  private let shared = Lock<[String: Sharing]>([:])

  func facts(of names: FrameNames) -> Facts {
    names.facts { Facts(text: text(of: names), path: FrameClassifier.path(names.file)) }
  }

  private func text(of names: FrameNames) -> Facts.Text {
    guard let raw = names.rawFunction ?? names.function, !raw.isEmpty else { return .none }
    let function = names.function ?? Demangler.simplified(raw) ?? raw
    if raw.hasPrefix(runtimeFailurePrefix) || function.hasPrefix(runtimeFailurePrefix) { return .failedCheck }
    let parts = parts(rawFunction: raw, function: function)
    return SwiftName.isSwift(raw) ? .swift(parts) : .other(parts)
  }

  func parts(rawFunction: String, function: String) -> Parts {
    // A name that is not mangled may be shown in two ways; a mangled one has one simplified form, and is the key itself:
    // putting a longer one together for each frame costs more than the look-up.
    let key =
      SwiftName.isSwift(rawFunction) || rawFunction == function ? rawFunction : rawFunction + "\0" + function
    if let parts = known.withLock({ $0[key] }) { return parts }
    let parts = Parts(rawFunction: rawFunction, function: function)
    known.withLock { known in
      if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
      known[key] = parts
    }
    return parts
  }

  /// - Parameter names: of a Swift function.
  ///
  /// Apart from the rest, as only the demangled text tells, and few functions lack debug information where others have it.
  func sharing(of names: FrameNames) -> Sharing {
    names.sharing { sharing(rawFunction: names.rawFunction ?? names.function ?? "") }
  }

  private func sharing(rawFunction: String) -> Sharing {
    if let sharing = shared.withLock({ $0[rawFunction] }) { return sharing }
    let name = SwiftName(rawFunction: rawFunction)
    let sharing = Sharing(isForwarder: name.isForwarder, isMerged: name.isMerged)
    shared.withLock { shared in
      if shared.count >= Self.limit { shared.removeAll(keepingCapacity: true) }
      shared[rawFunction] = sharing
    }
    return sharing
  }
}
