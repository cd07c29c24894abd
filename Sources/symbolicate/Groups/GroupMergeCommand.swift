internal import CrashGrouping
internal import CrashModel

/// `symbolicate group merge STATE…`
struct GroupMergeCommand {
  let options: Options
  let diagnostics: Diagnostics
  let output: Output

  func run() throws(Output.Failure) -> ExitStatus {
    guard let reader = GroupStateReader() else {
      diagnostics.fatal("no memory")
      return .nothing
    }
    var table = GroupTable()
    var isComplete = true
    for operand in options.operands {
      let path = operand == FilePath("-") ? nil : operand
      do throws(GroupStateError) {
        let other = try reader.table(of: path)
        try table.adoptSettings(of: other)
        table.formUnion(other)
      } catch {
        // The others are looked at too: whoever joins a hundred wants to know of all that are broken.
        diagnostics.fatal("\(path?.description ?? "standard input"): \(error.message)")
        isComplete = false
      }
    }
    // A part would pass for the whole.
    guard isComplete else { return .nothing }
    try table.writeState { piece throws(Output.Failure) in try output.write(piece) }
    return .complete
  }
}

extension GroupTable {
  /// Makes sure that the hashes of both tables mean the same.
  mutating func adoptSettings(of other: GroupTable) throws(GroupStateError) {
    guard let found = other.settings else { return }
    guard let settings, settings != found else {
      self.settings = found
      return
    }
    throw GroupStateError(
      "made with \(found.description), and what it is to be joined with with \(settings.description): one crash has "
        + "different stack hashes in the two; make one of them once more from the reports")
  }
}

extension HashSettings {
  /// For messages.
  var description: String {
    let rules = rulesDigest.map { "--rules (digest \($0.prefix(8)))" }
    let parts = [rules, acrossBuilds ? "--across-builds" : nil].compactMap { $0 }
    return parts.isEmpty ? "neither --rules nor --across-builds" : parts.joined(separator: " and ")
  }
}
