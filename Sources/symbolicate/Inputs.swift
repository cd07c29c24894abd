private import Glibc

/// The files that the operands stand for.
struct Inputs {
  struct File {
    /// nil for standard input.
    var path: String?
    var name: String { path ?? "standard input" }
  }

  private(set) var files: [File] = []
  /// An operand was a directory, so that one report each is not what was asked for.
  private(set) var hasDirectory = false
  private(set) var failures: [(path: String, reason: String)] = []
  private(set) var skipped: [(path: String, reason: String)] = []
  private var seen: Set<Identity> = []

  /// A file under two names is read once: crashes are counted.
  private struct Identity: Hashable {
    var device: UInt
    var inode: UInt
  }

  init(operands: [String]) {
    for operand in operands {
      if operand == "-" {
        files.append(File(path: nil))
        continue
      }
      var status = stat()
      if stat(operand, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
        hasDirectory = true
        addDirectory(operand)
      } else if isNew(status) || status.st_ino == 0 {
        files.append(File(path: operand))
      }
    }
  }

  private mutating func isNew(_ status: stat) -> Bool {
    seen.insert(Identity(device: UInt(status.st_dev), inode: UInt(status.st_ino))).inserted
  }

  private mutating func addDirectory(_ root: String) {
    var found: [(path: String, time: Int64)] = []
    var pending = [root]
    // Symbolic links to directories are not followed, so there are no circles.
    while let directory = pending.popLast() {
      guard let handle = opendir(directory) else {
        let number = errno
        let advice = number == EACCES ? "; run symbolicate as its owner or as root" : ""
        failures.append((directory, "the directory cannot be read: \(String(cString: strerror(number)))" + advice))
        continue
      }
      defer { closedir(handle) }
      while let entry = readdir(handle) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        guard name != ".", name != ".." else { continue }
        let path = directory.hasSuffix("/") ? directory + name : directory + "/" + name
        var status = stat()
        guard lstat(path, &status) == 0 else {
          failures.append((path, "cannot be looked at: \(String(cString: strerror(errno)))"))
          continue
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR:
          if name == "quarantine" {
            skipped.append((path, "holds what could not be read before; name it to read it"))
          } else {
            pending.append(path)
          }
        case S_IFREG where name.hasSuffix(".crashrecord") || name.hasSuffix(".json"):
          guard isNew(status) else { continue }
          found.append((path, Self.time(of: name) ?? Int64(status.st_mtim.tv_sec) * 1_000))
        default: break
        }
      }
    }
    files += found.sorted { ($1.time, $1.path) < ($0.time, $0.path) }.map { File(path: $0.path) }
  }

  /// The milliseconds since 1970 that a UUIDv7 begins with: they outlive a copy of the file, its own time does not.
  private static func time(of name: String) -> Int64? {
    let stem = Array(name.utf8.prefix { $0 != UInt8(ascii: ".") })
    guard stem.count == 36, stem[14] == UInt8(ascii: "7"), stem[8] == UInt8(ascii: "-"), stem[13] == UInt8(ascii: "-")
    else { return nil }
    return Int64(String(decoding: stem[0..<8] + stem[9..<13], as: UTF8.self), radix: 16)
  }
}
