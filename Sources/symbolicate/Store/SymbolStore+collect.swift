internal import CrashFormats
internal import CrashModel
private import Glibc

extension SymbolStore {
  /// What a store is to be kept to. Each limit stands for itself: a build goes if one of them says so.
  struct Limits {
    /// The latest so many releases of each name stay.
    var releases: Int?
    /// What was last added longer ago than so many days goes.
    var days: Int?
    /// The builds that were added last stay, up to so many bytes.
    var size: Int?
  }

  /// A build that goes, or what is left of one.
  struct Removal {
    var build: Build
    var why: String
  }

  /// What a collection did, or would do.
  struct Collection {
    var removals: [Removal] = []
    /// Of adds that were ended.
    var leftovers: [FilePath] = []
    var strays: [FilePath] = []
    var failures: [Failure] = []
    var remaining = (builds: 0, size: 0)
  }

  /// Removes builds, and what ended processes left behind.
  ///
  /// Only what has a note goes: everything else was put there by someone else. Holds the store's lock from the first look to
  /// the last removal, so that no build goes that an add has just found to be there.
  func collect(_ limits: Limits, isDryRun: Bool, now: Timestamp) throws(Failure) -> Collection {
    let lock = try Lock(self)
    defer { withExtendedLifetime(lock) {} }
    let inventory = inventory()
    var collection = Collection()
    collection.strays = inventory.strays
    collection.failures = inventory.failures
    collection.leftovers = IncomingFile.sweep(self, isDryRun: isDryRun)
    var staying: [Build] = []
    let kept = limits.releases.map { Self.latestReleases($0, of: inventory.builds) }
    for build in inventory.builds {
      if let why = Self.reason(for: build, limits, kept: kept, now: now) {
        collection.removals.append(Removal(build: build, why: why))
      } else {
        staying.append(build)
        if build.note == nil { collection.strays += files(of: build) }
      }
    }
    if let limit = limits.size { Self.shrink(&staying, to: limit, &collection.removals) }
    if !isDryRun {
      collection.removals.removeAll { removal in
        do throws(Failure) { try remove(removal.build.buildID) } catch {
          collection.failures.append(error)
          staying.append(removal.build)
          return true
        }
        return false
      }
      removeEmptyDirectories(keeping: Set(staying.map(\.buildID)))
    }
    collection.remaining = (staying.count, staying.reduce(0) { $0 + $1.size })
    return collection
  }

  /// The latest releases of each name, by the last time that a build was added for them.
  private static func latestReleases(_ count: Int, of builds: [Build]) -> [String: [String]] {
    var times: [String: [String: Timestamp]] = [:]
    for build in builds {
      for name in build.names {
        for release in build.note?.releases ?? [] {
          times[name, default: [:]][release.name] = max(times[name]?[release.name] ?? release.added, release.added)
        }
      }
    }
    return times.mapValues { releases in
      releases.sorted { ($0.value, $0.key) > ($1.value, $1.key) }.prefix(count).map(\.key)
    }
  }

  private static func reason(for build: Build, _ limits: Limits, kept: [String: [String]]?, now: Timestamp) -> String? {
    guard let note = build.note else { return nil }
    guard build.hasFiles else { return "its files are missing; an add was ended, or they were removed" }
    // What belongs to no release is judged by its age and size alone.
    if let kept, !note.releases.isEmpty {
      let isKept = note.names.contains { name in note.releases.contains { kept[name]?.contains($0.name) == true } }
      if !isKept {
        let latest = build.names.first.flatMap { kept[$0] } ?? []
        return "none of its releases is one of the latest \(latest.count) (\(latest.joined(separator: ", ")))"
      }
    }
    if let days = limits.days {
      let age = (now.rawValue.subtractingClamping(build.lastAdded.rawValue)) / 86_400_000_000_000
      if age >= days { return "last added \(age) days ago" }
    }
    return nil
  }

  /// Gives up the builds that were added longest ago.
  private static func shrink(_ staying: inout [Build], to limit: Int, _ removals: inout [Removal]) {
    var size = staying.reduce(0) { $0 + $1.size }
    let order = staying.filter { $0.note != nil }.sorted {
      ($0.lastAdded, $0.buildID.description) < ($1.lastAdded, $1.buildID.description)
    }
    var gone: Set<BuildID> = []
    for build in order where size > limit {
      size -= build.size
      gone.insert(build.buildID)
      removals.append(Removal(build: build, why: "the store is larger than asked for, and others were added later"))
    }
    staying.removeAll { gone.contains($0.buildID) }
  }

  /// First the names that lead to the files, last the note, by which the next collection finds what this one leaves if it is
  /// ended here.
  private func remove(_ id: BuildID) throws(Failure) {
    let place = place(of: id)
    for name in ["debuginfo", "executable"] {
      let link = place.served.appending(name)
      if Self.isServedLink(link, Array(name.utf8)) { _ = link.withCString { unlink($0) } }
    }
    for path in [place.debugFile, place.program, place.note] {
      guard path.withCString({ unlink($0) }) != 0 else { continue }
      let code = errno
      if code != ENOENT { throw Failure(path, "cannot be removed", code: code) }
    }
  }

  /// `rmdir` takes only what is empty: what someone put there stays.
  private func removeEmptyDirectories(keeping ids: Set<BuildID>) {
    for name in DirectoryListing(of: served).names {
      let directory = served.appending(name)
      guard let id = BuildID(String(decoding: name, as: UTF8.self)), !ids.contains(id) else { continue }
      for file in DirectoryListing(of: directory).names where Self.isServedLink(directory.appending(file), file) {
        _ = directory.appending(file).withCString { unlink($0) }
      }
      _ = directory.withCString { rmdir($0) }
    }
    for name in DirectoryListing(of: tree).names { _ = tree.appending(name).withCString { rmdir($0) } }
  }

  private func files(of build: Build) -> [FilePath] {
    let place = place(of: build.buildID)
    return [place.debugFile, place.program, place.note].filter(Self.exists)
  }
}

extension Int64 {
  fileprivate func subtractingClamping(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (self < 0 ? .min : .max) : difference
  }
}
