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

  static func isMangled(_ raw: String) -> Bool {
    ["_Z", "$s", "$S", "_$s", "_$S", "_T", "__Z", "___Z", "$e", "_$e"].contains { raw.hasPrefix($0) }
  }

  /// Legacy Rust names end in a hash of the crate's build, which says nothing to people and differs in each release.
  private static func withoutRustHash(_ name: String) -> String {
    let suffix = name.utf8.suffix(19)
    guard suffix.count == 19, suffix.starts(with: "::h".utf8),
      suffix.dropFirst(3).allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
    else { return name }
    return String(name.utf8.dropLast(19)) ?? name
  }

  /// The name without what compilers append to copies of a function (`.cold`, `.part.0`, `.constprop.1`).
  static func withoutCloneSuffix(_ raw: String) -> Substring {
    guard let dot = raw.utf8.dropFirst().firstIndex(of: UInt8(ascii: ".")) else { return raw[...] }
    return raw[..<dot]
  }
}
