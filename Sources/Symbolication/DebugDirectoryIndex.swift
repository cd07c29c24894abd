internal import CrashModel
private import Glibc

/// The ELF files below a directory, by build id and by name. Made once, by one walk.
///
/// The walk enters no symbolic link to a directory, so that it cannot run in circles, opens nothing but regular files, and
/// stops at a limit: someone may have pointed it at `/`.
struct DebugDirectoryIndex {
  static let maximumEntries = 200_000
  private static let maximumDepth = 64

  /// More than one where a program, its stripped copy and its debug file lie below the same directory.
  private(set) var byBuildID: [BuildID: [FilePath]] = [:]
  /// By the bytes of the name.
  private(set) var byName: [[UInt8]: [FilePath]] = [:]
  /// There were more entries than are looked at.
  private(set) var isCut = false
  /// Directories that could not be read, the first few.
  private(set) var unreadable: [String] = []

  init(_ directory: FilePath, watch: ReadingWatch? = nil) {
    var visited = 0
    var pending: [(path: FilePath, depth: Int)] = [(directory, 0)]
    while let (path, depth) = pending.popLast() {
      let listing = DirectoryListing(of: path, limit: Self.maximumEntries - visited)
      if let failure = listing.failure, unreadable.count < 16 {
        unreadable.append("\(path): \(errnoText(failure))")
      }
      visited += listing.names.count
      isCut = listing.isCut
      // From the last to the first, as the walk takes them from the end.
      for name in listing.names.reversed() {
        let child = path.appending(name)
        var status = stat()
        guard child.withCString({ lstat($0, &status) }) == 0 else { continue }
        switch status.st_mode & S_IFMT {
        case S_IFDIR where depth < Self.maximumDepth: pending.append((child, depth + 1))
        case S_IFREG, S_IFLNK: add(child, name: name, watch: watch)
        default: break
        }
      }
      if isCut { return }
    }
  }

  private mutating func add(_ path: FilePath, name: [UInt8], watch: ReadingWatch? = nil) {
    guard let file = try? ELFHandle(path: path, watch: watch) else { return }
    byName[name, default: []].append(path)
    if let id = file.buildID, byBuildID[id, default: []].count < 16 { byBuildID[id, default: []].append(path) }
  }
}
