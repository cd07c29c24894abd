internal import CrashModel
private import Glibc

/// Where results go: standard output, or a file that appears when it is complete.
///
/// Buffered; not for several threads.
final class Output {
  enum Failure: Error {
    /// Whoever read the output has enough. No error: `symbolicate DIR | head`.
    case closed
    case failed(String)
  }

  private let descriptor: CInt
  /// The file asked for, and the one written to until it is complete.
  private let paths: (final: FilePath, temporary: FilePath)?
  private var buffer: [UInt8] = []
  private static let bufferSize = 64 * 1024
  /// Off the screen before anything is written to a terminal, which may be the same.
  var progress: Progress?

  init(path: FilePath?) throws(Failure) {
    guard let path else {
      descriptor = STDOUT_FILENO
      paths = nil
      return
    }
    // A device, a pipe or a link is written to, not replaced: a rename would put a file in its place, as root even in
    // that of /dev/null.
    var existing = stat()
    if path.withCString({ lstat($0, &existing) }) == 0, existing.st_mode & S_IFMT != S_IFREG {
      descriptor = path.withCString { open($0, O_WRONLY | O_TRUNC | O_CLOEXEC) }
      guard descriptor >= 0 else {
        throw .failed("\(path): cannot be written: \(errnoText(errno))")
      }
      paths = nil
      return
    }
    // Reports are private where they come from; a file that is there keeps the mode that its owner chose.
    let mode = existing.st_mode & S_IFMT == S_IFREG ? existing.st_mode & 0o777 : 0o600
    let temporary = FilePath(bytes: path.bytes + ".\(getpid()).tmp".utf8)
    descriptor = UnfinishedFile.create(temporary, mode: mode)
    guard descriptor >= 0 else {
      throw .failed("\(path): cannot be written: \(errnoText(errno))")
    }
    paths = (path, temporary)
  }

  /// The regular file that a link leads to, or the path as it is. A state is replaced where it is, as one that is written to
  /// through a link would be lost with the run, and empty before it was read.
  static func target(of path: FilePath) -> FilePath {
    path.withCString { name in
      var status = stat()
      guard stat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG, let resolved = realpath(name, nil) else {
        return path
      }
      defer { free(resolved) }
      return FilePath(bytes: UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
    }
  }

  var isTerminal: Bool { paths == nil && isatty(descriptor) == 1 }

  /// Columns of the terminal; nil where the output is none.
  var width: Int? {
    guard isTerminal else { return nil }
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  func write(_ text: String) throws(Failure) {
    buffer.append(contentsOf: text.utf8)
    if buffer.count >= Self.bufferSize { try flush() }
  }

  func write(_ bytes: [UInt8]) throws(Failure) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.bufferSize { try flush() }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    // A large piece need not be copied once more.
    if bytes.count < Self.bufferSize / 4 {
      buffer.append(contentsOf: bytes)
      if buffer.count >= Self.bufferSize { try flush() }
    } else {
      try flush()
      try writeAll(bytes)
    }
  }

  func flush() throws(Failure) {
    try buffer.withUnsafeBufferPointer { bytes throws(Failure) in try writeAll(UnsafeRawBufferPointer(bytes)) }
    buffer.removeAll(keepingCapacity: true)
  }

  private func writeAll(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    if !bytes.isEmpty { progress?.erase() }
    var written = 0
    while written < bytes.count {
      let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
      if count >= 0 {
        written += count
      } else if errno == EPIPE {
        throw .closed
      } else if errno != EINTR {
        throw .failed("output cannot be written: \(errnoText(errno))")
      }
    }
  }

  /// Writes what is left and lets a file appear under its name.
  func finish() throws(Failure) {
    try flush()
    guard let paths else { return }
    let isDone =
      fsync(descriptor) == 0 && close(descriptor) == 0
      && paths.temporary.withCString { temporary in paths.final.withCString { rename(temporary, $0) } } == 0
    guard isDone else {
      let reason = errnoText(errno)
      removeTemporary(paths.temporary)
      throw .failed("\(paths.final): cannot be written: \(reason)")
    }
    UnfinishedFile.forget()
  }

  /// The end of a run that gave no result. What there is (an empty document, a summary) is for a stream's reader, who
  /// waits for its end; a file keeps the results that it had.
  func finishWithoutResult() throws(Failure) {
    if paths == nil { try flush() } else { abandon() }
  }

  /// Takes back a file that will not be complete.
  func abandon() {
    guard let paths else { return }
    close(descriptor)
    removeTemporary(paths.temporary)
  }

  private func removeTemporary(_ path: FilePath) {
    _ = path.withCString { unlink($0) }
    UnfinishedFile.forget()
  }
}
