internal import CLibdw
private import CZstd
internal import CrashModel
private import Glibc

/// The bytes of a core: the file itself, or what zstd made of it, in a file without a name.
struct CoreSource {
  let handle: ELFHandle
  /// When the file was written, which is soon after the crash.
  let modified: Timestamp?
  /// What zstd's frames begin with (RFC 8878, 3.1.1).
  static let compressedMagic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]

  private let watch: ReadingWatch?
  private let subject: ReadingWatch.Subject
  private let size: Int

  /// Says that it is the core that is read from now on, after other files were.
  func willRead() { watch?.begin(subject, size: size) }

  init(_ location: FilePath, watch: ReadingWatch?) throws(DebugFileError) {
    let path = location.description
    let descriptor = location.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { throw .cannotOpen(path: path, code: errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .cannotOpen(path: path, code: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular(path: path) }
    modified = Timestamp(
      rawValue: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
    self.watch = watch
    subject = .init(.headers, of: status)
    size = Int(clamping: status.st_size)
    if let ending = watch?.ending(of: subject) { throw .endedReader(path: path, detail: ending) }
    var magic = [UInt8](repeating: 0, count: 4)
    guard pread(descriptor, &magic, 4, 0) == 4, magic == Self.compressedMagic else {
      handle = try ELFHandle(path: location, watch: watch)
      return
    }
    watch?.begin(subject, size: size)
    let plain = try Self.decompressed(descriptor, path: path)
    defer { close(plain) }
    do throws(DebugFileError) {
      handle = try ELFHandle(path: FilePath("/proc/self/fd/\(plain)"), watch: nil)
    } catch { throw .notCore(path: path, detail: "what it decompresses to \(error.reason)") }
  }

  /// As a file and not as memory: cores are as large as the process was, and most of it is never looked at. What is zero
  /// takes no room on the disk, as in a core that the kernel writes.
  private static func decompressed(_ source: CInt, path: String) throws(DebugFileError) -> CInt {
    let file = UnnamedFile.make()
    guard file >= 0 else {
      throw .damaged(
        path: path,
        detail: "it is compressed, and no file can be made in \(UnnamedFile.folder): \(errnoText(errno))")
    }
    let failure = decompress(source, into: file)
    if let failure {
      close(file)
      throw .damaged(path: path, detail: failure)
    }
    return file
  }

  /// - Returns: what went wrong.
  private static func decompress(_ source: CInt, into file: CInt) -> String? {
    guard let stream = ZSTD_createDStream() else { return "there is no memory to decompress it" }
    defer { ZSTD_freeDStream(stream) }
    let inputSize = ZSTD_DStreamInSize()
    let outputSize = 1 << 20
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: inputSize, alignment: 16)
    let output = UnsafeMutableRawBufferPointer.allocate(byteCount: outputSize, alignment: 16)
    defer {
      input.deallocate()
      output.deallocate()
    }
    var size: off_t = 0
    var hint = 1
    while true {
      let count = read(source, input.baseAddress, inputSize)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return "it cannot be read: \(errnoText(errno))" }
      if count == 0 { break }
      var from = ZSTD_inBuffer(src: input.baseAddress, size: count, pos: 0)
      while from.pos < from.size || hint != 0 {
        var to = ZSTD_outBuffer(dst: output.baseAddress, size: outputSize, pos: 0)
        hint = ZSTD_decompressStream(stream, &to, &from)
        if ZSTD_isError(hint) != 0 {
          return "its compressed data is damaged at byte \(size): "
            + (ZSTD_getErrorName(hint).map { String(cString: $0) } ?? "unknown error")
        }
        let made = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(output)[..<to.pos])
        guard write(made, to: file, at: size) else {
          return "its decompressed data has no room: \(errnoText(errno))"
        }
        size += off_t(to.pos)
        if to.pos == 0, from.pos == from.size { break }
      }
    }
    guard ftruncate(file, size) == 0 else { return "its decompressed data has no room: \(errnoText(errno))" }
    // What is there is still worth a look.
    return size == 0 ? "its compressed data is cut before the first byte" : nil
  }

  private static func write(_ bytes: UnsafeRawBufferPointer, to file: CInt, at offset: off_t) -> Bool {
    let block = 4096
    var start = 0
    while start < bytes.count {
      // A run of blocks that hold something.
      var end = start
      while end < bytes.count, !isZero(bytes[end..<min(end + block, bytes.count)]) {
        end = min(end + block, bytes.count)
      }
      var done = start
      while done < end {
        let count = pwrite(file, bytes.baseAddress.map { $0 + done }, end - done, offset + off_t(done))
        if count > 0 { done += count } else if errno != EINTR { return false }
      }
      start = end < bytes.count ? min(end + block, bytes.count) : end
    }
    return true
  }

  private static func isZero(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    bytes.first == 0 && bytes.allSatisfy { $0 == 0 }
  }
}
