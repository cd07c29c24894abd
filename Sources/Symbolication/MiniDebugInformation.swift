private import CLZMA
internal import CLibdw
private import Glibc

/// The symbol table that some distributions leave in stripped files: `.gnu_debugdata`, an ELF file compressed with xz whose
/// `.symtab` has the functions that `.dynsym` has not ("mini debug info").
enum MiniDebugInformation {
  /// Why it cannot be read, in words.
  struct Failure: Error {
    var reason: String
  }

  /// What the whole may grow to, in bytes: that of the largest programs has some megabytes.
  static let maximumSize = 256 << 20
  /// What the decompressor may take for itself; the highest preset of `xz` takes 65 MiB.
  private static let maximumMemory: UInt64 = 128 << 20

  /// - Parameter compressed: the contents of `.gnu_debugdata`.
  static func open(
    _ compressed: UnsafeRawBufferPointer, maximumSize: Int = maximumSize
  ) throws(Failure) -> ELFHandle {
    guard let memory = MemoryRegion(byteCount: maximumSize) else {
      throw Failure(reason: "there is not enough memory to decompress .gnu_debugdata")
    }
    var stream = lzma_stream()
    stream.next_in = compressed.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.avail_in = compressed.count
    stream.next_out = memory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.avail_out = memory.bytes.count
    defer { lzma_end(&stream) }
    var result = lzma_stream_decoder(&stream, maximumMemory, 0)
    // All input and all room are there at once; it comes back early only to say that it has what it needs.
    while result == LZMA_OK { result = lzma_code(&stream, LZMA_FINISH) }
    // Not by the error: that for too little room and that for too little input are the same one.
    switch result {
    case LZMA_STREAM_END: break
    case LZMA_BUF_ERROR where stream.avail_out == 0:
      throw Failure(reason: ".gnu_debugdata grows to more than \(maximumSize) bytes")
    case LZMA_MEMLIMIT_ERROR:
      throw Failure(reason: ".gnu_debugdata needs more than \(maximumMemory) bytes to be decompressed")
    case LZMA_FORMAT_ERROR: throw Failure(reason: ".gnu_debugdata is not compressed with xz")
    default: throw Failure(reason: ".gnu_debugdata is damaged or cut off")
    }
    let written = memory.bytes.count - stream.avail_out
    guard let handle = ELFHandle(memory, size: written) else {
      throw Failure(reason: ".gnu_debugdata holds no ELF file")
    }
    return handle
  }
}
