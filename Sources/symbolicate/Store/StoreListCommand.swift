internal import CrashFormats
internal import CrashModel
internal import Symbolication

/// `symbolicate store list --store DIR [NAME…]`
struct StoreListCommand {
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
    let inventory: SymbolStore.Inventory
    do throws(SymbolStore.Failure) { inventory = try SymbolStore(existing: directory).inventory() } catch {
      diagnostics.fatal("\(error.path): \(error.message)")
      return .nothing
    }
    var documents = DocumentStream(options, output)
    for failure in inventory.failures {
      diagnostics.error(failure.path.description, failure.message)
      try documents.error(failure.path.description, failure.message)
    }
    for stray in inventory.strays { diagnostics.detail(stray.description, "is not the store's") }
    let names = options.operands.map(\.description)
    let builds = inventory.builds.filter { build in
      (names.isEmpty || build.names.contains(where: names.contains))
        && (options.debugFiles.release.map { wanted in build.note?.releases.contains { $0.name == wanted } == true }
          ?? true)
    }
    var table = TextTable(columns: [
      .init("NAME", minimumWidth: 12), .init("RELEASES", minimumWidth: 10), .init("BUILD ID"), .init("HOLDS"),
      .init("SIZE", isRightAligned: true), .init("ADDED"),
    ])
    for build in builds {
      table.add([
        build.names.isEmpty ? "-" : build.names.joined(separator: ", "), build.releaseNames.joined(separator: ", "),
        build.buildID.description, build.holdings, ByteCount.text(build.size), String(build.added.rfc3339.prefix(10)),
      ])
      try documents.add("symbol-store-build/1") { build.write(to: &$0) }
    }
    let size = builds.reduce(0) { $0 + $1.size }
    if options.format == .text {
      // Never an empty answer.
      try output.write(
        builds.isEmpty
          ? (inventory.builds.isEmpty
            ? "No builds.\n" : "No such builds; the store has \(inventory.builds.count) others.\n")
          : table.text(width: output.width)
            + "\(builds.count) build\(builds.count == 1 ? "" : "s"), \(ByteCount.text(size))\n")
    }
    try documents.end([
      "builds": builds.count, "size": size, "strays": inventory.strays.count, "errors": inventory.failures.count,
    ])
    return inventory.failures.isEmpty ? .complete : .incomplete
  }
}

extension SymbolStore.Build {
  var releaseNames: [String] { note?.releases.map(\.name) ?? [] }

  /// In words.
  var holdings: String {
    guard hasFiles else { return "nothing: its files are missing" }
    var parts: [String] = []
    let rank = max(debugFile?.rank ?? 0, program?.rank ?? 0)
    if rank >= 2 { parts.append("debug information") } else if rank == 1 { parts.append("symbols only") }
    if let program { parts.append(program.kind == .library ? "library" : "program") }
    if rank == 0 { parts.append("no names") }
    return parts.joined(separator: ", ")
  }

  func write(to writer: inout JSONWriter) {
    writer.member("build_id", buildID.description)
    writer.member("names", strings: names)
    writer.key("releases")
    writer.beginArray()
    for release in note?.releases ?? [] {
      writer.beginObject()
      writer.member("release", release.name)
      writer.member("added", release.added)
      writer.endObject()
    }
    writer.endArray()
    writer.member("added", added)
    writer.member("size", size)
    writer.member("debug_information", bool: max(debugFile?.rank ?? 0, program?.rank ?? 0) >= 2)
    writer.member("symbols", bool: debugFile?.symbols != nil || program?.symbols != nil)
    writer.member("executable", bool: program != nil)
    writer.member("noted", bool: note != nil)
  }
}
