internal import CLibdw
internal import CrashModel
private import Glibc

/// Owns a file descriptor or memory, and libelf's handle of it; closes both.
///
/// The file is mapped, not read: only what is asked for becomes memory. A file that someone truncates while it is read
/// raises SIGBUS, as with every tool that maps; a file that is replaced by a rename, as package managers do, does not.
final class ELFHandle {
  let elf: OpaquePointer
  /// -1 for one in memory.
  let descriptor: Int32
  /// Size of the file in bytes when it was opened.
  let size: Int
  /// What one in memory consists of.
  private let memory: MemoryRegion?

  /// - Throws: `DebugFileError` for all but a regular file that begins like an ELF file.
  init(path location: FilePath) throws(DebugFileError) {
    let path = location.description
    guard !location.hasNUL else { throw .cannotOpen(path: path, code: ENOENT) }
    // O_NONBLOCK: the open of a FIFO without a writer would wait for ever. It means nothing to a regular file.
    let descriptor = location.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { throw .cannotOpen(path: path, code: errno) }
    var status = stat()
    var failure: DebugFileError?
    var elf: OpaquePointer?
    if fstat(descriptor, &status) != 0 {
      failure = .cannotOpen(path: path, code: errno)
    } else if status.st_mode & S_IFMT != S_IFREG {
      failure = .notRegular(path: path)
    } else if status.st_size == 0 {
      failure = .empty(path: path)
    } else {
      // libelf refuses to do anything before it was asked for its version.
      _ = elf_version(UInt32(EV_CURRENT))
      elf = elf_begin(descriptor, ELF_C_READ_MMAP, nil)
      if elf == nil {
        failure = .damaged(path: path, detail: Self.lastError())
      } else if elf_kind(elf) != ELF_K_ELF {
        failure = .notELF(path: path)
      }
    }
    guard failure == nil, let elf else {
      if let elf { elf_end(elf) }
      close(descriptor)
      throw failure ?? .notELF(path: path)
    }
    self.elf = elf
    self.descriptor = descriptor
    size = Int(clamping: status.st_size)
    memory = nil
  }

  /// An ELF file in memory.
  ///
  /// - Parameter size: of the file, which the memory may be longer than; nil for all of it.
  /// - Returns: nil for bytes that do not begin like an ELF file.
  init?(_ memory: MemoryRegion, size: Int? = nil) {
    let size = min(size ?? memory.bytes.count, memory.bytes.count)
    _ = elf_version(UInt32(EV_CURRENT))
    guard let elf = elf_memory(memory.bytes.baseAddress?.assumingMemoryBound(to: CChar.self), size) else { return nil }
    guard elf_kind(elf) == ELF_K_ELF else {
      elf_end(elf)
      return nil
    }
    self.elf = elf
    self.memory = memory
    self.size = size
    descriptor = -1
  }

  deinit {
    elf_end(elf)
    if descriptor >= 0 { close(descriptor) }
  }

  static func lastError() -> String {
    elf_errmsg(-1).map { String(cString: $0) } ?? "unknown error"
  }

  /// The linker's build id; nil where there is none.
  var buildID: BuildID? { Self.buildID(of: elf) }

  static func buildID(of elf: OpaquePointer) -> BuildID? {
    var bytes: UnsafeRawPointer?
    let count = dwelf_elf_gnu_build_id(elf, &bytes)
    // The note's length is 32 bits wide; linkers write 8, 16, 20 or 32 bytes.
    guard count > 0, count <= 256, let bytes else { return nil }
    return BuildID(bytes: UnsafeRawBufferPointer(start: bytes, count: count))
  }
}

/// Owns libdw's handle, which refers to the ELF handle's memory.
final class DwarfHandle {
  let dwarf: OpaquePointer
  private let file: ELFHandle
  /// Of the file that this one shares entries and strings with; kept, as libdw keeps a pointer to it.
  private var supplementary: DwarfHandle?

  init?(_ file: ELFHandle) {
    guard let dwarf = dwarf_begin_elf(file.elf, DWARF_C_READ, nil) else { return nil }
    self.dwarf = dwarf
    self.file = file
  }

  /// Gives libdw the file that references to a supplementary file (`dwz`) mean; otherwise it would look for one itself, and
  /// take whatever lies at the path.
  func setSupplementary(_ other: DwarfHandle) {
    dwarf_setalt(dwarf, other.dwarf)
    supplementary = other
  }

  /// One without any entry.
  static var empty: DwarfHandle? {
    // libdw takes no file without debug sections.
    ELFImage(
      machine: UInt16(EM_NONE), type: UInt16(ET_NONE),
      sections: [.init(name: ".debug_info", size: 1), .init(name: ".debug_str", size: 1)]
    ).flatMap { ELFHandle($0.memory) }.flatMap { DwarfHandle($0) }
  }

  deinit { dwarf_end(dwarf) }

  static func lastError() -> String {
    dwarf_errmsg(-1).map { String(cString: $0) } ?? "unknown error"
  }
}
