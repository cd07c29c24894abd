internal import CrashFormats
internal import CrashGrouping
internal import CrashModel

/// `symbolicate group resolve --in RELEASE STATE HASH…`
struct GroupResolveCommand {
  let options: Options
  let diagnostics: Diagnostics
  let output: Output

  private static let leastDigits = 6

  func run() throws(Output.Failure) -> ExitStatus {
    guard let path = options.operands.first, let reader = GroupStateReader() else {
      diagnostics.fatal("no memory")
      return .nothing
    }
    var table: GroupTable
    do throws(GroupStateError) { table = try reader.table(of: path) } catch {
      diagnostics.fatal("\(path): \(error.message)")
      return .nothing
    }
    // Which groups are merged and which are split, the rules say.
    let groups = table.groups(rules: options.grouping.rules)
    var lines = ""
    for operand in options.operands.dropFirst() {
      let digits = operand.description
      let found = groups.filter { group in group.hashes.contains { $0.digits.hasPrefix(digits) } }
      guard digits.utf8.count >= Self.leastDigits, let group = found.first,
        found.allSatisfy({ $0.hash == group.hash && $0.scope == group.scope })
      else {
        let why =
          digits.utf8.count < Self.leastDigits
          ? "at least \(Self.leastDigits) digits of a stack hash are needed"
          : found.isEmpty
            ? "no group has this stack hash"
            : "\(found.count) groups have this stack hash; name the first one of one of them: "
              + found.prefix(4).map(\.hash.digits).joined(separator: ", ")
        diagnostics.fatal("\(path): \(digits): \(why); nothing was changed")
        return .nothing
      }
      // The last word holds, whatever the clock of whoever had the word before.
      let earlier = group.resolution.map {
        Timestamp(rawValue: $0.moment.rawValue.addingReportingOverflow(1).partialValue)
      }
      let resolution = Resolution(release: options.groups.release, moment: max(.now, earlier ?? .now))
      table.resolve(group, resolution)
      let answer = resolution.release.map { "resolved in \($0)" } ?? "open"
      lines += Printable.line("\(group.hash.digits)  \(answer)  \(group.title)") + "\n"
    }
    let file = try Output(path: Output.target(of: path))
    do throws(Output.Failure) {
      try table.writeState { piece throws(Output.Failure) in try file.write(piece) }
      try file.finish()
    } catch {
      file.abandon()
      throw error
    }
    try output.write(lines)
    return .complete
  }
}
