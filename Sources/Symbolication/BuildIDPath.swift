internal import CrashModel

/// The names that a tree by build id has for a file (`/usr/lib/debug/.build-id`, and those of distributions and servers).
enum BuildIDPath {
  /// - Returns: none for an id that is too short to be one.
  static func all(of id: BuildID, below directory: FilePath) -> [FilePath] {
    guard id.bytes.count > 1 else { return [] }
    let text = id.description
    let name = "\(text.prefix(2))/\(text.dropFirst(2))"
    // Without the suffix the tree names the program itself, which is worth having for its symbols.
    return [directory.appending(name + ".debug"), directory.appending(name)]
  }
}
