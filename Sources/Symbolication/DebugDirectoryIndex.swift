internal import CrashModel
private import Glibc

/// The ELF files below a directory, by build id and by name. Made once, by one walk.
///
/// The walk enters no symbolic link to a directory, so that it cannot run in circles, opens nothing but regular files, and
/// stops at a limit: someone may have pointed it at `/`.
struct DebugDirectoryIndex {
  static let maximumEntries = 200_000
  private static let maximumDepth = 64

  private(set) var byBuildID: [BuildID: String] = [:]
  private(set) var byName: [String: [String]] = [:]
  /// There were more entries than are looked at.
  private(set) var isCut = false
  /// Directories that could not be read, the first few.
  private(set) var unreadable: [String] = []

  init(_ directory: String) {
    var visited = 0
    var pending: [(path: String, depth: Int)] = [(directory, 0)]
    while let (path, depth) = pending.popLast() {
      guard let stream = opendir(path) else {
        if unreadable.count < 16 { unreadable.append("\(path): \(SystemError.text(errno))") }
        continue
      }
      defer { closedir(stream) }
      // Sorted, so that of two files with one build id the same is taken on every machine.
      var names: [String] = []
      while let entry = readdir(stream) {
        visited += 1
        if visited > Self.maximumEntries {
          isCut = true
          break
        }
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
      }
      for name in names.sorted(by: >) {
        let child = path.hasSuffix("/") ? path + name : path + "/" + name
        var status = stat()
        guard lstat(child, &status) == 0 else { continue }
        switch status.st_mode & S_IFMT {
        case S_IFDIR where depth < Self.maximumDepth: pending.append((child, depth + 1))
        case S_IFREG, S_IFLNK: add(child, name: name)
        default: break
        }
      }
      if isCut { return }
    }
  }

  private mutating func add(_ path: String, name: String) {
    guard let file = try? ELFHandle(path: path) else { return }
    if byName[name, default: []].count < 16 { byName[name, default: []].append(path) }
    if let id = file.buildID, byBuildID[id] == nil { byBuildID[id] = path }
  }
}
