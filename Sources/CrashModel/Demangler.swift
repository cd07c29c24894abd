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

  /// The short form as bytes, for batches in which making strings would be half of the work.
  ///
  /// - Parameter body: gets nil for a name that is not mangled; the bytes are valid until it returns.
  package static func withSimplified<Result>(
    _ mangled: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer?) -> Result
  ) -> Result {
    withUnsafeTemporaryAllocation(byteCount: mangled.count + 1, alignment: 1) { name in
      name.copyMemory(from: mangled)
      name[mangled.count] = 0
      let characters = name.assumingMemoryBound(to: CChar.self)
      // The C side stops at NUL; a name that holds one is not a linker's.
      guard let start = characters.baseAddress, strlen(start) == mangled.count,
        let result = CSwiftRuntime_demangle_simplified(start, mangled.count)
      else { return body(nil) }
      defer { free(result) }
      return body(UnsafeRawBufferPointer(start: result, count: strlen(result)))
    }
  }

  private static func convert(
    _ mangled: String, with function: (UnsafePointer<CChar>, Int) -> UnsafeMutablePointer<CChar>?
  ) -> String? {
    let count = mangled.utf8.count
    return mangled.withCString { name in
      guard strlen(name) == count, let result = function(name, count) else { return nil }
      defer { free(result) }
      return String(cString: result)
    }
  }
}
