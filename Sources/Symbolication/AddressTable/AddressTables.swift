private import CrashModel

/// When a file's debug information is turned into an `AddressTable`, and where tables are kept.
///
/// Without a table the units that hold the asked addresses are read, which is the fastest way to answer once. A table takes
/// the time of some dozens of such answers to build, and then answers in microseconds. How often a file will be asked nobody
/// knows; so a table is built when as much time went into answers without one as it will take. That is never more than
/// twice of what foresight would have cost.
public struct AddressTables: Sendable {
  /// When one is built, where the cache has none.
  public enum Use: Sendable {
    /// Never; the cache is not asked either.
    case never
    /// When answers without one took as long as it will take, in this process and, as the cache knows, in earlier ones.
    case whenWorthIt
    /// When it is first asked.
    case always
  }

  public var use: Use
  /// Nil: tables live as long as the `Symbolicator`.
  public var cache: AddressTableCache?

  public init(use: Use = .whenWorthIt, cache: AddressTableCache? = nil) {
    self.use = use
    self.cache = cache
  }
}
