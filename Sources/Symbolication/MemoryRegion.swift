internal import Glibc

/// Zeroed memory straight from the kernel, given back with the object.
///
/// A page costs nothing before it is written: a size that a damaged file merely claims takes address space and no memory.
final class MemoryRegion {
  let bytes: UnsafeMutableRawBufferPointer

  /// - Returns: nil where the kernel refuses, or for no bytes at all.
  init?(byteCount: Int) {
    guard byteCount > 0 else { return nil }
    // MAP_NORESERVE: what is promised to a liar shall not count against an overcommit limit.
    let address = mmap(
      nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | Int32(MAP_ANONYMOUS) | Int32(MAP_NORESERVE), -1, 0)
    guard let address, address != MAP_FAILED else { return nil }
    bytes = UnsafeMutableRawBufferPointer(start: address, count: byteCount)
  }

  deinit { munmap(bytes.baseAddress, bytes.count) }
}
