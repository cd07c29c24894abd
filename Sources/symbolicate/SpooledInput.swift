internal import CrashFormats
internal import CrashModel
private import Glibc

/// Standard input as a file: a core is read here and there, which a pipe does not allow.
///
/// Only what begins like a core is written to a file, one without a name that is gone with the process. A log goes through
/// in bounded memory and never comes here.
struct SpooledInput: ~Copyable {
  private let descriptor: CInt
  /// Other processes of the tool may open it too: as long as this value lives.
  var path: FilePath { FilePath("/proc/\(getpid())/fd/\(descriptor)") }

  deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

  /// - Returns: nil where standard input does not begin like a core, and nothing of it was taken.
  static func ofCore() throws(InputError) -> SpooledInput? {
    var status = stat()
    guard fstat(STDIN_FILENO, &status) == 0 else { return nil }
    switch status.st_mode & S_IFMT {
    case S_IFREG:
      // Can be read here and there as it is, if nobody has read of it before.
      guard lseek(STDIN_FILENO, 0, SEEK_CUR) == 0, isCoreLike(beginning(ofFile: STDIN_FILENO)) else { return nil }
      return SpooledInput(descriptor: STDIN_FILENO)
    case S_IFIFO:
      guard isCoreLike(beginningOfPipe()) else { return nil }
      return try copied()
    default: return nil
    }
  }

  /// ELF, or compressed by zstd.
  private static func isCoreLike(_ bytes: [UInt8]) -> Bool {
    bytes == [0x7f, 0x45, 0x4c, 0x46] || bytes == [0x28, 0xb5, 0x2f, 0xfd]
  }

  private static func beginning(ofFile descriptor: CInt) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 4)
    return pread(descriptor, &bytes, 4, 0) == 4 ? bytes : []
  }

  /// The bytes stay in the pipe: `tee` gives a second pipe what is in the first. A writer that gives less than four bytes
  /// at once is no program that dumps a core.
  private static func beginningOfPipe() -> [UInt8] {
    typealias Tee = @convention(c) (CInt, CInt, Int, CUnsignedInt) -> Int
    // Declared for those only that ask the C library for its extensions, which its Swift module does not.
    guard let address = dlsym(nil, "tee") else { return [] }
    let tee = unsafeBitCast(address, to: Tee.self)
    var ends: [CInt] = [0, 0]
    guard pipe(&ends) == 0 else { return [] }
    defer { for end in ends { close(end) } }
    var count = 0
    repeat { count = tee(STDIN_FILENO, ends[1], 4, 0) } while count < 0 && errno == EINTR
    var bytes = [UInt8](repeating: 0, count: 4)
    return count == 4 && read(ends[0], &bytes, 4) == 4 ? bytes : []
  }

  private static func copied() throws(InputError) -> SpooledInput {
    let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    func failure(_ what: String) -> InputError {
      InputError(
        .unreadable,
        "a core, which cannot be copied to a file in \(folder): \(what): \(errnoText(errno)); "
          + "set TMPDIR, or save it and name the file")
    }
    var name = Array("\(folder)/symbolicate-XXXXXX".utf8CString)
    let descriptor = mkstemp(&name)
    if descriptor >= 0 {
      unlink(name)
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }
    guard descriptor >= 0 else { throw failure("a file cannot be made") }
    let spooled = SpooledInput(descriptor: descriptor)
    var block = [UInt8](repeating: 0, count: 256 * 1024)
    while true {
      let count = read(STDIN_FILENO, &block, block.count)
      if count == 0 { return spooled }
      if count < 0 {
        if errno == EINTR { continue }
        throw failure("standard input cannot be read")
      }
      var written = 0
      while written < count {
        let part = block.withUnsafeBytes { write(descriptor, $0.baseAddress?.advanced(by: written), count - written) }
        if part < 0, errno == EINTR { continue }
        guard part > 0 else { throw failure("writing ended") }
        written += part
      }
    }
  }
}
