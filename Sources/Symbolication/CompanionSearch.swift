internal import CrashModel

/// Where the files are looked for that a debug file refers to: the one it shares entries with (`dwz`), those with its split
/// units.
///
/// The same places as those of the debug file itself. libdw would look by itself, and take what lies at a path without a
/// look at its build id.
struct CompanionSearch {
  /// Given by name, with their build ids.
  var givenFiles: [(path: FilePath, buildID: BuildID)] = []
  /// Given by name, with split units.
  var givenSplitFiles = GivenSplitFiles([])
  var directories = DebugDirectories([])
  var systemDirectory: FilePath? = FilePath("/usr/lib/debug")
  var root = FileSystemRoot(directory: nil)
  var servers: DebuginfodClient?
  /// Where the process had the image that the debug file is for.
  var imagePath: FilePath?

  /// The directories beside which a file's companions may lie: its own, the one behind symbolic links, and that of the image.
  func neighbours(of file: FilePath) -> [FilePath] {
    var result = [file.directory]
    if let real = RealPath.of(file), !result.contains(real.directory) { result.append(real.directory) }
    if let imagePath, let path = root.resolve(imagePath), !result.contains(path.directory) {
      result.append(path.directory)
    }
    return result
  }
}
