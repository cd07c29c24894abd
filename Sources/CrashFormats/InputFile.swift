package import CrashModel
private import Glibc

/// An open file or standard input, read front to back.
package struct InputFile: ~Copyable {
  private let descriptor: CInt
  private let closes: Bool
  /// In bytes, where it is known before reading.
  package let size: UInt64?

  /// Standard input: whatever it is, it was chosen by whoever redirected it.
  package static func standardInput() -> InputFile { InputFile(descriptor: STDIN_FILENO, closes: false, size: nil) }

  /// One that is open, and stays so.
  package static func opened(_ descriptor: CInt) -> InputFile {
    InputFile(descriptor: descriptor, closes: false, size: nil)
  }

  private init(descriptor: CInt, closes: Bool, size: UInt64?) {
    self.descriptor = descriptor
    self.closes = closes
    self.size = size
  }

  /// Opens a regular file, and nothing else.
  ///
  /// A FIFO on the command line would wait for a writer for ever, a device may act when it is opened; so the file is
  /// looked at before it is opened, opened without waiting, and looked at again, as it may have been exchanged.
  package init(path: FilePath) throws(InputError) {
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
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(InputError) -> Int {
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

  /// At most so many bytes.
  package func beginning(_ count: Int) throws(InputError) -> [UInt8] {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
    defer { memory.deallocate() }
    return Array(memory[..<(try read(into: memory))])
  }

  /// All that is left of the file, and `padding` zeros behind it. For what is of no use in parts.
  package func contents(padding: Int) throws(InputError) -> [UInt8] {
    var capacity = max(size.flatMap { Int(exactly: $0) } ?? 0, 1 << 16)
    var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity + 1, alignment: 16)
    defer { memory.deallocate() }
    var count = 0
    while true {
      count += try read(into: UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
      guard count == memory.count else { break }
      capacity = count * 2
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
      larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<count]))
      memory.deallocate()
      memory = larger
    }
    return Array(memory[..<count]) + [UInt8](repeating: 0, count: padding)
  }

  /// Reads what is there, at least one byte unless the file ends: a pipe's writer may be slow.
  package func readSome(into buffer: UnsafeMutableRawBufferPointer) throws(InputError) -> Int {
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR { throw Self.failure("cannot be read", errno) }
    }
  }

  private static func failure(_ what: String, _ number: CInt) -> InputError {
    let reason = errnoText(number)
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
