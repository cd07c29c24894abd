private import Glibc

/// The directory that holds live records, reports waiting for delivery, and quarantine. Layout: `docs/spool.md`.
package struct Spool: ~Copyable {
  /// The spool's own path, as the host gave it.
  let path: String
  let root: Descriptor
  /// Records of living and dead runs.
  let records: Descriptor
  /// Reports that wait to be taken away.
  let new: Descriptor
  let quarantine: Descriptor

  /// Makes what is missing (each folder 0700; the parent must exist) and checks what is there.
  ///
  /// - Throws: where a folder cannot be made or opened, is a link, belongs to somebody else, or can be written by others.
  package init(path: String) throws(SystemError) {
    let root = try Self.folder(path, at: AT_FDCWD, shown: path)
    let records = try Self.folder("records", at: root.raw, shown: path + "/records")
    let new = try Self.folder("new", at: root.raw, shown: path + "/new")
    let quarantine = try Self.folder("quarantine", at: root.raw, shown: path + "/quarantine")
    self.path = path
    self.root = root
    self.records = records
    self.new = new
    self.quarantine = quarantine
  }

  private static func folder(
    _ name: String, at parent: Int32, shown: @autoclosure () -> String
  ) throws(SystemError) -> Descriptor {
    // Opened first, as it is there but for the first time. Not realpath and a check: between the two somebody could put a
    // link there. The opened folder is what is checked.
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    var raw = openat(parent, name, flags)
    if raw < 0, errno == ENOENT {
      // The umask can only take bits away; a folder that we cannot enter would fail right behind this.
      guard mkdirat(parent, name, 0o700) == 0 || errno == EEXIST else { throw .last("creating \(shown())") }
      raw = openat(parent, name, flags)
    }
    guard raw >= 0 else {
      let error = errno
      throw SystemError(
        number: error,
        error == ELOOP || error == ENOTDIR
          ? "opening \(shown()), which must be a folder and no link"
          : "opening \(shown())")
    }
    let folder = Descriptor(raw: raw)
    let status = try folder.status()
    guard status.st_uid == geteuid() else {
      throw SystemError(number: EPERM, "using \(shown()), which belongs to user \(status.st_uid)")
    }
    guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
      throw SystemError(number: EPERM, "using \(shown()), which others can write to; it must be 0700")
    }
    return folder
  }

  /// Waits until no other process works on dead records of this spool.
  ///
  /// Held as long as the descriptor is. The kernel gives it back when its holder dies, whatever way.
  func lock() throws(SystemError) -> Descriptor {
    let file = try Descriptor.open(".lock", in: root, flags: O_RDWR | O_CREAT, mode: 0o600)
    while flock(file.raw, LOCK_EX) != 0 {
      guard errno == EINTR else { throw .last("locking \(path)/.lock") }
    }
    return file
  }
}
