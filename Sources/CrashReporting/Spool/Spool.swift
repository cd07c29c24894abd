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
  package init(path: String) throws(SystemError) { try self.init(root: SpoolRoot(path: path)) }

  /// The same, in a root that is opened and checked already.
  init(root: consuming SpoolRoot) throws(SystemError) {
    let records = try root.folder("records")
    let new = try root.folder("new")
    let quarantine = try root.folder("quarantine")
    self.path = root.path
    self.records = records
    self.new = new
    self.quarantine = quarantine
    self.root = root.descriptor
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
