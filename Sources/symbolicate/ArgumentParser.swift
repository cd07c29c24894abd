/// A command line that says nothing that can be done.
struct UsageError: Error {
  var message: String
}

/// Reads arguments by the list of flags.
enum ArgumentParser {
  /// - Parameter arguments: without the program's name.
  static func parse(_ arguments: [String]) throws(UsageError) -> Options {
    var options = Options()
    var rest = arguments[...]
    if let first = rest.first, let command = Command(rawValue: first), command != .symbolicate {
      options.command = command
      rest.removeFirst()
    }
    var onlyOperands = false
    while let argument = rest.popFirst() {
      if onlyOperands || argument == "-" || !argument.hasPrefix("-") {
        options.operands.append(argument)
      } else if argument == "--" {
        onlyOperands = true
      } else if argument.hasPrefix("--") {
        try long(argument, &rest, &options)
      } else {
        try short(argument, &rest, &options)
      }
    }
    return options
  }

  private static func long(_ argument: String, _ rest: inout ArraySlice<String>, _ options: inout Options)
    throws(UsageError)
  {
    let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts.first ?? "")
    guard let flag = Flag.all.first(where: { $0.name == name }) else {
      throw unknown("--" + name, suggestion: nearest(name).map { "--" + $0 })
    }
    if flag.value.isNone {
      guard parts.count == 1 else { throw UsageError(message: "--\(name) takes no value") }
      try apply(flag, "", &options, spelling: "--" + name)
    } else {
      guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else { throw missing(flag, "--" + name) }
      try apply(flag, value, &options, spelling: "--" + name)
    }
  }

  /// `-qv`, `-fjson`, `-f json`.
  private static func short(_ argument: String, _ rest: inout ArraySlice<String>, _ options: inout Options)
    throws(UsageError)
  {
    var letters = argument.dropFirst()
    while let letter = letters.popFirst() {
      guard let flag = Flag.all.first(where: { $0.short == letter }) else {
        // A single-dash long word is the likelier meaning of `-format`.
        let name = String(argument.dropFirst())
        let suggestion = Flag.all.contains { $0.name == name } ? name : nil
        throw unknown("-\(letter)", suggestion: suggestion.map { "--" + $0 })
      }
      if flag.value.isNone {
        try apply(flag, "", &options, spelling: "-\(letter)")
        continue
      }
      let attached = letters.first == "=" ? letters.dropFirst() : letters
      guard let value = attached.isEmpty ? rest.popFirst() : String(attached) else { throw missing(flag, "-\(letter)") }
      try apply(flag, value, &options, spelling: "-\(letter)")
      return
    }
  }

  private static func apply(_ flag: Flag, _ value: String, _ options: inout Options, spelling: String)
    throws(UsageError)
  {
    guard flag.commands.contains(options.command) else {
      throw UsageError(message: "\(spelling) is no option of '\(options.command.rawValue)'")
    }
    guard flag.apply(&options, value) else {
      let expected: String =
        switch flag.value {
        case .choice(let values): "one of " + values.joined(separator: ", ")
        case .number: "a number above 0"
        case .text, .none: "another value"
        }
      throw UsageError(message: "\(spelling) takes \(expected), not '\(value)'")
    }
  }

  private static func missing(_ flag: Flag, _ spelling: String) -> UsageError {
    UsageError(message: "\(spelling) needs a value: \(spelling) \(flag.value.placeholder ?? "VALUE")")
  }

  private static func unknown(_ spelling: String, suggestion: String?) -> UsageError {
    UsageError(message: "unknown option \(spelling)" + (suggestion.map { "; did you mean \($0)?" } ?? ""))
  }

  private static func nearest(_ name: String) -> String? {
    guard name.count <= 32 else { return nil }
    return Flag.all.map { (name: $0.name, distance: distance(name, $0.name)) }
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
