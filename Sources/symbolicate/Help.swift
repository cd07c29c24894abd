/// The texts of `--help`, made from the lists of commands and flags.
enum Help {
  /// Columns of a line; those of a flag's names, which if longer have their explanation below.
  private static let (width, nameWidth) = (100, 30)

  static func text(for command: Command) -> String {
    var text = "Usage: " + command.synopsis.joined(separator: "\n       ") + "\n"
    if command == .symbolicate {
      // `store` stands for those that belong to it.
      for other in Command.allCases where other != .symbolicate && !other.needsStore {
        text += "       \(other.synopsis[0])\n"
      }
    }
    text += "\n\(command.discussion)\n\nOptions:\n"
    for flag in Flag.all where flag.commands.contains(command) {
      let names =
        (flag.short.map { "-\($0), " } ?? "    ") + "--\(flag.name)" + (flag.value.placeholder.map { " \($0)" } ?? "")
      let lines = wrapped(flag.summary, to: width - nameWidth - 4)
      let indentation = String(repeating: " ", count: nameWidth + 4)
      if names.count <= nameWidth {
        text += "  \(names)\(String(repeating: " ", count: nameWidth - names.count))  "
      } else {
        text += "  \(names)\n\(indentation)"
      }
      text += lines.joined(separator: "\n" + indentation) + "\n"
    }
    let lines = command.exitStatusLines + ["64 the command line is wrong"]
    return text + "\nExit status:\n" + lines.map { "  \($0)\n" }.joined()
  }

  /// Lines of at most so many characters, but for longer words.
  private static func wrapped(_ text: String, to width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(separator: " ") {
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}
