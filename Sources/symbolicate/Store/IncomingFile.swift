internal import CrashModel
private import Glibc

/// A file that is being written for a store, under a name that nobody looks for.
///
/// Its writer holds a lock on it. The kernel drops that with the process, so that what a process left behind that was killed
/// can be told from what is still being written, without a clock and without process ids, which say nothing across hosts
/// and containers.
final class IncomingFile {
  let path: FilePath
  private let descriptor: CInt
  private var isNamed = false

  /// Creates an empty file in the store's directory for them.
  init(in store: SymbolStore) throws(SymbolStore.Failure) {
    while true {
      let path = store.incoming.appending(String(UInt64.random(in: .min ... .max), radix: 16))
      // As the user's umask says: a store is there to be read by others, a web server among them.
      let descriptor = path.withCString { open($0, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666) }
      guard descriptor >= 0 else {
        let code = errno
        if code == EEXIST { continue }
        throw SymbolStore.Failure(store.incoming, "no file can be made in it", code: code)
      }
      var status = stat()
      // Someone who tidies up may have been there between the two calls and have taken it for a dead one's.
      if flock(descriptor, LOCK_EX) == 0, fstat(descriptor, &status) == 0, status.st_nlink == 0 {
        close(descriptor)
        continue
      }
      self.path = path
      self.descriptor = descriptor
      return
    }
  }

  deinit {
    if !isNamed { _ = path.withCString { unlink($0) } }
    close(descriptor)
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(SymbolStore.Failure) {
    var done = 0
    while done < bytes.count {
      let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done)
      if count >= 0 {
        done += count
      } else if errno != EINTR {
        throw SymbolStore.Failure(path, "cannot be written", code: errno)
      }
    }
  }

  func write(_ bytes: [UInt8]) throws(SymbolStore.Failure) {
    var failure: SymbolStore.Failure?
    bytes.withUnsafeBytes { buffer in
      do throws(SymbolStore.Failure) { try write(buffer) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Copies a regular file as it is now.
  func copy(_ source: FilePath) throws(SymbolStore.Failure) {
    let input = source.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard input >= 0 else { throw SymbolStore.Failure(source, "cannot be read", code: errno) }
    defer { close(input) }
    _ = posix_fadvise(input, 0, 0, POSIX_FADV_SEQUENTIAL)
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4_096)
    defer { memory.deallocate() }
    while true {
      let count = read(input, memory.baseAddress, memory.count)
      if count == 0 { return }
      if count > 0 {
        try write(UnsafeRawBufferPointer(rebasing: memory.prefix(count)))
      } else if errno != EINTR {
        throw SymbolStore.Failure(source, "cannot be read", code: errno)
      }
    }
  }

  /// Lets the content outlive a power cut, and only then gives it its name, in place of what had it.
  func name(_ final: FilePath) throws(SymbolStore.Failure) {
    guard fsync(descriptor) == 0 else { throw SymbolStore.Failure(final, "cannot be written", code: errno) }
    isNamed = true
    try SymbolStore.rename(path, to: final)
  }

  /// Removes what processes left behind that were killed.
  ///
  /// - Returns: names of what was removed, or would be.
  @discardableResult
  static func sweep(_ store: SymbolStore, isDryRun: Bool = false) -> [FilePath] {
    var removed: [FilePath] = []
    for name in DirectoryListing(of: store.incoming).names {
      let path = store.incoming.appending(name)
      var status = stat()
      guard path.withCString({ lstat($0, &status) }) == 0 else { continue }
      // A link is there for a moment, under the store's lock, which whoever is here holds.
      if status.st_mode & S_IFMT != S_IFLNK {
        let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        guard descriptor >= 0 else { continue }
        defer { close(descriptor) }
        guard status.st_mode & S_IFMT == S_IFREG, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { continue }
        guard isDryRun || path.withCString({ unlink($0) }) == 0 else { continue }
      } else {
        guard isDryRun || path.withCString({ unlink($0) }) == 0 else { continue }
      }
      removed.append(path)
    }
    return removed
  }
}
