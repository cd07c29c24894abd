/// Scripts by which shells complete a command line, made from the lists of commands and flags.
enum Completion {
  enum Shell: String, CaseIterable { case bash, zsh, fish }

  static func script(for shell: Shell) -> String {
    switch shell {
    case .bash: bash()
    case .zsh: zsh()
    case .fish: fish()
    }
  }

  /// What a value, or an operand, may be.
  enum Candidates: Hashable {
    case words([String])
    case files
    case directories
    /// A URL, a number, a name: nothing that a shell could know.
    case anything
  }

  private static var commands: [Command] { Command.allCases.filter { $0 != .symbolicate } }

  /// The words that a command line begins with: `store add` is two.
  private static var firstWords: [String] { commands.map(\.rawValue).filter { !$0.contains(" ") } }

  private static func secondWords(of first: String) -> [String] {
    commands.compactMap { command in
      let words = command.rawValue.split(separator: " ")
      return words.count == 2 && words[0] == first ? String(words[1]) : nil
    }
  }

  private static func flags(of command: Command) -> [Flag] { Flag.all.filter { $0.commands.contains(command) } }

  private static func operands(of command: Command) -> Candidates {
    switch command {
    case .help: .words(firstWords)
    case .store: .words(secondWords(of: command.rawValue))
    case .addr, .redact, .storeList, .storeCollect: .anything
    default: .files
    }
  }

  // MARK: bash

  private static func bash() -> String {
    var text = """
      # bash completion for symbolicate; made by symbolicate --generate-completion-script bash
      _symbolicate() {
        local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=symbolicate
        # "--format=json" comes as three words.
        if [[ $cur == "=" ]]; then
          cur=
        elif [[ $prev == "=" ]] && ((COMP_CWORD > 2)); then
          prev=${COMP_WORDS[COMP_CWORD-2]}
        fi
        if ((COMP_CWORD > 2)); then
          case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in

      """
    for command in commands where command.rawValue.contains(" ") {
      text += "      \(quoted(command.rawValue))) command=\(quoted(command.rawValue)) ;;\n"
    }
    text += """
          esac
        fi
        if ((COMP_CWORD > 1)) && [[ $command == symbolicate ]]; then
          case "${COMP_WORDS[1]}" in
            \(firstWords.joined(separator: " | "))) command=${COMP_WORDS[1]} ;;
          esac
        fi
        local values= flags= operands=files
        case $command in

      """
    for command in Command.allCases {
      text += "    \(quoted(command.rawValue)))\n      case $prev in\n"
      for flag in flags(of: command) where !flag.value.isNone {
        let names = ["--\(flag.name)"] + (flag.short.map { ["-\($0)"] } ?? [])
        text += "        \(names.joined(separator: " | "))) values=\(quoted(bashValue(flag.value.candidates))) ;;\n"
      }
      let names =
        flags(of: command).map { "--\($0.name)" } + flags(of: command).compactMap { $0.short.map { "-\($0)" } }
      text += "      esac\n      flags=\(quoted(names.joined(separator: " ")))\n"
      text += "      operands=\(quoted(bashValue(operands(of: command))))\n      ;;\n"
    }
    text += """
        esac
        COMPREPLY=()
        if [[ -z $values ]]; then
          if [[ $cur == -* ]]; then
            values="words $flags"
          else
            values=$operands
            if ((COMP_CWORD == 1)); then
              mapfile -t COMPREPLY < <(compgen -W \(quoted(firstWords.joined(separator: " "))) -- "$cur")
            fi
          fi
        fi
        local found=()
        case $values in
          files) compopt -o filenames 2>/dev/null; mapfile -t found < <(compgen -f -- "$cur") ;;
          directories) compopt -o filenames 2>/dev/null; mapfile -t found < <(compgen -d -- "$cur") ;;
          words*) mapfile -t found < <(compgen -W "${values#words}" -- "$cur") ;;
        esac
        COMPREPLY+=("${found[@]}")
      }
      complete -F _symbolicate symbolicate

      """
    return text
  }

  private static func bashValue(_ candidates: Candidates) -> String {
    switch candidates {
    case .words(let words): "words \(words.joined(separator: " "))"
    case .files: "files"
    case .directories: "directories"
    case .anything: "anything"
    }
  }

  // MARK: zsh

