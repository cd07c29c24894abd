internal import CrashModel
private import Glibc

/// A record of a dead run, held so that no other process works on it.
struct RecordClaim: ~Copyable {
  enum Refusal: Error {
    /// Its process lives, or another one is working on it.
    case taken
    /// Somebody else was faster.
    case gone
    /// Cannot be opened now; another time it may.
    case unavailable(SystemError)
    /// Its process has not come to locking it, or ended before that.
    case unfinished
    /// Is no record and will not become one; why.
    case unusable(String)
  }

  let bytes: [UInt8]
  /// When the file was last written to, by the kernel's clock.
  let modified: Timestamp
  private let file: Descriptor

  /// Opens, checks, locks and reads.
  ///
  /// The lock decides who is alive, not a process id, which may belong to somebody else by now.
  init(_ name: String, in folder: borrowing Descriptor) throws(Refusal) {
    let file: Descriptor
    do throws(SystemError) {
      file = try Descriptor.open(name, in: folder, flags: O_RDWR)
    } catch {
      switch error.number {
      case ENOENT: throw .gone
      case ELOOP: throw .unusable("it is a symbolic link")
      case EISDIR: throw .unusable("it is a folder")
      case ENXIO: throw .unusable("it is a socket or a device")
      default: throw .unavailable(error)
      }
    }
    let status: stat
    do throws(SystemError) { status = try file.status() } catch { throw .unavailable(error) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .unusable("it is no regular file") }
    guard status.st_uid == geteuid() else { throw .unusable("it belongs to user \(status.st_uid)") }
    guard status.st_nlink <= 1 else { throw .unusable("it has a second name") }
    guard status.st_size <= CrashRecord.maximumFileSize else {
      throw .unusable(RecordError.tooLarge(length: Int(status.st_size)).description)
    }
    // Not locked, not even for a moment: whoever made it may be about to, and would not get the lock.
    guard status.st_size > 0 else { throw .unfinished }
    while flock(file.raw, LOCK_EX | LOCK_NB) != 0 {
      switch errno {
      case EINTR: continue
      case EWOULDBLOCK: throw .taken
      default: throw .unavailable(.last("locking \(name)"))
      }
    }
    // Between opening and locking, another process may have finished with the file: then the name is gone or another's.
    var named = stat()
    guard fstatat(folder.raw, name, &named, AT_SYMLINK_NOFOLLOW) == 0, named.st_ino == status.st_ino,
      named.st_dev == status.st_dev
    else { throw .gone }
    do throws(SystemError) {
      bytes = try file.read(count: Int(status.st_size), at: 0)
    } catch { throw .unavailable(error) }
    modified = Timestamp(
      rawValue: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
    self.file = file
  }
}
