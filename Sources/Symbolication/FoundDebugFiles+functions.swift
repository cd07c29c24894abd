internal import CrashModel

extension FoundDebugFiles {
  /// For each address (sorted, as the files number them) the functions at it, with the linker's names.
  ///
  /// Debug information first; the symbol table where there is none, and for names that compilers leave to it. The symbol
  /// table is read only if one address needs it.
  func functions(at addresses: [UInt64], nearestLines: Bool) -> [[SymbolicatedFunction]] {
    debugInformation?.handle.willRead(.debugInformation)
    let answers =
      debugInformation?.units?.answers(to: addresses, nearestLines: nearestLines)
      ?? Array(repeating: nil, count: addresses.count)
    let lacking = addresses.indices.filter { answers[$0].map(\.wantsLinkageName) ?? true }.map { addresses[$0] }
    let table = lacking.isEmpty ? nil : symbols?.symbols(around: lacking)
    return zip(addresses, answers).map { address, answer in
      if var answer {
        if answer.wantsLinkageName { Self.completeOutermost(&answer.functions, by: table?.name(of: address)) }
        return answer.functions
      }
      return table?.name(of: address).map { [SymbolicatedFunction(rawFunction: $0)] } ?? []
    }
  }

  /// Takes the outermost function's name from the symbol table, where the debug information has none or only the
  /// unqualified one.
  private static func completeOutermost(_ functions: inout [SymbolicatedFunction], by symbol: String?) {
    guard let last = functions.indices.last, let symbol else { return }
    functions[last].rawFunction = completed(functions[last].rawFunction, by: symbol)
  }

  /// The linker's name of a function whose debug information has none, or only the unqualified one.
  static func completed(_ raw: String?, by symbol: String) -> String {
    guard let raw else { return symbol }
    return symbol.hasPrefix("_Z") ? String(FunctionName.withoutCloneSuffix(symbol)) : raw
  }
}

/// Names as people write them, by the linker's. Bounded: a stream of ever new names must not keep them all.
struct DisplayNames {
  private static let limit = 50_000
  private var known: [String: String] = [:]

  subscript(raw: String) -> String {
    mutating get {
      if let name = known[raw] { return name }
      let name = FunctionName.display(raw)
      if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
      known[raw] = name
      return name
    }
  }
}

extension AddressTable {
  func functions(at addresses: [UInt64], nearestLines: Bool) -> [[SymbolicatedFunction]] {
    addresses.map { functions(at: $0, nearestLines: nearestLines) ?? [] }
  }
}

extension ResolvedAddress {
  /// Makes names readable, and takes out what is no function.
  static func named(_ functions: [[SymbolicatedFunction]], names: inout DisplayNames) -> [ResolvedAddress] {
    functions.map { ResolvedAddress(named: $0, names: &names) }
  }

  init(named functions: [SymbolicatedFunction], names: inout DisplayNames) {
    self.init(functions: functions)
    takeRuntimeFailure()
    // A table's answers have both names.
    for index in self.functions.indices where self.functions[index].function == nil {
      if let raw = self.functions[index].rawFunction { self.functions[index].function = names[raw] }
    }
    // Not without looking: a removal of nothing copies an array that is shared.
    if self.functions.contains(where: { $0.rawFunction == nil && $0.file == nil }) {
      self.functions.removeAll { $0.rawFunction == nil && $0.file == nil }
    }
  }

  /// Turns the pseudo-function of a failed check into `runtimeFailure`.
  fileprivate mutating func takeRuntimeFailure() {
    let prefix = FunctionName.runtimeFailurePrefix
    // Nearly every name begins with `$` or `_`.
    guard functions.contains(where: { $0.inlined && $0.rawFunction?.utf8.first == UInt8(ascii: "S") }),
      let failure = functions.first(where: { $0.inlined && $0.rawFunction?.hasPrefix(prefix) == true }),
      let name = failure.rawFunction
    else { return }
    runtimeFailure = String(name.dropFirst(prefix.count))
    functions.removeAll { $0.inlined && $0.rawFunction?.hasPrefix(prefix) == true }
  }
}
