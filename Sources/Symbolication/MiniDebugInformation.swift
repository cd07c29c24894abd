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
  static func open(_ compressed: UnsafeRawBufferPointer) throws(Failure) -> ELFHandle {
    guard let memory = MemoryRegion(byteCount: maximumSize) else {
      throw Failure(reason: "there is not enough memory to decompress .gnu_debugdata")
    }
    var limit = maximumMemory
    var read = 0
    var written = 0
    let result = lzma_stream_buffer_decode(
      &limit, 0, nil, compressed.baseAddress?.assumingMemoryBound(to: UInt8.self), &read, compressed.count,
      memory.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), &written, memory.bytes.count)
    switch result {
    case LZMA_OK: break
    case LZMA_BUF_ERROR where written == memory.bytes.count:
      throw Failure(reason: ".gnu_debugdata grows to more than \(maximumSize) bytes")
    case LZMA_MEMLIMIT_ERROR:
      throw Failure(reason: ".gnu_debugdata needs more than \(maximumMemory) bytes to be decompressed")
    case LZMA_FORMAT_ERROR: throw Failure(reason: ".gnu_debugdata is not compressed with xz")
    default: throw Failure(reason: ".gnu_debugdata is damaged or cut off")
    }
    guard let handle = ELFHandle(memory, size: written) else {
      throw Failure(reason: ".gnu_debugdata holds no ELF file")
    }
    return handle
  }
}
