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
      do throws(GroupStateError) { table.formUnion(try reader.table(of: path)) } catch {
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
