internal import CrashModel
private import Glibc

/// A file as it was at one time. What changes its contents changes one of these, unless somebody sets the clock for it.
struct FileVersion: Hashable {
  var path: FilePath
  var device: UInt64
  var inode: UInt64
  var size: UInt64
  /// Of the last change of the contents, and of the contents or the status. Nanoseconds since 1970, as 64 bits.
  var modified: UInt64
  var changed: UInt64

  init(path: FilePath, device: UInt64, inode: UInt64, size: UInt64, modified: UInt64, changed: UInt64) {
    self.path = path
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
    self.changed = changed
  }

  /// The file that is open, not the one that has its name by now.
  ///
  /// - Returns: nil where it cannot be looked at.
  init?(_ file: DebugFile) {
    var status = stat()
    guard fstat(file.handle.descriptor, &status) == 0 else { return nil }
    self.init(path: file.location, status)
  }

  private init(path: FilePath, _ status: stat) {
    self.init(
      path: path, device: UInt64(status.st_dev), inode: UInt64(status.st_ino),
      size: UInt64(bitPattern: Int64(status.st_size)), modified: Self.nanoseconds(status.st_mtim),
      changed: Self.nanoseconds(status.st_ctim))
  }

  /// Whether the file at the path is the same, unchanged.
  var isCurrent: Bool {
    var status = stat()
    guard !path.hasNUL, path.withCString({ stat($0, &status) }) == 0 else { return false }
    return FileVersion(path: path, status) == self
  }

  private static func nanoseconds(_ time: timespec) -> UInt64 {
    UInt64(bitPattern: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }
}
