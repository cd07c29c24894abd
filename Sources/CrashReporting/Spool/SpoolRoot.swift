private import Glibc

/// The spool's own directory, opened and checked: all that has to be known before a record is made in it.
struct SpoolRoot: ~Copyable {
  /// As the host gave it.
  let path: String
  let descriptor: Descriptor

  /// Makes the directory where it is missing (0700; its parent must exist) and checks it where it is there.
  ///
  /// - Throws: where it cannot be made or opened, is a link, belongs to somebody else, or can be written by others.
  init(path: String) throws(SystemError) {
    descriptor = try Self.folder(path, at: AT_FDCWD, shown: path)
    self.path = path
  }

  /// The same for a directory that is opened already, without following a link.
  init(path: String, descriptor: consuming Descriptor) throws(SystemError) {
    try Self.check(descriptor, shown: path)
    self.path = path
    self.descriptor = descriptor
  }

  /// One of the folders in it, made and checked under the same rules.
  func folder(_ name: String) throws(SystemError) -> Descriptor {
    try Self.folder(name, at: descriptor.raw, shown: path + "/" + name)
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
    try check(folder, shown: shown())
    return folder
  }

  private static func check(
    _ folder: borrowing Descriptor, shown: @autoclosure () -> String
  ) throws(SystemError) {
    let status = try folder.status()
    guard status.st_uid == geteuid() else {
      throw SystemError(number: EPERM, "using \(shown()), which belongs to user \(status.st_uid)")
    }
    guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
      throw SystemError(number: EPERM, "using \(shown()), which others can write to; it must be 0700")
    }
  }
}
