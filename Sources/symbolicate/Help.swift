/// The texts of `--help`, made from the lists of commands and flags.
enum Help {
  static func text(for command: Command) -> String {
    var text = "Usage: " + command.synopsis.joined(separator: "\n       ") + "\n"
    if command == .symbolicate {
      for other in Command.allCases where other != .symbolicate { text += "       \(other.synopsis[0])\n" }
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
    text += """

      Exit status:
        0  complete: every frame has its name, or can have none
        1  incomplete: missing symbols, or inputs that could not be read
        2  nothing was produced
        64 the command line is wrong

      """
    return text
  }
}
