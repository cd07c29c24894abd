internal import CLibdw
internal import CrashModel
private import Glibc

/// The file with entries and strings that several debug files share (`dwz -m`, `.gnu_debugaltlink`).
struct SupplementaryFile {
  let file: DebugFile

  /// Why there is none, in words.
  struct Failure: Error {
    var reason: String
  }

  /// Finds it by its build id: among the files that were given, in the directories that were, at the link's path, in the
  /// system's tree, on a server.
  init(for link: DebugFile.AlternateLink, of origin: FilePath, in search: CompanionSearch) throws(Failure) {
    guard let id = link.buildID else {
      throw Failure(reason: "it shares debug information with \(link.path), whose build id it does not say")
    }
    var searched: [String] = []
    func consider(_ path: FilePath) -> DebugFile? {
      guard !searched.contains(path.description) else { return nil }
      do throws(DebugFileError) {
        let file = try DebugFile(path: path)
        if file.buildID == id { return file }
        let found = file.buildID.map { "has build id \($0)" } ?? "has no build id"
        searched.append("\(path) (\(found))")
      } catch {
        if case .cannotOpen(_, ENOENT) = error {
          searched.append(path.description)
        } else {
          searched.append("\(path) (\(error.reason))")
        }
      }
      return nil
    }
    for path in Self.places(of: link, id, origin, search) {
      if let file = consider(path) {
        self.file = file
        return
      }
    }
    for directory in search.directories.paths {
      for path in search.directories.index(of: directory).byBuildID[id] ?? [] {
        if let file = consider(path) {
          self.file = file
          return
        }
      }
    }
    if let servers = search.servers {
      switch servers.debugInformation(id) {
      case .found(let path):
        if let file = consider(path) {
          self.file = file
          return
        }
      case .failed(let reason): searched.append(reason)
      }
    }
    throw Failure(
      reason:
        "it shares debug information with \(link.path) (build id \(id)), which was not found; names that stand only "
        + "there are missing; looked in \(searched.joined(separator: ", "))")
  }

  /// Whether the sections are those of such a file: debug information, and no code that it could be about.
  static func isSupplementary(_ sections: ELFSections) -> Bool {
    sections.all.contains { $0.name.hasPrefix(".debug_") || $0.name.hasPrefix(".zdebug_") }
      && !sections.all.contains { $0.header.sh_flags & UInt64(SHF_EXECINSTR) != 0 }
  }

  private static func places(
    of link: DebugFile.AlternateLink, _ id: BuildID, _ origin: FilePath, _ search: CompanionSearch
  ) -> [FilePath] {
    var places = search.givenFiles.filter { $0.buildID == id }.map(\.path)
    let isAbsolute = link.path.hasPrefix("/")
    for directory in search.directories.paths {
      places += BuildIDPath.all(of: id, below: directory.appending(".build-id"))
      places += BuildIDPath.all(of: id, below: directory)
      places.append(directory.appending(isAbsolute ? String(link.path.dropFirst()) : link.path))
    }
    if isAbsolute {
      if let path = search.root.resolve(FilePath(link.path)) { places.append(path) }
    } else {
      for directory in search.neighbours(of: origin) {
        // A relative path may climb out of a container's files; inside, it has to be resolved as the container would.
        if let inside = search.root.path(of: directory), let path = search.root.resolve(inside.appending(link.path)) {
          places.append(path)
        } else {
          places.append(directory.appending(link.path))
        }
      }
    }
    if let system = search.systemDirectory {
      for path in BuildIDPath.all(of: id, below: system.appending(".build-id")) {
        if let path = search.root.resolve(path) { places.append(path) }
      }
    }
    return places
  }
}
