internal import CrashFormats
internal import CrashModel
private import Glibc
internal import Symbolication

extension SymbolStore {
  /// What became of a file that was to be added.
  struct Addition {
    enum Action: String {
      case added
      /// In place of a file of the same build that held less.
      case replaced
      /// The store has had it.
      case present
      /// The store has a file of the same build that holds more.
      case kept
    }

    var action: Action
    var buildID: BuildID
    var name: String
    var contents: DebugFileContents
    /// The build was not yet known to be part of the release.
    var isNewForRelease: Bool
  }

  /// What a file adds to what is there.
  private struct Plan {
    /// Where the file goes; nil where it adds nothing.
    var path: FilePath?
    /// The program is the best debug file that there is.
    var linksDebugFile: Bool
    var action: Addition.Action
  }

  /// Adds a file, unless the store has one of the build that holds as much.
  ///
  /// - Parameter time: of the note.
  /// - Throws: where it cannot be, or should not: a file by which no crash can ever be known is of no use here.
  func add(_ source: FilePath, release: String?, at time: Timestamp) throws(Failure) -> Addition {
    let contents = try Self.accepted(source)
    guard let id = contents.buildID else { throw Failure(source, "has no build id") }
    let place = place(of: id)
    // Most of what a build makes was there before, and is not copied for that to be found out. What was there when that was
    // found out may be collected before the lock is had; then it is copied after all.
    var copy = plan(contents, place, id).path == nil ? nil : try Self.copy(source, contents, in: self)
    while true {
      let lock = try Lock(self)
      defer { withExtendedLifetime(lock) {} }
      let plan = plan(contents, place, id)
      guard plan.path == nil || copy != nil else {
        copy = try Self.copy(source, contents, in: self)
        continue
      }
      try Self.makeDirectory(place.shard)
      var note = note(at: place.note, of: id) ?? SymbolStoreNote(buildID: id, added: time)
      let hadReleases = note.releases
      // Before the file: one without a note would be nobody's, and stay for ever.
      let isNews = note.add(name: Self.name(of: source), release: release, at: time)
      if isNews {
        let file = try IncomingFile(in: self)
        try file.write(note.json())
        try file.name(place.note)
      }
      if let path = plan.path, let copy { try copy.name(path) }
      if plan.linksDebugFile { try link(place.debugFile, to: place.stem) }
      if isNews || plan.path != nil || plan.linksDebugFile { Self.synchronize(directory: place.shard) }
      try updateServedLinks(place)
      return Addition(
        action: plan.action, buildID: id, name: Self.name(of: source), contents: contents,
        isNewForRelease: note.releases != hadReleases)
    }
  }

  private static func copy(
    _ source: FilePath, _ contents: DebugFileContents, in store: SymbolStore
  ) throws(Failure) -> IncomingFile {
    let file = try IncomingFile(in: store)
    do throws(Failure) { try file.copy(source) } catch {
      throw Failure(source, "cannot be added: \(error.message)")
    }
    // The copy is what is judged: a linker may have been at the source.
    guard let copied = try? DebugFileContents(path: file.path, readsUnits: false), copied == contents else {
      throw Failure(source, "changed while it was read; add it again when its build is done")
    }
    return file
  }

  /// The name by which people know a file: that of the program, also for its debug file.
  static func name(of path: FilePath) -> String {
    let name = path.lastComponent
    let suffix = Array(".debug".utf8)
    let stem =
      name.count > suffix.count && name.suffix(suffix.count).elementsEqual(suffix)
      ? name.dropLast(suffix.count) : name
    return FilePath(bytes: stem).description
  }

  private static func accepted(_ source: FilePath) throws(Failure) -> DebugFileContents {
    let contents: DebugFileContents
    do throws(DebugFileError) { contents = try DebugFileContents(path: source, readsUnits: false) } catch {
      throw Failure(source, error.reason)
    }
    switch contents.kind {
    case .object, .core:
      var failure = Failure(source, "was not added: " + contents.remarks.joined(separator: "; "))
      failure.isOfAnUnlinkedFile = true
      throw failure
    case .program, .library, .debugFile: break
    }
    guard let id = contents.buildID else {
      throw Failure(
        source,
        "has no build id, by which crashes find it, and was not added; link it with -Xlinker --build-id (swift build, "
          + "swiftc) or -Wl,--build-id (gcc, clang) and ship that build")
    }
    guard buildIDLengths.contains(id.bytes.count) else {
      throw Failure(
        source,
        "has a build id of \(id.bytes.count) bytes, and was not added: those of a store have \(buildIDLengths.lowerBound) "
          + "to \(buildIDLengths.upperBound)")
    }
    guard contents.hasCode || contents.rank > 0 else {
      throw Failure(source, "holds neither code nor names, and was not added; add the file as it was before strip")
    }
    return contents
  }

  private func plan(_ new: DebugFileContents, _ place: Place, _ id: BuildID) -> Plan {
    let (program, debugFile) = (contents(of: place.program, id), contents(of: place.debugFile, id))
    let present = new.hasCode ? program : debugFile
    let puts = present.map { $0.rank < new.rank } ?? true
    var plan = Plan(
      path: puts ? (new.hasCode ? place.program : place.debugFile) : nil, linksDebugFile: false,
      action: present.map { $0.rank < new.rank ? .replaced : $0.rank == new.rank ? .present : .kept } ?? .added)
    // A debug file that holds more stays: what is there never gets less.
    if new.hasCode {
      let best = max(new.rank, program?.rank ?? 0)
      plan.linksDebugFile = best > (debugFile?.rank ?? 0)
    }
    return plan
  }

  /// The paths of debuginfod's URLs, as links: a web server that serves files then is one.
  func updateServedLinks(_ place: Place) throws(Failure) {
    try Self.makeDirectory(place.served)
    for (name, path, suffix) in [("debuginfo", place.debugFile, ".debug"), ("executable", place.program, "")] {
      let link = place.served.appending(name)
      if path.withCString({ access($0, F_OK) }) == 0 {
        try self.link(link, to: "../../.build-id/\(place.relative)\(suffix)")
      } else if Self.target(of: link) != nil {
        _ = link.withCString { unlink($0) }
      }
    }
  }
}

extension DebugFileContents {
  /// Of two files of a build, the one with the higher rank holds more. Whether this tool can read it is no question here:
  /// others may.
  var rank: Int { (debugInformation != nil ? 2 : 0) + (symbols != nil ? 1 : 0) }
}
