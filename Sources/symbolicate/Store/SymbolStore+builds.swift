internal import CrashFormats
internal import CrashModel
private import Glibc
internal import Symbolication

extension SymbolStore {
  /// What a store has of a build.
  struct Build {
    let buildID: BuildID
    /// nil where the files were put here by something else, or the note is damaged.
    var note: SymbolStoreNote?
    /// What lies in the place of the debug file; nil where that is nothing, or not of the build.
    var debugFile: DebugFileContents?
    var program: DebugFileContents?
    /// Bytes of the files, each counted once.
    var size = 0
    /// The latest change of the files, for what has no note.
    var changed = Timestamp(rawValue: 0)

    var hasFiles: Bool { debugFile != nil || program != nil }
    var names: [String] { note?.names ?? [] }
    /// The one to sort by and to show first.
    var name: String { names.first ?? buildID.description }
    var added: Timestamp { note?.added ?? changed }
    /// The latest time that someone wanted it to be here.
    var lastAdded: Timestamp { note?.releases.map(\.added).max().map { max($0, added) } ?? added }
  }

  /// Everything below `.build-id`.
  struct Inventory {
    /// By name, then by time, then by build id.
    var builds: [Build] = []
    /// What is in the store and not the store's.
    var strays: [FilePath] = []
    var failures: [Failure] = []
  }

  /// Opens every file of the store, its headers only.
  func inventory() -> Inventory {
    var inventory = Inventory()
    for name in list(directory, &inventory) {
      let known = [tree, served, incoming, directory.appending(".lock")]
      let path = directory.appending(name)
      if !known.contains(path) { inventory.strays.append(path) }
    }
    var known: Set<BuildID> = []
    for name in list(tree, &inventory) {
      let shard = tree.appending(name)
      guard name.count == 2, Self.isHex(name), Self.isDirectory(shard) else {
        inventory.strays.append(shard)
        continue
      }
      var ids: [BuildID] = []
      for file in list(shard, &inventory) {
        guard let id = Self.buildID(shard: name, file: file) else {
          inventory.strays.append(shard.appending(file))
          continue
        }
        if known.insert(id).inserted { ids.append(id) }
      }
      inventory.builds += ids.map(build)
    }
    for name in list(served, &inventory) {
      let directory = served.appending(name)
      // Directories of builds that are gone are the store's, and collected.
      guard Self.isHex(name), name.count >= 2 * Self.buildIDLengths.lowerBound, Self.isDirectory(directory) else {
        inventory.strays.append(directory)
        continue
      }
      for file in list(directory, &inventory) where !Self.isServedLink(directory.appending(file), file) {
        inventory.strays.append(directory.appending(file))
      }
    }
    // What has no file is the trace of an add that was ended, or a stray's name.
    for build in inventory.builds where !build.hasFiles && build.note == nil {
      let place = place(of: build.buildID)
      inventory.strays += [place.debugFile, place.program, place.note].filter(Self.exists)
    }
    inventory.builds.removeAll { !$0.hasFiles && $0.note == nil }
    inventory.builds.sort { left, right in
      (left.name, left.added, left.buildID.description) < (right.name, right.added, right.buildID.description)
    }
    inventory.strays.sort()
    return inventory
  }

  private func build(_ id: BuildID) -> Build {
    let place = place(of: id)
    var build = Build(buildID: id)
    build.note = note(at: place.note, of: id)
    build.debugFile = contents(of: place.debugFile, id)
    build.program = contents(of: place.program, id)
    var seen: Set<UInt> = []
    for path in [place.debugFile, place.program] {
      var status = stat()
      guard path.withCString({ stat($0, &status) }) == 0, seen.insert(UInt(status.st_ino)).inserted else { continue }
      build.size += Int(clamping: status.st_size)
      build.changed = max(build.changed, Timestamp(status.st_mtim))
    }
    return build
  }

  private func list(_ directory: FilePath, _ inventory: inout Inventory) -> [[UInt8]] {
    let listing = DirectoryListing(of: directory)
    if let code = listing.failure, code != ENOENT {
      inventory.failures.append(Failure(directory, "cannot be read", code: code))
    }
    return listing.names
  }

  /// The build that a name below a shard stands for; nil where the store would have given none like it.
  private static func buildID(shard: [UInt8], file: [UInt8]) -> BuildID? {
    var stem = file[...]
    for suffix in [".debug", ".json"]
    where file.count > suffix.utf8.count && file.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) {
      stem = file.dropLast(suffix.utf8.count)
    }
    guard isHex(Array(stem)), let id = BuildID(String(decoding: shard + stem, as: UTF8.self)) else { return nil }
    return buildIDLengths.contains(id.bytes.count) ? id : nil
  }

  /// Lower-case, as the store writes it.
  private static func isHex(_ name: [UInt8]) -> Bool {
    !name.isEmpty
      && name.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0 }
  }

  static func isServedLink(_ path: FilePath, _ name: [UInt8]) -> Bool {
    (name.elementsEqual("debuginfo".utf8) || name.elementsEqual("executable".utf8))
      && target(of: path)?.hasPrefix("../../.build-id/") == true
  }

  static func exists(_ path: FilePath) -> Bool {
    var status = stat()
    return path.withCString { lstat($0, &status) } == 0
  }

  private static func isDirectory(_ path: FilePath) -> Bool {
    var status = stat()
    return path.withCString { lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}

extension Timestamp {
  fileprivate init(_ time: timespec) {
    let (seconds, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
    self.init(rawValue: overflow ? .max : seconds &+ Int64(time.tv_nsec))
  }

  static var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(time)
  }
}
