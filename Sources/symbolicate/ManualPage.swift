/// The manual page `symbolicate(1)`, in the macros of man(7), made from the lists of commands and flags.
enum ManualPage {
  /// Of the last change to what it says.
  private static let date = "2026-11-30"

  /// Command lines that the page shows. They run as they are beside a report `crash.json`, a directory `reports` of such,
  /// a program `orderd` and an empty directory `issues`; a test does so.
  private static let examples: [(command: String, meaning: String)] = [
    ("symbolicate crash.json", "Show one crash with names, files and lines."),
    (
      "symbolicate --exe ./orderd --threads all crash.json", "The same with a program as it was built, and all threads."
    ),
    ("symbolicate --source-root ~/src/orderd crash.json", "With lines of source code."),
    ("symbolicate reports", "List the crashes of a directory, newest first, and count them by bug."),
    ("symbolicate group --format ndjson reports", "Count them by bug, for a program."),
    ("symbolicate --format markdown --limit 1 reports >issue.md", "The latest crash, as text for an issue tracker."),
    ("symbolicate --format sentry -o issues reports", "Each as an envelope that Sentry takes."),
    ("symbolicate --format folded reports >crashes.folded", "What a flame graph is made from."),
    ("symbolicate check --for crash.json ./orderd", "Whether a file is what a report needs."),
    ("symbolicate addr -afi -e ./orderd 0x1234", "Name one address, as addr2line does."),
  ]

  private static let environment: [(name: String, meaning: String)] = [
    ("DEBUGINFOD_URLS", "Servers to ask for debug files, as of other tools. Unset or empty: none."),
    (
      "SYMBOLICATE_CACHE_DIR",
      "Where tables made from debug information are kept, if --cache-dir does not say. Empty: nowhere."
    ), ("XDG_CACHE_HOME", "Where caches are, if not in ~/.cache."),
    ("NO_COLOR", "Not empty: no colors, but with --color always."),
    ("CLICOLOR_FORCE", "Not empty: colors also where the output is no terminal."),
    ("TERM", "dumb: no colors."),
  ]

  static func text() -> String {
    var text = #".TH SYMBOLICATE 1 "\#(date)" "symbolicate \#(Tool.version)" "User Commands""# + "\n"
    text += ".SH NAME\nsymbolicate \\- \(escaped(Command.symbolicate.summary))\n.SH SYNOPSIS\n"
    let usages = Command.allCases.filter { $0 != .store }.flatMap(\.synopsis)
    for (index, usage) in usages.enumerated() { text += (index > 0 ? ".br\n" : "") + line(usage) }
    text += ".SH DESCRIPTION\n" + paragraphs(Command.symbolicate.discussion)
    text += "Results go to standard output, everything else to standard error.\n"
    text += ".SH OPTIONS\n" + flags(of: .symbolicate)
    text += ".SH COMMANDS\n"
    for command in Command.allCases where command != .symbolicate && command != .help {
      text +=
        ".SS \(escaped(command.rawValue))\n" + paragraphs(command.summary.capitalizedFirst + ".\n" + command.discussion)
      text += flags(of: command)
    }
    text += ".SH \"EXIT STATUS\"\n"
    for status in Command.symbolicate.exitStatusLines + ["64 the command line is wrong"] {
      let parts = status.split(separator: " ", maxSplits: 1)
      guard parts.count == 2 else { continue }
      text += ".TP\n.B \(parts[0])\n" + line(String(parts[1].drop { $0 == " " }))
    }
    text += ".PP\n" + line("With --strict a 1 becomes a 2. Other commands: see their --help.")
    text += ".SH ENVIRONMENT\n"
    for variable in environment { text += ".TP\n.B \(variable.name)\n" + line(variable.meaning) }
    text += ".SH EXAMPLES\n"
    for (index, example) in examples.enumerated() {
      text += (index > 0 ? ".PP\n" : "") + line(example.meaning) + ".PP\n.EX\n$ \(escaped(example.command))\n.EE\n"
    }
    return text + ".SH \"SEE ALSO\"\n.BR addr2line (1),\n.BR debuginfod (8),\n.BR llvm\\-symbolizer (1)\n"
  }

  private static func flags(of command: Command) -> String {
    Flag.all.filter { $0.commands.contains(command) }.map { flag in
      var names = "\\fB\\-\\-\(escaped(flag.name))\\fR"
      if let short = flag.short { names = "\\fB\\-\(short)\\fR, " + names }
      if let placeholder = flag.value.placeholder { names += " \\fI\(escaped(placeholder))\\fR" }
      return ".TP\n\(names)\n" + line(flag.summary.capitalizedFirst)
    }.joined()
  }

  /// Text of several lines, without an empty one: lines that a person broke are filled anew.
  private static func paragraphs(_ text: String) -> String {
    text.split(separator: "\n").map { line(String($0)) }.joined()
  }

  /// Text that the formatter fills, in lines of at most 80 bytes.
  private static func line(_ text: String) -> String {
    var lines: [String] = []
    for word in text.split(separator: " ").map({ escaped(String($0)) }) {
      if let last = lines.last, last.utf8.count + 1 + word.utf8.count <= 79 {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        // At the beginning of a line a dot makes it a request; of a quote nothing is left by `escaped`.
        lines.append(word.hasPrefix(".") ? "\\&" + word : word)
      }
    }
    return lines.map { $0 + "\n" }.joined()
  }

  private static func escaped(_ text: String) -> String {
    text.map { character -> String in
      switch character {
      case "\\": "\\e"
      case "-": "\\-"
      case "~": "\\(ti"
      case "^": "\\(ha"
      case "`": "\\(ga"
      case "'": "\\(aq"
      default: String(character)
      }
    }.joined()
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
