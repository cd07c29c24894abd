/// The files of one image, and their table once there is one.
final class SymbolSource {
  private let answers: any ImageAnswers
  private let tables: AddressTables
  private var table: AddressTable?
  private var names = DisplayNames()
  /// The table's answers, as a bug crashes at the same addresses again and again. Of one kind: with the nearest lines, or
  /// without.
  private var known: [UInt64: ResolvedAddress] = [:]
  private var knowsNearestLines = false
  /// Some ten megabytes.
  private static let knownLimit = 16_384
  private var splitCost = 0
  /// What answers lacked because a file that the debug file refers to was not found, in words.
  private(set) var companionProblems: [String] = []
  /// Processor time of answers without a table that no other process knows of yet, in microseconds.
  private var spent = 0
  /// The same, of earlier processes.
  private lazy var spentBefore = findings.tableIdentity.flatMap { tables.cache?.spent(for: $0) } ?? 0
  /// Once is enough: a batch comes here for every report.
  private var askedCache = false
  /// Nothing to make a table from, or too much for one.
  private var hasNoTable = false

  init(_ answers: any ImageAnswers, tables: AddressTables) {
    self.answers = answers
    self.tables = tables
  }

  /// What was found; after `resolve` it may be less than before.
  var findings: ImageFindings { answers.findings }

  /// Names of code addresses, as the files number them: sorted, without repetitions. One for each.
  func resolve(_ addresses: [UInt64], nearestLines: Bool) -> [ResolvedAddress] {
    if let table = tableIfWorthIt() {
      let resolved = addresses.map { known(at: $0, in: table, nearestLines: nearestLines) }
      if table.problem == nil { return resolved }
      abandonTable()
    }
    // Where nothing was found, nobody need be asked, who may be another process: a batch does that for every report.
    guard findings.status.hasNames else { return Array(repeating: ResolvedAddress(), count: addresses.count) }
    let raw = answers.functions(at: addresses, nearestLines: nearestLines)
    spent = spent.addingReportingOverflow(raw.time).partialValue
    splitCost = raw.splitCost
    companionProblems = raw.companionProblems
    return ResolvedAddress.named(raw.functions, names: &names)
  }

  private func known(at address: UInt64, in table: AddressTable, nearestLines: Bool) -> ResolvedAddress {
    if nearestLines != knowsNearestLines {
      known = [:]
      knowsNearestLines = nearestLines
    }
    if let answer = known[address] { return answer }
    let functions = table.functions(at: address, nearestLines: nearestLines) ?? []
    let answer = ResolvedAddress(named: functions, names: &names)
    if known.count >= Self.knownLimit { known.removeAll(keepingCapacity: true) }
    known[address] = answer
    return answer
  }

  /// For a table that turned out to be damaged where nobody had looked before. What it said until then is not believed
  /// either; from here on the files answer.
  func abandonTable() {
    if let identity = findings.tableIdentity { tables.cache?.remove(identity) }
    table = nil
    known = [:]
    hasNoTable = true
  }

  /// Notes for later processes what answers cost without a table.
  deinit {
    if tables.use == .whenWorthIt, spent > 0, !hasNoTable, let identity = findings.tableIdentity {
      tables.cache?.addSpent(spent, for: identity)
    }
  }

  /// The table, if the cache has one or its time has come.
  func tableIfWorthIt() -> AddressTable? {
    if let table { return table }
    guard tables.use != .never, !hasNoTable, let identity = findings.tableIdentity else { return nil }
    if !askedCache {
      askedCache = true
      table = tables.cache?.table(for: identity)
      if table != nil {
        answers.close()
        return table
      }
    }
    let cost = findings.tableCost.addingReportingOverflow(splitCost).partialValue
    let isWorthIt = tables.use == .always || spent + spentBefore >= max(cost, 1)
    guard isWorthIt else { return nil }
    guard let finished = answers.table(key: identity.key) else {
      hasNoTable = true
      return nil
    }
    tables.cache?.store(finished, for: identity)
    spent = 0
    // Mapped rather than kept, so that the memory is the cache's and the next process finds it warm.
    table = tables.cache?.table(for: identity) ?? Self.inMemory(finished, key: identity.key)
    answers.close()
    return table
  }

  private static func inMemory(_ table: any WritableAddressTable, key: [UInt8]) -> AddressTable? {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: table.size, alignment: 8)
    var end = 0
    table.forEachPiece { piece in
      UnsafeMutableRawBufferPointer(rebasing: memory[end..<end + piece.count]).copyBytes(from: piece)
      end += piece.count
    }
    return try? AddressTable(UnsafeRawBufferPointer(memory), key: key, release: { memory.deallocate() })
  }
}
