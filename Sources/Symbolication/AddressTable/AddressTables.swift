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

/// The files of one image, and their table once there is one.
final class ImageSymbols {
  let files: FoundDebugFiles
  private let tables: AddressTables
  private lazy var identity = AddressTableIdentity(files)
  private var table: AddressTable?
  private var wasAsked = false
  /// Nothing to make a table from, or too much for one.
  private var hasNoTable = false

  init(_ files: FoundDebugFiles, tables: AddressTables) {
    self.files = files
    self.tables = tables
  }

  /// Names of code addresses, as the files number them: sorted, without repetitions. One for each.
  func resolve(_ addresses: [UInt64], nearestLines: Bool) -> [ResolvedAddress] {
    if let table = table(forCount: addresses.count) {
      let resolved = files.resolve(addresses, nearestLines: nearestLines, table: table)
      if table.problem == nil { return resolved }
      // Damaged where nobody had looked before. What it said until then is not believed either.
      if let identity { tables.cache?.remove(identity) }
      self.table = nil
      hasNoTable = true
    }
    return files.resolve(addresses, nearestLines: nearestLines)
  }

  private func table(forCount count: Int) -> AddressTable? {
    if let table { return table }
    guard tables.use != .never, !hasNoTable, files.debugInformation != nil || files.symbols != nil, let identity else {
      return nil
    }
    table = tables.cache?.table(for: identity)
    if table != nil { return table }
    let isWorthIt =
      tables.use == .always || wasAsked || count >= AddressTables.many
      || tables.cache?.wasAskedBefore(identity) == true
    wasAsked = true
    guard isWorthIt else { return nil }
    guard let bytes = AddressTableBuilder.bytes(for: files, key: identity.key) else {
      hasNoTable = true
      return nil
    }
    tables.cache?.store(bytes, for: identity)
    // Mapped rather than kept, so that the memory is the cache's and the next process finds it warm.
    table = tables.cache?.table(for: identity) ?? Self.inMemory(bytes, key: identity.key)
    return table
  }

  private static func inMemory(_ bytes: [UInt8], key: [UInt8]) -> AddressTable? {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
    memory.copyBytes(from: bytes)
    return try? AddressTable(UnsafeRawBufferPointer(memory), key: key, release: { memory.deallocate() })
  }
}
