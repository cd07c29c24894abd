extension FoundDebugFiles {
  /// Names of code addresses, as the files number them.
  ///
  /// Debug information first; the symbol table where there is none, and for names that compilers leave to it. The symbol
  /// table is read only if one address needs it.
  ///
  /// - Parameters:
  ///   - addresses: sorted, without repetitions.
  ///   - nearestLines: whether code without a line gets the nearest one of its function.
  /// - Returns: one for each address.
  func resolve(_ addresses: [UInt64], nearestLines: Bool) -> [ResolvedAddress] {
    if addresses.isEmpty { return [] }
    let answers =
      debugInformation?.units?.answers(to: addresses, nearestLines: nearestLines)
      ?? Array(repeating: nil, count: addresses.count)
    var displayNames: [String: String] = [:]
    func display(_ raw: String) -> String {
      if let name = displayNames[raw] { return name }
      let name = FunctionName.display(raw)
      displayNames[raw] = name
      return name
    }
    return zip(addresses, answers).map { address, answer in
      var resolved = ResolvedAddress()
      if let answer {
        resolved.functions = answer.functions
        if answer.wantsLinkageName { completeOutermost(&resolved.functions, at: address) }
        resolved.takeRuntimeFailure()
      } else if let name = symbols?.symbols.name(of: address) {
        resolved.functions = [SymbolicatedFunction(rawFunction: name)]
      }
      for index in resolved.functions.indices {
        if let raw = resolved.functions[index].rawFunction { resolved.functions[index].function = display(raw) }
      }
      resolved.functions.removeAll { $0.rawFunction == nil && $0.file == nil }
      return resolved
    }
  }

  /// Takes the outermost function's name from the symbol table, where the debug information has none or only the
  /// unqualified one.
  private func completeOutermost(_ functions: inout [SymbolicatedFunction], at address: UInt64) {
    guard let last = functions.indices.last, let symbol = symbols?.symbols.name(of: address) else { return }
    if functions[last].rawFunction == nil {
      functions[last].rawFunction = symbol
    } else if symbol.hasPrefix("_Z") {
      functions[last].rawFunction = String(FunctionName.withoutCloneSuffix(symbol))
    }
  }
}

extension ResolvedAddress {
  /// Turns the pseudo-function of a failed check into `runtimeFailure`.
  fileprivate mutating func takeRuntimeFailure() {
    let prefix = FunctionName.runtimeFailurePrefix
    guard let failure = functions.first(where: { $0.inlined && $0.rawFunction?.hasPrefix(prefix) == true }),
      let name = failure.rawFunction
    else { return }
    runtimeFailure = String(name.dropFirst(prefix.count))
    functions.removeAll { $0.inlined && $0.rawFunction?.hasPrefix(prefix) == true }
  }
}
