internal import CrashModel
internal import Symbolication

extension Options {
  /// What names addresses, and reads debug files in a process of its own.
  ///
  /// - Parameter files: to be used for their build ids.
  func symbolicator(files: [FilePath], nearestLines: Bool = true) -> Symbolicator {
    let (directories, sysroot, servers) = (debugDirectories, sysroot, debuginfodServers)
    return Symbolicator(
      isolating: {
        DebugFileSearch(files: files, directories: directories, sysroot: sysroot, servers: servers)
      }, nearestLines: nearestLines, tables: addressTables)
  }

  /// The servers to ask for debug files; nil for none.
  private var debuginfodServers: DebuginfodClient? {
    guard usesDebuginfod else { return nil }
    return debuginfodURLs.isEmpty ? .fromEnvironment() : DebuginfodClient(urls: debuginfodURLs)
  }
}
