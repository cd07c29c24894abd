internal import CrashModel
private import Glibc

/// What the command line says about redaction.
struct RedactionOptions {
  /// Off with `--no-redact`.
  var isOn = true
  var marks = Redactor.Marks.uniform
  var ruleFiles: [FilePath] = []
  /// Of those files, once they were read.
  var rules = RedactionRules()
}

extension Options {
  var redactor: Redactor { Redactor(rules: redaction.rules, marks: redaction.marks) }

  /// Reads what `--redact-rules` names.
  mutating func readRedactionRules() throws(UsageError) {
    guard redaction.isOn else {
      guard redaction.ruleFiles.isEmpty, redaction.marks == .uniform else {
        let flag = redaction.ruleFiles.isEmpty ? "--redact-kinds" : "--redact-rules"
        throw UsageError(message: "\(flag) has no effect with --no-redact")
      }
      return
    }
    for file in redaction.ruleFiles {
      do throws(RedactionRules.Problem) {
        let more = try RedactionRules(parsing: try Self.text(of: file))
        redaction.rules = try redaction.rules.adding(more)
      } catch {
        throw UsageError(message: "\(file): \(error)")
      }
    }
  }

  private static let largestRuleFile = 1024 * 1024

  private static func text(of file: FilePath) throws(RedactionRules.Problem) -> String {
    func problem(_ message: String) -> RedactionRules.Problem { RedactionRules.Problem(line: nil, message: message) }
    let descriptor = file.withCString { open($0, O_RDONLY | O_CLOEXEC) }
    guard descriptor >= 0 else { throw problem("cannot be read: \(errnoText(errno))") }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let count = read(descriptor, &block, block.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw problem("cannot be read: \(errnoText(errno))") }
      if count == 0 { break }
      bytes += block[..<count]
      guard bytes.count <= largestRuleFile else {
        throw problem("has more than \(largestRuleFile) bytes, which are no rules")
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw problem("is no UTF-8 text") }
    return text
  }
}

extension Flag {
  static let ofRedaction: [Flag] = [
    Flag(
      name: "redact", short: nil, value: .none,
      summary: "take personal data out of what reports say, whoever wrote them (default)",
      commands: [.symbolicate, .group]
    ) { options, _ in
      options.redaction.isOn = true
      return true
    },
    Flag(
      name: "no-redact", short: nil, value: .none, summary: "leave what reports say as it is",
      commands: [.symbolicate, .group]
    ) { options, _ in
      options.redaction.isOn = false
      return true
    },
    Flag(
      name: "redact-rules", short: nil, value: .path("FILE"),
      summary: "also take out what the rules in FILE find: a name and a regular expression a line; may be repeated",
      commands: [.symbolicate, .group, .redact]
    ) {
      $0.redaction.ruleFiles.append($1.path)
      return !$1.bytes.isEmpty
    },
    Flag(
      name: "redact-kinds", short: nil, value: .none,
      summary: "write what was taken out, [email] or [ip], in place of [redacted]",
      commands: [.symbolicate, .group, .redact]
    ) { options, _ in
      options.redaction.marks = .kinds
      return true
    },
  ]
}
