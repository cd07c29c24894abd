private import CCrashSupport
internal import Glibc

/// An open file, closed when it goes out of scope.
///
/// Every one is opened with `O_CLOEXEC`: the host may start programs at any moment.
package struct Descriptor: ~Copyable {
  let raw: Int32

  deinit { close(raw) }

  /// Gives the descriptor to the caller, who closes it.
  consuming func take() -> Int32 {
    let raw = raw
    discard self
    return raw
  }

  /// Opens a name inside a folder. Never follows a link in the last component, never waits for a FIFO's other end.
  static func open(
    _ name: String, in folder: borrowing Descriptor, flags: Int32, mode: mode_t = 0
  ) throws(SystemError) -> Descriptor {
    try open(name, at: folder.raw, flags: flags | O_NOFOLLOW | O_NONBLOCK, mode: mode)
  }

  /// Opens a path, or a name in the folder `at`.
  static func open(
    _ path: String, at folder: Int32 = AT_FDCWD, flags: Int32, mode: mode_t = 0
  ) throws(SystemError) -> Descriptor {
    while true {
      let raw = openat(folder, path, flags | O_CLOEXEC, mode)
      if raw >= 0 { return Descriptor(raw: raw) }
      guard errno == EINTR else { throw .last("opening \(path)") }
    }
  }

  func status() throws(SystemError) -> stat {
    var status = stat()
    guard fstat(raw, &status) == 0 else { throw .last("reading a file's status") }
    return status
  }

  /// Up to `count` bytes from `offset`; fewer at the end of the file.
  func read(count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let length = try bytes.withUnsafeMutableBufferPointer { buffer throws(SystemError) in
      try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
    }
    if length < count { bytes.removeLast(count - length) }
    return bytes
  }

  /// Fills as much of `buffer` as the file has from `offset` on.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    var done = 0
    while done < buffer.count {
      let length = pread(raw, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset + done))
      if length > 0 {
        done += length
      } else if length == 0 {
        break
      } else if errno != EINTR {
        throw .last("reading a file")
      }
    }
    return done
  }

  /// Writes all bytes; a full disk in the middle is an error, a signal or a short write is not.
  func write(_ bytes: [UInt8]) throws(SystemError) {
    try bytes.withUnsafeBufferPointer { buffer throws(SystemError) in
      var done = 0
      while done < buffer.count {
        let length = Glibc.write(raw, buffer.baseAddress.map { $0 + done }, buffer.count - done)
        if length > 0 {
          done += length
        } else if length < 0, errno != EINTR {
          throw .last("writing a file")
        }
      }
    }
  }

  /// Brings a file's contents, or a folder's names, to the disk.
  ///
  /// An error means "not written": the kernel reports a failed write-back once and then calls the pages clean.
  func synchronize() throws(SystemError) {
    while fsync(raw) != 0 {
      // Some file systems cannot synchronise a folder and say so; nothing else can be done there.
      if errno == EINVAL { return }
      guard errno == EINTR else { throw .last("synchronising a file") }
    }
  }

  /// The names in a folder, in no order, without `.` and `..`; at most `limit` of them.
  func names(limit: Int = 100_000) throws(SystemError) -> [String] {
    // A stream of its own: `fdopendir` takes the descriptor over, and two streams must not share a position.
    let copy = openat(raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { throw .last("reading a folder") }
    guard let stream = fdopendir(copy) else {
      let error = SystemError.last("reading a folder")
      close(copy)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    while names.count < limit, let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }

  /// - Returns: whether it was there.
  @discardableResult
  func remove(_ name: String) throws(SystemError) -> Bool {
    if unlinkat(raw, name, 0) == 0 { return true }
    guard errno == ENOENT else { throw .last("removing \(name)") }
    return false
  }

  /// Stores a file under its final name in one step: whoever sees the name sees all of the bytes, after a power loss too.
  func replace(_ name: String, with bytes: [UInt8]) throws(SystemError) {
    let temporary = "." + name + ".tmp"
    // Left by a run that was killed; whoever writes here holds the spool's lock.
    try remove(temporary)
    do throws(SystemError) {
      let file = try Descriptor.open(temporary, in: self, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try file.write(bytes)
      try file.synchronize()
      guard renameat(raw, temporary, raw, name) == 0 else { throw .last("naming \(name)") }
    } catch {
      unlinkat(raw, temporary, 0)
      throw SystemError(number: error.number, "storing \(name), \(error.operation)")
    }
    try synchronize()
  }

  /// The same for a file that somebody may take away at any time: what is gone does not come back.
  ///
  /// - Returns: whether it was still there.
  @discardableResult
  func replaceExisting(_ name: String, with bytes: [UInt8]) throws(SystemError) -> Bool {
    let temporary = "." + name + ".tmp"
    try remove(temporary)
    // Behind the exchange this is the former file.
    defer { unlinkat(raw, temporary, 0) }
    let file = try Descriptor.open(temporary, in: self, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    try file.write(bytes)
    try file.synchronize()
    guard crash_support_exchange(raw, temporary, name) == 0 else {
      guard errno == ENOENT else { throw .last("exchanging \(name)") }
      return false
    }
    try synchronize()
    return true
  }
}
