/// What the hash needs to know of a function's name, remembered.
///
/// A month of crashes runs through few functions many times, and taking a name apart means demangling it. Bounded: a
/// stream of ever new names must not keep them all.
final class NameCache: Sendable {
  struct Parts: Sendable {
    /// Swift only.
    var module: String?
    var isForwarder = false
    var isMerged = false
    var canonical: String?
  }

  private static let limit = 50_000
  private let known = Lock<[String: Parts]>([:])

  func parts(rawFunction: String, function: String) -> Parts {
    // A name that is not mangled may be shown in two ways; a mangled one has one simplified form, and is the key itself:
    // putting a longer one together for each frame costs more than the look-up.
    let key =
      rawFunction == function || SwiftName.isSwift(rawFunction) ? rawFunction : rawFunction + "\0" + function
    if let parts = known.withLock({ $0[key] }) { return parts }
    var parts = Parts(canonical: CanonicalName.of(function: function, rawFunction: rawFunction))
    if SwiftName.isSwift(rawFunction) {
      let name = SwiftName(rawFunction: rawFunction)
      parts.module = name.module
      parts.isForwarder = name.isForwarder
      parts.isMerged = name.isMerged
    }
    known.withLock { known in
      if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
      known[key] = parts
    }
    return parts
  }
}
