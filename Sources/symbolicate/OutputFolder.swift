internal import CrashModel
private import Glibc

/// A directory that `-o` names: each report becomes a file in it.
struct OutputFolder {
  private let path: FilePath
  private var names: Set<String> = []
  /// The last number behind a name that was taken.
  private var numbers: [String: Int] = [:]
  private let suffix: String

  init(_ path: FilePath, format: Options.Format) {
    self.path = path
    suffix =
      switch format {
      case .text: ".txt"
      case .json, .swiftJSON, .otlp, .ndjson: ".json"
      case .sentry: ".envelope"
      case .markdown: ".md"
      case .folded: ".folded"
      case .markup: ".markup"
      case .html: ".html"
      }
  }

  /// Whether `-o` names a directory that is there.
  static func isMeant(by options: Options) -> Bool {
    guard options.command == .symbolicate, let output = options.output else { return false }
    return Inputs.isDirectory(output)
  }

  /// Command lines that would mix results with inputs, or lose some.
  static func check(_ options: Options, hasDirectory: Bool) throws(UsageError) {
    guard isMeant(by: options), let output = options.output else {
      if let output = options.output, output.bytes.last == UInt8(ascii: "/") {
        throw UsageError(message: "-o \(output) is no directory; make it first")
      }
      if options.format == .sentry, options.limit != 1, hasDirectory || options.operands.count > 1 {
        throw UsageError(
          message: "an envelope holds one event; for several reports name a directory that exists: -o DIR")
      }
      return
    }
    if options.format == .ndjson {
      throw UsageError(message: "--format ndjson is one file of all reports, and -o \(output) is a directory")
    }
    // What an earlier run wrote would be read as one more crash.
    for operand in options.operands where Inputs.isDirectory(operand) {
      guard let inner = realPath(output), let outer = realPath(operand) else { continue }
      let prefix = outer.last == UInt8(ascii: "/") ? outer : outer + [UInt8(ascii: "/")]
      guard inner == outer || inner.starts(with: prefix) else { continue }
      throw UsageError(message: "-o \(output) lies in \(operand), which is read; name a directory outside")
    }
  }

  private static func realPath(_ path: FilePath) -> [UInt8]? {
    path.withCString { name in
      guard let resolved = realpath(name, nil) else { return nil }
      defer { free(resolved) }
      return Array(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
    }
  }

  /// - Parameter id: of the report, which names the file. It comes from outside: what is not a letter, a digit or a hyphen
  ///   is replaced.
  mutating func write(_ document: [UInt8], named id: String) throws(Output.Failure) {
    let safe = String(
      decoding: id.utf8.prefix(100).map { byte -> UInt8 in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"):
          byte
        default: UInt8(ascii: "_")
        }
      }, as: UTF8.self)
    let stem = safe.isEmpty ? "report" : safe
    // Two reports of one id are two files, but a later run replaces what an earlier one wrote.
    var name = stem
    while !names.insert(name).inserted {
      let number = numbers[stem, default: 1] + 1
      numbers[stem] = number
      name = "\(stem)-\(number)"
    }
    let file = try Output(path: path.appending(name + suffix))
    do throws(Output.Failure) {
      try file.write(document)
      try file.finish()
    } catch {
      file.abandon()
      throw error
    }
  }
}
