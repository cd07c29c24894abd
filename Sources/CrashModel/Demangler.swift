private import CSwiftRuntime
private import Glibc

/// Turns linker names into names that people write.
public enum Demangler {
  /// The short form of a Swift, C++ or legacy Rust name, as the Swift runtime's own logs show it; nil for a name that is
  /// not mangled.
  ///
  /// May be called from any thread. Takes about a microsecond.
  ///
  /// ```swift
  /// Demangler.simplified("$s6orderd5StoreC4load2idS2i_tF")  // "Store.load(id:)"
  /// ```
  public static func simplified(_ mangled: String) -> String? {
    convert(mangled, with: CSwiftRuntime_demangle_simplified)
  }

  /// The full form of a Swift name, with modules, types and attributes; nil for other names.
  public static func full(_ mangled: String) -> String? { convert(mangled, with: CSwiftRuntime_demangle_full) }

  /// Whether the function only forwards to another one (a reabstraction, a partial apply).
  public static func isThunk(_ mangled: String) -> Bool {
    mangled.withCString { CSwiftRuntime_is_thunk($0) != 0 }
  }

  private static func convert(
    _ mangled: String, with function: (UnsafePointer<CChar>, Int) -> UnsafeMutablePointer<CChar>?
  ) -> String? {
    // The C side stops at NUL; a name that holds one is not a linker's.
    guard !mangled.utf8.contains(0) else { return nil }
    return mangled.withCString { name in
      guard let result = function(name, mangled.utf8.count) else { return nil }
      defer { free(result) }
      return String(cString: result)
    }
  }
}
