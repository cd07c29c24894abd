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
    /// Module and canonical name, as they go into the hash.
    let name: String?
    /// C and C++ only: a function of the runtimes, wherever it lies.
    let isOfRuntime: Bool

    init(rawFunction: String, function: String) {
      let canonical = CanonicalName.of(function: function, rawFunction: rawFunction)
      let isSwift = SwiftName.isSwift(rawFunction)
      let module = isSwift ? SwiftName.module(of: rawFunction) : nil
      self.canonical = canonical
      self.module = module
      isOfToolchain = module.map { FrameClassifier.standardModules.contains($0) } ?? false
      name = canonical.map { canonical in module.map { "\($0).\(canonical)" } ?? canonical }
      isOfRuntime = !isSwift && FrameClassifier.isOfRuntime(rawFunction, canonical: canonical)
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

  /// - Parameter rawFunction: a Swift name.
  ///
  /// Apart from the rest, as only the demangled text tells, and few functions lack debug information where others have it.
  func sharing(rawFunction: String) -> Sharing {
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