  private static func zsh() -> String {
    var text = """
      #compdef symbolicate
      # made by symbolicate --generate-completion-script zsh
      _symbolicate() {
        local command=symbolicate
        if ((CURRENT > 3)); then
          case "$words[2] $words[3]" in

      """
    for command in commands where command.rawValue.contains(" ") {
      text +=
        "      \(quoted(command.rawValue))) command=\(quoted(command.rawValue)); shift 2 words; ((CURRENT -= 2)) ;;\n"
    }
    text += """
          esac
        fi
        if ((CURRENT > 2)) && [[ $command == symbolicate ]]; then
          case $words[2] in
            \(firstWords.joined(separator: "|"))) command=$words[2]; shift words; ((CURRENT -= 1)) ;;
          esac
        fi
        case $command in

      """
    for command in Command.allCases {
      text += "    \(quoted(command.rawValue)))\n      _arguments -s -S"
      for flag in flags(of: command) { text += " \\\n        \(zshFlag(flag))" }
      if command == .symbolicate { text += " \\\n        '1: :_symbolicate_first'" }
      text += " \\\n        \(quoted("*: :" + zshAction(operands(of: command))))\n      ;;\n"
    }
    text += "  esac\n}\n_symbolicate_first() {\n  local -a commands=(\n"
    for command in commands where !command.rawValue.contains(" ") {
      text += "    \(quoted("\(command.rawValue):\(command.summary)"))\n"
    }
    return text + """
        )
        _describe -t commands command commands
        _files
      }
      if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
        _symbolicate "$@"
      else
        compdef _symbolicate symbolicate
      fi

      """
  }

  private static func zshFlag(_ flag: Flag) -> String {
    var description = ""
    for character in flag.summary {
      if "[]:\\".contains(character) { description += "\\" }
      description.append(character)
    }
    let value = flag.value.placeholder == nil ? "" : ":value:" + zshAction(flag.value.candidates)
    let long = flag.value.isNone ? "--\(flag.name)" : "--\(flag.name)="
    let short = flag.short.map { flag.value.isNone ? "-\($0)" : "-\($0)+" }
    return ([long] + (short.map { [$0] } ?? [])).map { quoted("*\($0)[\(description)]\(value)") }
      .joined(separator: " \\\n        ")
  }

  private static func zshAction(_ candidates: Candidates) -> String {
    switch candidates {
    case .words(let words): "(\(words.joined(separator: " ")))"
    case .files: "_files"
    case .directories: "_files -/"
    case .anything: " "
    }
  }

  // MARK: fish

  private static func fish() -> String {
    var text = """
      # fish completion for symbolicate; made by symbolicate --generate-completion-script fish
      function __symbolicate_command_is
          set -l words (commandline -opc)
          set -l command symbolicate
          if contains -- "$words[2] $words[3]" \(commands.filter { $0.rawValue.contains(" ") }.map { quoted($0.rawValue) }.joined(separator: " "))
              set command "$words[2] $words[3]"
          else if contains -- "$words[2]" \(firstWords.joined(separator: " "))
              set command $words[2]
          end
          test "$command" = "$argv[1]"
      end
      function __symbolicate_is_first
          test (count (commandline -opc)) -eq 1
      end

      """
    for command in commands where !command.rawValue.contains(" ") {
      text +=
        "complete -c symbolicate -n __symbolicate_is_first -a \(command.rawValue) -d \(fishQuoted(command.summary))\n"
    }
    for command in Command.allCases {
      let condition = fishQuoted("__symbolicate_command_is \(fishQuoted(command.rawValue))")
      switch operands(of: command) {
      case .words(let words):
        text += "complete -c symbolicate -n \(condition) -f -a \(fishQuoted(words.joined(separator: " ")))\n"
      case .anything: text += "complete -c symbolicate -n \(condition) -f\n"
      case .files, .directories: break
      }
      for flag in flags(of: command) {
        text += "complete -c symbolicate -n \(condition) -l \(flag.name)"
        if let short = flag.short { text += " -s \(short)" }
        if !flag.value.isNone {
          switch flag.value.candidates {
          case .words(let words): text += " -x -a \(fishQuoted(words.joined(separator: " ")))"
          case .files: text += " -r -F"
          case .directories: text += " -x -a '(__fish_complete_directories (commandline -ct))'"
          case .anything: text += " -x"
          }
        }
        text += " -d \(fishQuoted(flag.summary))\n"
      }
    }
    return text
  }

  private static func fishQuoted(_ text: String) -> String {
    var result = "'"
    for character in text {
      if character == "'" || character == "\\" { result += "\\" }
      result.append(character)
    }
    return result + "'"
  }

  /// For bash and zsh.
  private static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
  }
}

extension Flag.Value {
  /// What a shell may put in its place.
  var candidates: Completion.Candidates {
    switch self {
    case .choice(let values): .words(values)
    case .path("DIR"): .directories
    case .path("FILE"), .path("FILE|DIR"), .path("REPORT"): .files
    case .path, .number, .none: .anything
    }
  }
}
