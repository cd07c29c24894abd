private import Glibc

/// Puts files aside that cannot be read, with the reason beside them.
enum Quarantine {
  /// Of a file that is far larger than a record, the start is enough to see what it was.
  private static let keptBytes: off_t = 1 << 20

  /// Moves `name` from `folder`, then removes the oldest beyond `limit`.
  static func take(
    _ name: String, from folder: borrowing Descriptor, to quarantine: borrowing Descriptor, reason: String, limit: Int
  ) throws(SystemError) {
    // The reason first: a file without one would be a riddle, a reason without its file is removed with the oldest.
    try quarantine.replace(name + Self.suffix, with: Array((reason + "\n").utf8))
    guard renameat(folder.raw, name, quarantine.raw, name) == 0 else {
      let error = SystemError.last("moving \(name) to quarantine")
      unlinkat(quarantine.raw, name + Self.suffix, 0)
      throw error
    }
    try quarantine.synchronize()
    try folder.synchronize()
    shorten(name, in: quarantine)
    try removeOldest(in: quarantine, limit: limit)
  }

  private static let suffix = ".reason.txt"

  private static func shorten(_ name: String, in quarantine: borrowing Descriptor) {
    var status = stat()
    guard fstatat(quarantine.raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_uid == geteuid(), status.st_nlink == 1, status.st_size > 64 * keptBytes,
      let file = try? Descriptor.open(name, in: quarantine, flags: O_WRONLY)
    else { return }
    _ = ftruncate(file.raw, keptBytes)
  }

  private static func removeOldest(in quarantine: borrowing Descriptor, limit: Int) throws(SystemError) {
    let all = try quarantine.names()
    // By the time of the move, which is the status change; the name is the tie-break.
    var files: [(time: Int, nanoseconds: Int, name: String)] = []
    let names = Set(all)
    for name in all {
      if name.hasSuffix(suffix) {
        // Left by a run that was ended between the two steps.
        if !names.contains(String(name.dropLast(suffix.count))) { try quarantine.remove(name) }
        continue
      }
      var status = stat()
      guard fstatat(quarantine.raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
      files.append((status.st_ctim.tv_sec, status.st_ctim.tv_nsec, name))
    }
    guard files.count > limit else { return }
    for file in files.sorted(by: { ($0.time, $0.nanoseconds, $0.name) < ($1.time, $1.nanoseconds, $1.name) })
      .prefix(files.count - limit)
    {
      // A folder goes only when it is empty; one with contents is somebody's, and stays.
      if unlinkat(quarantine.raw, file.name, 0) != 0, unlinkat(quarantine.raw, file.name, AT_REMOVEDIR) != 0 {
        continue
      }
      unlinkat(quarantine.raw, file.name + suffix, 0)
    }
  }
}
