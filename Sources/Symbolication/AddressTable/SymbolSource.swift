private import Glibc

/// The files of one image, and their table once there is one.
final class SymbolSource {
  let files: FoundDebugFiles
  private let tables: AddressTables
  private lazy var identity = AddressTableIdentity(files)
  private var table: AddressTable?
  private var names = DisplayNames()
  /// Processor time of answers without a table that no other process knows of yet, in microseconds.
  private var spent = 0
  /// The same, of earlier processes.
  private lazy var spentBefore = identity.flatMap { tables.cache?.spent(for: $0) } ?? 0
  /// Once is enough: a batch comes here for every report.
  private var askedCache = false
  /// Nothing to make a table from, or too much for one.
  private var hasNoTable = false

  init(_ files: FoundDebugFiles, tables: AddressTables) {
    self.files = files
    self.tables = tables
  }

  /// Names of code addresses, as the files number them: sorted, without repetitions. One for each.
  func resolve(_ addresses: [UInt64], nearestLines: Bool) -> [ResolvedAddress] {
    if let table = tableIfWorthIt() {
      let resolved = files.resolve(addresses, nearestLines: nearestLines, table: table, names: &names)
      if table.problem == nil { return resolved }
      // Damaged where nobody had looked before. What it said until then is not believed either.
      if let identity { tables.cache?.remove(identity) }
      self.table = nil
      hasNoTable = true
    }
    let start = Self.time()
    let resolved = files.resolve(addresses, nearestLines: nearestLines, names: &names)
    spent += Self.time() - start
    return resolved
  }

  /// Notes for later processes what answers cost without a table.
  deinit {
    if tables.use == .whenWorthIt, spent > 0, !hasNoTable, let identity { tables.cache?.addSpent(spent, for: identity) }
  }

  /// Of this thread's processor time, in microseconds.
  private static func time() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
  }

  /// What building the table will take, in microseconds, by estimate: two Swift programs with 8 and 42 MB of debug
  /// information took 0.06 to 0.08 s for each MB. Symbols have no chains and no lines.
  private lazy var cost: Int = {
    var debugInformation = files.debugInformation?.debugInformationSize ?? 0
    // The size of a split unit is seen when it is opened; C++ units have about this much.
    if let split = files.debugInformation?.units?.skeletonCount, split > 0 { debugInformation += split << 17 }
    let symbols = files.symbols?.sections.bytes(".symtab", ".dynsym").count ?? 0
    return debugInformation / 14 + symbols / 80
  }()

  private func tableIfWorthIt() -> AddressTable? {
    if let table { return table }
    guard tables.use != .never, !hasNoTable, files.debugInformation != nil || files.symbols != nil, let identity else {
      return nil
    }
    if !askedCache {
      askedCache = true
      table = tables.cache?.table(for: identity)
      if table != nil { return table }
    }
    let isWorthIt = tables.use == .always || spent + spentBefore >= max(cost, 1)
    guard isWorthIt else { return nil }
    guard let finished = AddressTableBuilder.table(for: files, key: identity.key) else {
      hasNoTable = true
      return nil
    }
    tables.cache?.store(finished, for: identity)
    spent = 0
    // Mapped rather than kept, so that the memory is the cache's and the next process finds it warm.
    table = tables.cache?.table(for: identity) ?? Self.inMemory(finished, key: identity.key)
    return table
  }

  private static func inMemory(_ table: FinishedAddressTable, key: [UInt8]) -> AddressTable? {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: table.size, alignment: 8)
    var end = 0
    table.forEachPiece { piece in
      UnsafeMutableRawBufferPointer(rebasing: memory[end..<end + piece.count]).copyBytes(from: piece)
      end += piece.count
    }
    return try? AddressTable(UnsafeRawBufferPointer(memory), key: key, release: { memory.deallocate() })
  }
}
