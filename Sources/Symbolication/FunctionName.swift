private import CrashModel

/// A linker's name as people write it.
enum FunctionName {
  /// What swiftc names the inlined function that stands for a failed check, before the check's own text.
  static let runtimeFailurePrefix = "Swift runtime failure: "

  /// The demangled and simplified name, or the name itself where it is not mangled.
  static func display(_ raw: String) -> String {
    // C's `i` and `f` would be taken for the mangled names of `int` and `float`.
    guard isMangled(raw), let name = Demangler.simplified(raw) else { return raw }
    return withoutRustHash(name)
  }

  /// The same for bytes.
  ///
  /// - Parameter body: gets the name; the bytes are valid until it returns.
  static func withDisplay<Result>(
    _ raw: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    guard isMangled(raw.prefix(4)) else { return body(raw) }
    return Demangler.withSimplified(raw) { name in
      guard let name else { return body(raw) }
      return body(UnsafeRawBufferPointer(rebasing: name.dropLast(rustHashSize(name))))
    }
  }

  static func isMangled(_ raw: String) -> Bool { isMangled(raw.utf8.prefix(4)) }

  /// By the first four bytes: `_Z`, `__Z`, `___Z` and `_T`; `$s`, `$S` and `$e`, also behind `_`.
  private static func isMangled(_ prefix: some Sequence<UInt8>) -> Bool {
    var bytes = prefix.makeIterator()
    guard var byte = bytes.next() else { return false }
    var underscores = 0
    while byte == UInt8(ascii: "_") {
      guard let next = bytes.next() else { return false }
      byte = next
      underscores += 1
    }
    switch byte {
    case UInt8(ascii: "Z"): return 1...3 ~= underscores
    case UInt8(ascii: "T"): return underscores == 1
    case UInt8(ascii: "$"):
      guard underscores <= 1, let kind = bytes.next() else { return false }
      return kind == UInt8(ascii: "s") || kind == UInt8(ascii: "S") || kind == UInt8(ascii: "e")
    default: return false
    }
  }

  /// Legacy Rust names end in a hash of the crate's build, which says nothing to people and differs in each release.
  private static func withoutRustHash(_ name: String) -> String {
    let size = rustHashSize(name.utf8)
    return size == 0 ? name : String(name.utf8.dropLast(size)) ?? name
  }

  private static func rustHashSize(_ name: some BidirectionalCollection<UInt8>) -> Int {
    let suffix = name.suffix(19)
    let isHash =
      suffix.count == 19 && suffix.starts(with: "::h".utf8)
      && suffix.dropFirst(3).allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    return isHash ? 19 : 0
  }

  /// The name without what compilers append to copies of a function (`.cold`, `.part.0`, `.constprop.1`).
  static func withoutCloneSuffix(_ raw: String) -> Substring {
    guard let dot = raw.utf8.dropFirst().firstIndex(of: UInt8(ascii: ".")) else { return raw[...] }
    return raw[..<dot]
  }
}
