internal import CrashModel

/// A command line that says nothing that can be done.
struct UsageError: Error {
  var message: String
}

/// Reads arguments by the list of flags.
enum ArgumentParser {
  /// - Parameter arguments: without the program's name.
  static func parse(_ arguments: [Argument]) throws(UsageError) -> Options {
    var options = Options()
    var rest = arguments[...]
    if let (command, count) = Command.leading(rest.prefix(2).map(\.text)), command != .symbolicate {
      options.command = command
      rest.removeFirst(count)
    }
    var onlyOperands = false
    while let argument = rest.popFirst() {
      if onlyOperands || argument.text == "-" || !argument.hasPrefix("-") {
        options.operands.append(argument.path)
      } else if argument.text == "--" {
        onlyOperands = true
      } else if argument.hasPrefix("--") {
        try long(argument, &rest, &options)
      } else {
        try short(argument, &rest, &options)
      }
    }
    return options
  }

  private static func long(_ argument: Argument, _ rest: inout ArraySlice<Argument>, _ options: inout Options)
    throws(UsageError)
  {
    let parts = argument.bytes.dropFirst(2)
      .split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      .map(Argument.init(bytes:))
    let name = parts.first?.text ?? ""
    guard let flag = Flag.first(for: options.command, where: { $0.name == name }) else {
      throw unknown("--" + name, suggestion: nearest(name, for: options.command).map { "--" + $0 })
    }
    if flag.value.isNone {
      guard parts.count == 1 else { throw UsageError(message: "--\(name) takes no value") }
      try apply(flag, Argument(bytes: []), &options, spelling: "--" + name)
    } else {
      guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else { throw missing(flag, "--" + name) }
      try apply(flag, value, &options, spelling: "--" + name)
    }
  }

  /// `-qv`, `-fjson`, `-f json`.
  private static func short(_ argument: Argument, _ rest: inout ArraySlice<Argument>, _ options: inout Options)
    throws(UsageError)
  {
    var letters = argument.bytes.dropFirst()
    while let byte = letters.popFirst() {
      let letter = byte < 0x80 ? String(Unicode.Scalar(byte)) : FilePath(bytes: [byte]).description
      guard let flag = Flag.first(for: options.command, where: { $0.short.map(String.init) == letter }) else {
        // A single-dash long word is the likelier meaning of `-format`.
        let name = Argument(bytes: argument.bytes.dropFirst()).text
        let suggestion = Flag.all.contains { $0.name == name } ? name : nil
        throw unknown("-\(letter)", suggestion: suggestion.map { "--" + $0 })
      }
      if flag.value.isNone {
        try apply(flag, Argument(bytes: []), &options, spelling: "-\(letter)")
        continue
      }
      let attached = letters.first == UInt8(ascii: "=") ? letters.dropFirst() : letters
      guard let value = attached.isEmpty ? rest.popFirst() : Argument(bytes: attached) else {
        throw missing(flag, "-\(letter)")
      }
      try apply(flag, value, &options, spelling: "-\(letter)")
      return
    }
  }

  private static func apply(_ flag: Flag, _ value: Argument, _ options: inout Options, spelling: String)
    throws(UsageError)
  {
    guard flag.commands.contains(options.command) else {
      throw UsageError(message: "\(spelling) is no option of '\(options.command.rawValue)'")
    }
    guard flag.apply(&options, value) else {
      let expected: String =
        switch flag.value {
        case .choice(let values): "one of " + values.joined(separator: ", ")
        case .number(_, let range): range
        case .path: "a name that is not empty"
        case .none: "another value"
        }
      throw UsageError(message: "\(spelling) takes \(expected), not '\(value.text)'")
    }
    if flag.use != nil { options.given[flag.name] = spelling }
  }

  /// Flags that the command line gives and that would change nothing in what it asks for: said, not passed over.
  ///
  /// - Parameter hasDirectory: an operand is a directory.
  static func check(_ options: Options, hasDirectory: Bool) throws(UsageError) {
    let mode = Options.Mode(options, hasDirectory: hasDirectory)
    for flag in Flag.all where flag.commands.contains(options.command) {
      guard let spelling = options.given[flag.name], let use = flag.use else { continue }
      if flag.name == "color", options.color != .always { continue }
      guard !use.contains(mode) else { continue }
      let uses = use.map(\.rawValue).joined(separator: ", ")
      throw UsageError(message: "\(spelling) has no effect on \(mode.rawValue); it is for \(uses)")
    }
  }

  private static func missing(_ flag: Flag, _ spelling: String) -> UsageError {
    UsageError(message: "\(spelling) needs a value: \(spelling) \(flag.value.placeholder ?? "VALUE")")
  }

  private static func unknown(_ spelling: String, suggestion: String?) -> UsageError {
    UsageError(message: "unknown option \(spelling)" + (suggestion.map { "; did you mean \($0)?" } ?? ""))
  }

  private static func nearest(_ name: String, for command: Command) -> String? {
    guard name.count <= 32 else { return nil }
    return Flag.all.filter { $0.commands.contains(command) }.map { (name: $0.name, distance: distance(name, $0.name)) }
      .filter { $0.distance <= max(1, name.count / 3) }
      .min { ($0.distance, $0.name) < ($1.distance, $1.name) }?.name
  }

  /// Edits (insert, delete, replace) that lead from one word to the other.
  private static func distance(_ left: String, _ right: String) -> Int {
    let right = Array(right)
    var row = Array(0...right.count)
    for (i, character) in left.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for j in right.indices {
        let cost = right[j] == character ? diagonal : min(diagonal, row[j], row[j + 1]) + 1
        diagonal = row[j + 1]
        row[j + 1] = cost
      }
    }
    return row[right.count]
  }
}
