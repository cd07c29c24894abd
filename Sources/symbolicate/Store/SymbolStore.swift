internal import CrashFormats
internal import CrashModel
private import Glibc
internal import Symbolication

/// A directory of debug files and programs by build id, in the layouts that debuggers and debuginfod clients ask for.
///
/// ```
/// DIR/.build-id/ab/cdef….debug    the file with debug information; a link to the next where that one has it
/// DIR/.build-id/ab/cdef…          the program or library
/// DIR/.build-id/ab/cdef….json     what the store knows besides: symbol-store-note/1
/// DIR/buildid/abcdef…/debuginfo   links into .build-id: the paths of debuginfod's URLs
/// DIR/buildid/abcdef…/executable
/// DIR/.incoming/                  files that are being copied
/// DIR/.lock                       held by whoever changes names
/// ```
///
/// Any number of processes may add and collect at the same time. A file appears under its name when all of it is on the
/// disk; whatever ends a process, the others find nothing half done that they could take for whole.
struct SymbolStore {
  let directory: FilePath

  /// Something that the store cannot do, as a sentence without the program's name.
  struct Failure: Error {
    var path: FilePath
    var message: String
    /// An object file or a core: what build directories are full of, and what nobody wants in a store.
    var isOfAnUnlinkedFile = false

    init(_ path: FilePath, _ message: String) {
      self.path = path
      self.message = message
    }

    /// - Parameter code: an `errno`.
    init(_ path: FilePath, _ what: String, code: CInt) {
      self.init(path, "\(what): \(errnoText(code))")
    }
  }

  var tree: FilePath { directory.appending(".build-id") }
  var served: FilePath { directory.appending("buildid") }
  var incoming: FilePath { directory.appending(".incoming") }

  /// Makes the directory, where it is missing.
  init(creating directory: FilePath) throws(Failure) {
    self.directory = directory
    try Self.makeDirectories(directory)
    for path in [tree, served, incoming] { try Self.makeDirectory(path) }
  }

  /// - Throws: where there is none.
  init(existing directory: FilePath) throws(Failure) {
    self.directory = directory
    var status = stat()
    guard directory.withCString({ stat($0, &status) }) == 0 else {
      throw Failure(directory, "there is no symbol store", code: errno)
    }
    guard tree.withCString({ stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      throw Failure(directory, "is no symbol store: it has no .build-id directory; 'symbolicate store add' makes one")
    }
  }

  /// Where the files of a build are.
  struct Place {
    let shard: FilePath
    let debugFile: FilePath
    let program: FilePath
    let note: FilePath
    /// The directory of debuginfod's names.
    let served: FilePath
    /// `cdef…`
    let stem: String
    /// `ab/cdef…`
    let relative: String
  }

  /// Longer ids would not fit into a file's name; linkers write 8 to 32 bytes.
  static let buildIDLengths = 2...64

  func place(of id: BuildID) -> Place {
    let text = id.description
    let stem = String(text.dropFirst(2))
    let shard = tree.appending(String(text.prefix(2)))
    return Place(
      shard: shard, debugFile: shard.appending(stem + ".debug"), program: shard.appending(stem),
      note: shard.appending(stem + ".json"), served: served.appending(text), stem: stem,
      relative: "\(text.prefix(2))/\(stem)")
  }

  // MARK: What lies at a place

  /// - Returns: nil where there is no file, or none that is of the build: then anything is better.
  func contents(of path: FilePath, _ id: BuildID) -> DebugFileContents? {
    guard let contents = try? DebugFileContents(path: path, readsUnits: false), contents.buildID == id else {
      return nil
    }
    return contents
  }

  /// - Returns: nil where there is none, or it is damaged.
  func note(at path: FilePath, of id: BuildID) -> SymbolStoreNote? {
    guard let bytes = Self.contents(of: path, limit: SymbolStoreNote.sizeLimit),
      let note = try? SymbolStoreNote(json: bytes), note.buildID == id
    else { return nil }
    return note
  }

  private static func contents(of path: FilePath, limit: Int) -> [UInt8]? {
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= limit else {
      return nil
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while bytes.count <= limit {
      let count = read(descriptor, &buffer, buffer.count)
      if count == 0 { return bytes }
      if count > 0 { bytes += buffer.prefix(count) } else if errno != EINTR { return nil }
    }
    return nil
  }

  // MARK: Steps

  /// Held while names change; released with the object, or with the process, however it ends.
  ///
  /// Copies are made without it, so that a large file keeps nobody waiting.
  final class Lock {
    private let descriptor: CInt

    init(_ store: SymbolStore) throws(Failure) {
      let path = store.directory.appending(".lock")
      descriptor = path.withCString { open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o666) }
      guard descriptor >= 0 else { throw Failure(path, "cannot be opened", code: errno) }
      while flock(descriptor, LOCK_EX) != 0 {
        let code = errno
        guard code == EINTR else {
          close(descriptor)
          throw Failure(path, "cannot be locked", code: code)
        }
      }
    }

    deinit { close(descriptor) }
  }

  /// With the parents that are missing.
  private static func makeDirectories(_ path: FilePath) throws(Failure) {
    var missing: [FilePath] = []
    var next = path
    var status = stat()
    while next.withCString({ stat($0, &status) }) != 0, errno == ENOENT {
      missing.append(next)
      let parent = next.directory
      guard parent != next, !parent.bytes.isEmpty else { break }
      next = parent
    }
    for path in missing.reversed() { try makeDirectory(path) }
  }

  /// Another process may have been sooner.
  static func makeDirectory(_ path: FilePath) throws(Failure) {
    guard path.withCString({ mkdir($0, 0o777) }) != 0 else { return }
    let code = errno
    var status = stat()
    guard code == EEXIST, path.withCString({ stat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      throw Failure(path, "the directory cannot be made", code: code == EEXIST ? ENOTDIR : code)
    }
  }

  /// Lets the names in a directory outlive a power cut.
  static func synchronize(directory: FilePath) {
    let descriptor = directory.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard descriptor >= 0 else { return }
    // Not all file systems can; they have their own ways.
    _ = fsync(descriptor)
    close(descriptor)
  }

  /// Gives a link its name, in place of what had it.
  func link(_ path: FilePath, to target: String) throws(Failure) {
    if Self.target(of: path) == target { return }
    let temporary = incoming.appending(".link-\(getpid())-\(String(UInt64.random(in: .min ... .max), radix: 16))")
    guard temporary.withCString({ temporary in target.withCString { symlink($0, temporary) } }) == 0 else {
      throw Failure(path, "the link cannot be made", code: errno)
    }
    try Self.rename(temporary, to: path)
  }

  static func target(of path: FilePath) -> String? {
    var buffer = [CChar](repeating: 0, count: 4_096)
    let count = path.withCString { readlink($0, &buffer, buffer.count) }
    guard count > 0, count < buffer.count else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes what could not be given its name.
  static func rename(_ temporary: FilePath, to path: FilePath) throws(Failure) {
    guard temporary.withCString({ from in path.withCString { Glibc.rename(from, $0) } }) != 0 else { return }
    let code = errno
    _ = temporary.withCString { unlink($0) }
    throw Failure(path, "cannot be written", code: code)
  }
}
