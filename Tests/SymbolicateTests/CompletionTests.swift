import Foundation
import TestSupport
import Testing

/// The shells themselves run the scripts. They are installed by `.ci/install-packages`.
struct CompletionTests {
  private func script(_ shell: String) throws -> String {
    let outcome = try SymbolicateTool.run("--generate-completion-script", shell)
    #expect(outcome.status == .exited(0) && outcome.errors.isEmpty)
    return outcome.text
  }

  private func run(_ shell: String, _ arguments: String..., in folder: TemporaryDirectory) throws -> String {
    let environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path, "TERM": "dumb"]
    let outcome = try ChildProcess(
      ["/usr/bin/env", shell] + arguments, environment: environment, directory: folder.path
    ).run()
    #expect(outcome.status == .exited(0) && outcome.errors.isEmpty, "\(shell): \(outcome.status) \(outcome.errorText)")
    return outcome.text
  }

  private static let cases: [(words: [String], contains: [String], lacks: [String])] = [
    (["--form"], ["--format"], ["--threads"]), (["--format", "s"], ["swift-json", "sentry"], ["json", "text"]),
    (["-f", "mark"], ["markdown", "markup"], ["text"]), (["gro"], ["group"], ["addr"]),
    (["group", "--format", ""], ["text", "json", "ndjson"], ["sentry"]), (["store", "a"], ["add"], ["gc", "list"]),
    (["store", "add", "--sto"], ["--store"], ["--threads"]), (["store", "gc", "--keep"], ["--keep-releases"], []),
    (["help", "che"], ["check"], ["group"]), (["group", "--thr"], [], ["--threads"]),
    (["addr", "--base"], ["--basenames"], []), (["--color", "al"], ["always"], ["auto"]),
    (["cra"], ["crash.json"], ["reports"]), (["--source-root", "re"], ["reports"], ["crash.json"]),
    (["check", "--for", "cra"], ["crash.json"], []), (["--limit", "c"], [], ["crash.json"]),
  ]

  private func folder() throws -> TemporaryDirectory {
    let folder = try TemporaryDirectory("completion")
    _ = try folder.file("crash.json", [])
    _ = try folder.file("reports/a.json", [])
    return folder
  }

  @Test func bash() throws {
    let folder = try folder()
    _ = try folder.file("script", Array(try script("bash").utf8))
    for (words, contains, lacks) in Self.cases {
      let program = """
        source ./script
        COMP_WORDS=(symbolicate "$@"); COMP_CWORD=$#; COMPREPLY=()
        _symbolicate; printf '%s\\n' "${COMPREPLY[@]}"
        """
      var child = ChildProcess(["/bin/bash", "-c", program, "-"] + words, directory: folder.path)
      child.limit = 60
      let outcome = try child.run()
      #expect(outcome.errors.isEmpty, "\(outcome.errorText)")
      let found = outcome.text.split(separator: "\n").map(String.init)
      #expect(Set(contains).isSubset(of: found), "\(words): \(found)")
      #expect(Set(lacks).isDisjoint(with: found), "\(words): \(found)")
    }
    // The shell takes "--format=s" apart.
    let parts = try run(
      "bash", "-c",
      "source ./script; COMP_WORDS=(symbolicate --format = s); COMP_CWORD=3; _symbolicate; echo ${COMPREPLY[@]}",
      in: folder)
    #expect(parts == "swift-json sentry\n")
  }

  @Test func fish() throws {
    let folder = try folder()
    _ = try folder.file("script", Array(try script("fish").utf8))
    for (words, contains, lacks) in Self.cases {
      let line = (["symbolicate"] + words).joined(separator: " ")
      let found = try run("fish", "--no-config", "-c", "source ./script; complete -C '\(line)'", in: folder)
        .split(separator: "\n").map { $0.split(separator: "\t")[0].split(separator: "/")[0] }.map(String.init)
      #expect(Set(contains).isSubset(of: found), "\(words): \(found)")
      #expect(Set(lacks).isDisjoint(with: found), "\(words): \(found)")
    }
  }

  /// zsh completes only at a terminal: it gets one of its own, and prints what it would offer.
  @Test func zsh() throws {
    let folder = try folder()
    _ = try folder.file("functions/_symbolicate", Array(try script("zsh").utf8))
    let program = """
      zmodload zsh/zpty
      zpty z zsh -f -i
      send() { zpty -w z "$1"; }
      send "PS1=; unset zle_bracketed_paste; fpath=($PWD/functions \\$fpath); autoload -U compinit; compinit -u -D"
      send "compadd() { local -a a; builtin compadd -A a \\"\\$@\\"; (( \\${#a} )) && print -l -- OFFER:\\${^a}; builtin compadd \\"\\$@\\"; }"
      send "zstyle ':completion:*' list-prompt ''; echo READY\\$((1+1))"
      zpty -r z out '*READY2*'
      zpty -w -n z "symbolicate $1"$'\\t'
      zpty -w -n z $'\\C-u'"echo DONE\\$((1+1))"$'\\n'
      zpty -r z out '*DONE2*'
      print -r -- $out
      """
    for (words, contains, lacks) in Self.cases {
      let outcome = try ChildProcess(
        ["/usr/bin/env", "zsh", "-f", "-c", program, "-", words.joined(separator: " ")],
        environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path, "TERM": "vt100"], directory: folder.path
      ).run()
      let found = outcome.text.split { $0.isNewline }.compactMap { line -> String? in
        line.range(of: "OFFER:").map { String(line[$0.upperBound...]).trimmingCharacters(in: .whitespaces) }
      }
      #expect(Set(contains).isSubset(of: found), "\(words): \(found) \(outcome.text) \(outcome.errorText)")
      #expect(Set(lacks).isDisjoint(with: found), "\(words): \(found)")
    }
  }
}
