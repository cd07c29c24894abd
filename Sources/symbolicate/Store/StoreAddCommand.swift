internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// `symbolicate store add FILE… --store DIR`
struct StoreAddCommand {
  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output
  private let directory: FilePath

  init(options: Options, store: FilePath, diagnostics: Diagnostics, output: Output) {
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
    directory = store
  }

  func run() throws(Output.Failure) -> ExitStatus {
    let progress = Progress(verbosity: options.verbosity, counting: .file)
    (diagnostics.progress, output.progress) = (progress, progress)
    defer { progress?.erase() }
    var documents = DocumentStream(options, output)
    let store: SymbolStore
    do throws(SymbolStore.Failure) {
      store = try SymbolStore(creating: directory)
      let lock = try SymbolStore.Lock(store)
      withExtendedLifetime(lock) { _ = IncomingFile.sweep(store) }
    } catch {
      diagnostics.fatal("\(error.path): \(error.message)")
      return .nothing
    }
    let walk = ELFFileWalk(options.operands, excluding: directory)
    for skipped in walk.skipped { diagnostics.detail(skipped.path.description, "skipped: \(skipped.reason)") }
    var errors = 0
    var actions: [SymbolStore.Addition.Action: Int] = [:]
    var skipped = walk.skipped.count
    func fail(_ subject: String, _ message: String) throws(Output.Failure) {
      errors += 1
      diagnostics.error(subject, message)
      try documents.error(subject, message)
    }
    for failure in walk.failures { try fail(failure.path.description, failure.reason) }
    for file in walk.files {
      progress?.step(file.path.description)
      let addition: SymbolStore.Addition
      do throws(SymbolStore.Failure) {
        addition = try store.add(file.path, release: options.debugFiles.release, at: .now)
      } catch {
        // Object files lie beside what was linked from them in every build directory; nobody meant those.
        if file.isFound, error.isOfAnUnlinkedFile {
          skipped += 1
          diagnostics.detail(error.path.description, "skipped: \(error.message)")
        } else {
          try fail(error.path.description, error.message)
        }
        continue
      }
      actions[addition.action, default: 0] += 1
      if options.format == .text {
        try output.write(Self.line(addition, file.path, release: options.debugFiles.release))
        // Each file is a result of its own, and may take its time.
        try output.flush()
      } else {
        try documents.add("symbol-store-addition/1") {
          Self.write(addition, file.path, release: options.debugFiles.release, to: &$0)
        }
      }
    }
    let count = actions.values.reduce(0, +)
    if count == 0, errors == 0 {
      try fail(options.operands.map(\.description).joined(separator: ", "), "no program, library or debug file in it")
    }
    try documents.end([
      "files": count, "added": actions[.added] ?? 0, "replaced": actions[.replaced] ?? 0,
      "present": actions[.present] ?? 0, "kept": actions[.kept] ?? 0, "errors": errors, "skipped": skipped,
    ])
    return count == 0 ? .nothing : errors > 0 ? .incomplete : .complete
  }

  /// `added     4f2a…  orderd  program with debug information, 57.9 MB  for release 1.4.0`
  private static func line(_ addition: SymbolStore.Addition, _ path: FilePath, release: String?) -> String {
    let what: String
    switch addition.action {
    case .added, .replaced: what = "\(addition.holdings), \(ByteCount.text(addition.contents.size))"
    case .present: what = "the store has had it"
    case .kept: what = "the store has one of this build that holds more"
    }
    let isNews = addition.isNewForRelease || addition.action == .added || addition.action == .replaced
    let note = isNews ? release.map { "for release \($0)" } : nil
    let parts = [addition.action.rawValue.padded(to: 8), addition.buildID.description, path.description, what, note]
    return parts.compactMap { $0 }.map(Printable.line).joined(separator: "  ") + "\n"
  }

  private static func write(
    _ addition: SymbolStore.Addition, _ path: FilePath, release: String?, to writer: inout JSONWriter
  ) {
    writer.member("file", path.description)
    writer.member("build_id", addition.buildID.description)
    writer.member("name", addition.name)
    writer.member("action", addition.action.rawValue)
    writer.member("holds", addition.holdings)
    writer.member("size", addition.contents.size)
    writer.member("release", release)
  }
}

extension SymbolStore.Addition {
  /// In words.
  var holdings: String {
    let what = contents.hasCode ? (contents.kind == .library ? "library" : "program") : "debug file"
    if contents.debugInformation != nil { return contents.hasCode ? "\(what) with debug information" : what }
    return contents.symbols != nil ? "\(what) with symbols only" : "stripped \(what)"
  }
}
