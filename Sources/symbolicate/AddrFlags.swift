/// The flags of `symbolicate addr`: those of `addr2line`, by the same letters and words, and few more.
extension Flag {
  static let ofAddr: [Flag] = [
    Flag(
      name: "exe", short: "e", value: .path("FILE"),
      summary: "the program, library or debug file that the addresses are of; without it a line has IMAGE ADDRESS",
      commands: [.addr]
    ) {
      $0.executables.append($1.path)
      return !$1.bytes.isEmpty
    },
    Flag(name: "addresses", short: "a", value: .none, summary: "before each answer its address", commands: [.addr]) {
      options, _ in
      options.addr.addresses = true
      return true
    },
    Flag(name: "functions", short: "f", value: .none, summary: "the functions' names", commands: [.addr]) {
      options, _ in
      options.addr.functions = true
      return true
    },
    Flag(
      name: "inlines", short: "i", value: .none,
      summary: "not only the innermost function, but also those that it was inlined into", commands: [.addr]
    ) { options, _ in
      options.addr.inlines = true
      return true
    },
    Flag(
      name: "pretty-print", short: "p", value: .none, summary: "a function and its place in one line",
      commands: [.addr]
    ) {
      options, _ in
      options.addr.prettyPrint = true
      return true
    },
    Flag(
      name: "basenames", short: "s", value: .none, summary: "files without their directories", commands: [.addr]
    ) {
      options, _ in
      options.addr.basenames = true
      return true
    },
    Flag(
      name: "demangle", short: "C", value: .none, summary: "names of Swift, C++ and Rust as people write them",
      commands: [.addr]
    ) { options, _ in
      options.addr.demangle = true
      return true
    },
    Flag(
      name: "nearest-lines", short: nil, value: .none,
      summary: "for code that has no line the nearest one of its function, marked '(nearest line)'; in JSON always",
      commands: [.addr]
    ) { options, _ in
      options.addr.nearestLines = true
      return true
    },
    Flag(
      name: "format", short: nil, value: .choice(Options.Format.own.map(\.rawValue)),
      summary: "how results are written (default: text); JSON has all that is known, whatever other flags say",
      commands: [.addr]
    ) { options, value in
      guard let format = Options.Format.own.first(where: { $0.rawValue == value.text }) else { return false }
      options.format = format
      return true
    },
  ]
}

/// What the flags of `addr2line` ask for.
struct AddrOptions {
  var addresses = false
  var functions = false
  var inlines = false
  var prettyPrint = false
  var basenames = false
  var demangle = false
  var nearestLines = false
}
