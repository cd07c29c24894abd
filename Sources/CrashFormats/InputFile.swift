internal import CrashModel
private import Glibc

/// An open file or standard input, read front to back.
struct InputFile: ~Copyable {
  private let descriptor: CInt
  private let closes: Bool
  /// In bytes, where it is known before reading.
  let size: UInt64?

  /// Standard input: whatever it is, it was chosen by whoever redirected it.
  static func standardInput() -> InputFile { InputFile(descriptor: STDIN_FILENO, closes: false, size: nil) }

  private init(descriptor: CInt, closes: Bool, size: UInt64?) {
    self.descriptor = descriptor
    self.closes = closes
    self.size = size
  }

  /// Opens a regular file, and nothing else.
  ///
  /// A FIFO on the command line would wait for a writer for ever, a device may act when it is opened; so the file is
  /// looked at before it is opened, opened without waiting, and looked at again, as it may have been exchanged.
  init(path: FilePath) throws(InputError) {
    guard !path.hasNUL else { throw InputError(.unreadable, "the name holds a NUL byte") }
    var status = stat()
    guard path.withCString({ stat($0, &status) }) == 0 else { throw Self.failure("cannot be looked at", errno) }
    try Self.requireRegular(status)
    let descriptor = path.withCString { open($0, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
    guard descriptor >= 0 else { throw Self.failure("cannot be opened", errno) }
    guard fstat(descriptor, &status) == 0 else {
      let error = errno
      close(descriptor)
      throw Self.failure("cannot be looked at", error)
    }
    do { try Self.requireRegular(status) } catch {
      close(descriptor)
      throw error
    }
    self.init(descriptor: descriptor, closes: true, size: UInt64(clamping: status.st_size))
  }

  deinit { if closes { close(descriptor) } }

  /// Reads until `buffer` is full or the file ends.
  ///
  /// - Returns: the number of bytes; less than the buffer has room for only at the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(InputError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = Glibc.read(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled)
      if count == 0 { break }
      if count < 0 {
        if errno == EINTR { continue }
        throw Self.failure("cannot be read", errno)
      }
      filled += count
    }
    return filled
  }

  /// Reads what is there, at least one byte unless the file ends: a pipe's writer may be slow.
  func readSome(into buffer: UnsafeMutableRawBufferPointer) throws(InputError) -> Int {
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR { throw Self.failure("cannot be read", errno) }
    }
  }

  private static func failure(_ what: String, _ number: CInt) -> InputError {
    let reason = String(cString: strerror(number))
    switch number {
    case EACCES, EPERM: return InputError(.unreadable, "\(what): \(reason); run symbolicate as its owner or as root")
    case ENOENT: return InputError(.unreadable, "no such file or directory")
    default: return InputError(.unreadable, "\(what): \(reason)")
    }
  }

  private static func requireRegular(_ status: stat) throws(InputError) {
    let kind: String
    switch status.st_mode & S_IFMT {
    case S_IFREG: return
    case S_IFIFO: kind = "a FIFO"
    case S_IFCHR, S_IFBLK: kind = "a device"
    case S_IFSOCK: kind = "a socket"
    case S_IFDIR: kind = "a directory"
    default: kind = "no regular file"
    }
    throw InputError(.notAFile, "\(kind), which is not opened by name; to read from it: symbolicate - < FILE")
  }
}
