internal import CrashFormats
internal import CrashModel

/// `symbolicate store gc --store DIR`
struct StoreCollectCommand {
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
    let limits = SymbolStore.Limits(
      releases: options.debugFiles.keptReleases, days: options.debugFiles.maximumDays,
      size: options.debugFiles.maximumSize)
    let collection: SymbolStore.Collection
    do throws(SymbolStore.Failure) {
      collection = try SymbolStore(existing: directory).collect(
        limits, isDryRun: options.debugFiles.isDryRun, now: .now)
    } catch {
      diagnostics.fatal("\(error.path): \(error.message)")
      return .nothing
    }
    var documents = DocumentStream(options, output)
    let word = options.debugFiles.isDryRun ? "would remove" : "removed"
    for removal in collection.removals {
      let build = removal.build
      try documents.add("symbol-store-removal/1") { writer in
        writer.member("build_id", build.buildID.description)
        writer.member("names", strings: build.names)
        writer.member("releases", strings: build.releaseNames)
        writer.member("size", build.size)
        writer.member("why", removal.why)
        writer.member("removed", bool: !options.debugFiles.isDryRun)
      }
      let parts = [
        word, build.buildID.description, build.names.isEmpty ? "-" : build.names.joined(separator: ", "),
        build.releaseNames.isEmpty ? "no release" : build.releaseNames.joined(separator: ", "),
        ByteCount.text(build.size) + ": " + removal.why,
      ]
      try write(parts.joined(separator: "  "))
    }
    for path in collection.leftovers { try write("\(word)  \(path)  an add did not finish it") }
    for path in collection.strays {
      try documents.add("symbol-store-stray/1") { $0.member("file", path.description) }
      try write("stays  \(path)  is not the store's")
    }
    for failure in collection.failures {
      diagnostics.error(failure.path.description, failure.message)
      try documents.error(failure.path.description, failure.message)
    }
    let size = collection.removals.reduce(0) { $0 + $1.build.size }
    let count = collection.removals.count
    let limit = limits.releases == nil && limits.days == nil && limits.size == nil ? "; no limit was given" : ""
    try write(
      "\(word) \(count) build\(count == 1 ? "" : "s"), \(ByteCount.text(size)); "
        + "\(collection.remaining.builds) stay\(collection.remaining.builds == 1 ? "s" : ""), "
        + "\(ByteCount.text(collection.remaining.size))\(limit)")
    try documents.end([
      "removed_builds": count, "removed_size": size, "leftovers": collection.leftovers.count,
      "strays": collection.strays.count, "builds": collection.remaining.builds, "size": collection.remaining.size,
      "errors": collection.failures.count,
    ])
    return collection.failures.isEmpty ? .complete : .incomplete
  }

  private func write(_ line: String) throws(Output.Failure) {
    if options.format == .text { try output.write(Printable.line(line) + "\n") }
  }
}
