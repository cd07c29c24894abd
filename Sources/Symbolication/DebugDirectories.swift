internal import CrashModel

/// The directories that were given, each walked at most once, and only if asked.
final class DebugDirectories {
  let paths: [FilePath]
  private var indexes: [FilePath: DebugDirectoryIndex] = [:]

  init(_ paths: [FilePath]) { self.paths = paths }

  func index(of directory: FilePath) -> DebugDirectoryIndex {
    if let index = indexes[directory] { return index }
    let index = DebugDirectoryIndex(directory)
    indexes[directory] = index
    return index
  }
}
