private import CrashModel

/// When a file's debug information is turned into an `AddressTable`, and where tables are kept.
///
/// Without a table the units that hold the asked addresses are read, which is the fastest way to answer once. A table takes
/// the time of some dozens of such answers to build, and then answers in microseconds.
public struct AddressTables: Sendable {
  /// When one is built, where the cache has none.
  public enum Use: Sendable {
    /// Never; the cache is not asked either.
    case never
    /// When a file is asked for the second time, by this process or, as the cache knows, by an earlier one.
    case whenAskedAgain
    /// When it is first asked.
    case always
  }

  public var use: Use
  /// Nil: tables live as long as the `Symbolicator`.
  public var cache: AddressTableCache?

  public init(use: Use = .whenAskedAgain, cache: AddressTableCache? = nil) {
    self.use = use
    self.cache = cache
  }

  /// Addresses at once, from which on a table pays for itself.
  static let many = 20_000
}
