/// The texts of `--help`, made from the lists of commands and flags.
enum Help {
  static func text(for command: Command) -> String {
    var text = "Usage: " + command.synopsis.joined(separator: "\n       ") + "\n"
    if command == .symbolicate {
      // `store` stands for those that belong to it.
      for other in Command.allCases where other != .symbolicate && !other.needsStore {
        text += "       \(other.synopsis[0])\n"
      }
    }
    text += "\n\(command.discussion)\n\nOptions:\n"
    let rows = Flag.all.filter { $0.commands.contains(command) }.map { flag in
      (
        names: (flag.short.map { "-\($0), " } ?? "    ") + "--\(flag.name)"
          + (flag.value.placeholder.map { " \($0)" } ?? ""),
        summary: flag.summary
      )
    }
    let width = rows.map(\.names.count).max() ?? 0
    for row in rows {
      text += "  \(row.names)\(String(repeating: " ", count: width - row.names.count))  \(row.summary)\n"
    }
    let lines = command.exitStatusLines + ["64 the command line is wrong"]
    return text + "\nExit status:\n" + lines.map { "  \($0)\n" }.joined()
  }
}
