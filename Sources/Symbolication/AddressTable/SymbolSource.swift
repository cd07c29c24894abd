/// The files of one image, and their table once there is one.
final class SymbolSource {
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
