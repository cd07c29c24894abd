internal import CrashModel
private import Glibc

/// The ELF files that operands stand for: files as they are, directories with everything below them.
///
/// A file under several names is taken once, by the first: a store has two names and two links for a program. Links to
/// files are followed, those to directories are not entered, so that there are no circles.
struct ELFFileWalk {
  struct File {
    var path: FilePath
    /// A directory led to it: nobody said that it is a debug file.
    var isFound: Bool
  }

  private(set) var files: [File] = []
  private(set) var failures: [(path: FilePath, reason: String)] = []
  private(set) var skipped: [(path: FilePath, reason: String)] = []
  private var seen: Set<Identity> = []
  private let excluded: Identity?

  private struct Identity: Hashable {
    var device: UInt
    var inode: UInt

    init(_ status: stat) { (device, inode) = (UInt(status.st_dev), UInt(status.st_ino)) }
  }

  /// - Parameter excluded: a directory that is not entered.
  init(_ operands: [FilePath], excluding excluded: FilePath? = nil) {
    var status = stat()
    self.excluded = excluded.flatMap { $0.withCString { stat($0, &status) } == 0 ? Identity(status) : nil }
    for operand in operands {
      guard operand.withCString({ stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR else {
        // The attempt to read it says why it cannot be.
        if operand.withCString({ stat($0, &status) }) != 0 || seen.insert(Identity(status)).inserted {
          files.append(File(path: operand, isFound: false))
        }
        continue
      }
      walk(operand)
    }
  }

  private mutating func walk(_ root: FilePath) {
    var pending = [root]
    while let directory = pending.popLast() {
      let listing = DirectoryListing(of: directory)
      if let code = listing.failure {
        failures.append((directory, "the directory cannot be read: \(errnoText(code))"))
      }
      var below: [FilePath] = []
      for name in listing.names {
        let path = directory.appending(name)
        var status = stat()
        guard path.withCString({ lstat($0, &status) }) == 0 else {
          skipped.append((path, "was removed meanwhile"))
          continue
        }
        if status.st_mode & S_IFMT == S_IFLNK {
          guard path.withCString({ stat($0, &status) }) == 0 else {
            skipped.append((path, "a link that leads to no file"))
            continue
          }
          if status.st_mode & S_IFMT == S_IFDIR {
            skipped.append((path, "a link to a directory; name it to read it"))
            continue
          }
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR where Identity(status) == excluded: skipped.append((path, "the store itself"))
        case S_IFDIR: below.append(path)
        case S_IFREG: add(path, status)
        default: skipped.append((path, "no regular file"))
        }
      }
      pending += below.reversed()
    }
  }

  private mutating func add(_ path: FilePath, _ status: stat) {
    guard seen.insert(Identity(status)).inserted else { return }
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else {
      failures.append((path, "cannot be opened: \(errnoText(errno))"))
      return
    }
    defer { close(descriptor) }
    var magic: [UInt8] = [0, 0, 0, 0]
    guard read(descriptor, &magic, 4) == 4, magic == [0x7f, 0x45, 0x4c, 0x46] else {
      skipped.append((path, "no ELF file"))
      return
    }
    files.append(File(path: path, isFound: true))
  }
}
