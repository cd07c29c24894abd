internal import CLibdw
private import CZlib
private import CZstd
private import Glibc

/// A debug section that is compressed, and how.
///
/// libdw 0.188 reads zlib and silently nothing of zstd; where it cannot decompress a section other than `.debug_info`, it
/// leaves that out and says nothing. So all of them are decompressed here, by the two libraries themselves.
struct CompressedSection {
  enum Method: String {
    case zlib, zstd
  }

  /// Why a section cannot be decompressed, in words.
  struct Failure: Error {
    var reason: String
  }

  /// More than this debug information never grows: deflate itself ends at 1,032.
  private static let maximumRatio = 1032
  /// What all sections of a file may grow to together, in bytes. Offsets of ordinary DWARF end there too.
  static let maximumTotal = 1 << 32

  let name: String
  let method: Method
  /// As the section's header says.
  let size: Int
  private let compressed: UnsafeRawBufferPointer

  /// The name that the section has when it is decompressed.
  var plainName: String { name.hasPrefix(".zdebug_") ? ".debug_" + name.dropFirst(8) : name }

  /// - Returns: nil for a section that is not compressed, or none of debug information.
  /// - Throws: `Failure` where what its header says cannot be.
  init?(_ section: ELFSections.Section) throws(Failure) {
    name = section.name
    let isOldStyle = name.hasPrefix(".zdebug_")
    guard section.hasContents, isOldStyle || name.hasPrefix(".debug_") else { return nil }
    let isMarked = section.header.sh_flags & UInt64(SHF_COMPRESSED) != 0
    guard isOldStyle || isMarked else { return nil }
    guard let data = elf_rawdata(section.handle, nil), let start = data.pointee.d_buf else {
      throw Failure(reason: "the bytes of \(name) lie outside of the file")
    }
    let bytes = UnsafeRawBufferPointer(start: start, count: data.pointee.d_size)
    var cursor = ByteCursor(bytes)
    let stated: UInt64
    if isMarked {
      // Elf64_Chdr: type, reserved, size, alignment.
      let type = Int32(truncatingIfNeeded: cursor.u32())
      _ = cursor.u32()
      stated = cursor.u64()
      _ = cursor.u64()
      guard !cursor.failed else { throw Failure(reason: "the compression header of \(name) is cut off") }
      switch type {
      case ELFCOMPRESS_ZLIB: method = .zlib
      // ELFCOMPRESS_ZSTD, which the header of this libelf does not know.
      case 2: method = .zstd
      default:
        throw Failure(
          reason: "\(name) is compressed with method \(type), which is not known; "
            + "decompress it: objcopy --decompress-debug-sections")
      }
    } else {
      // "ZLIB" and the size, most significant byte first.
      method = .zlib
      let magic = cursor.u32()
      stated = cursor.u64().byteSwapped
      guard !cursor.failed, magic == 0x4249_4c5a else {
        throw Failure(reason: "\(name) does not begin as a compressed section does")
      }
    }
    compressed = UnsafeRawBufferPointer(rebasing: bytes[cursor.offset...])
    let limit = compressed.count.multipliedReportingOverflow(by: Self.maximumRatio)
    guard let size = Int(exactly: stated), size <= Self.maximumTotal,
      limit.overflow || size <= limit.partialValue
    else {
      throw Failure(
        reason: "\(name) claims to hold \(stated) bytes in \(compressed.count) compressed ones; it is damaged, or made "
          + "to exhaust memory")
    }
    self.size = size
  }

  /// Decompresses the section.
  ///
  /// - Parameter target: has exactly `size` bytes.
  /// - Throws: `Failure` for damaged data, and for data of another size than the header says.
  func decompress(into target: UnsafeMutableRawBufferPointer) throws(Failure) {
    let count: Int
    switch method {
    case .zstd:
      count = ZSTD_decompress(target.baseAddress, target.count, compressed.baseAddress, compressed.count)
      if ZSTD_isError(count) != 0 {
        throw Failure(reason: "\(name) cannot be decompressed (zstd: \(String(cString: ZSTD_getErrorName(count))))")
      }
    case .zlib:
      var length = uLongf(target.count)
      let result = uncompress(
        target.baseAddress?.assumingMemoryBound(to: UInt8.self), &length,
        compressed.baseAddress?.assumingMemoryBound(to: UInt8.self), uLong(compressed.count))
      guard result == Z_OK else {
        throw Failure(
          reason: "\(name) cannot be decompressed (zlib: \(zError(result).map { String(cString: $0) } ?? "\(result)"))")
      }
      count = Int(clamping: length)
    }
    guard count == size else {
      throw Failure(reason: "\(name) has \(count) bytes when decompressed, its header says \(size)")
    }
  }
}

/// The debug sections of a file as libdw and the reader take them: not compressed.
struct DebugSections {
  let handle: ELFHandle
  let sections: ELFSections

  /// - Returns: the file's own sections where none of them is compressed; else copies, in memory, of those that hold debug
  ///   information.
  init(_ handle: ELFHandle, _ sections: ELFSections) throws(CompressedSection.Failure) {
    let compressed = try Self.compressed(in: sections)
    guard !compressed.isEmpty else {
      self.handle = handle
      self.sections = sections
      return
    }
    var plain: [(name: String, bytes: UnsafeRawBufferPointer)] = []
    for section in sections.all where section.hasContents && section.name.hasPrefix(".debug_") {
      guard section.header.sh_flags & UInt64(SHF_COMPRESSED) == 0 else { continue }
      plain.append((section.name, section.bytes))
    }
    var header = GElf_Ehdr()
    guard gelf_getehdr(handle.elf, &header) != nil,
      let image = ELFImage(
        machine: header.e_machine, type: header.e_type,
        sections: compressed.map { .init(name: $0.plainName, size: $0.size) }
          + plain.map { .init(name: $0.name, size: $0.bytes.count) })
    else { throw CompressedSection.Failure(reason: "there is not enough memory to decompress its sections") }
    for (index, section) in compressed.enumerated() { try section.decompress(into: image.contents(of: index)) }
    for (index, section) in plain.enumerated() {
      image.contents(of: compressed.count + index).copyMemory(from: section.bytes)
    }
    guard let decompressed = ELFHandle(image.memory), let found = ELFSections(decompressed.elf) else {
      throw CompressedSection.Failure(reason: "its decompressed sections cannot be read (\(ELFHandle.lastError()))")
    }
    self.handle = decompressed
    self.sections = found
  }

  /// The compressed sections, by their headers alone.
  private static func compressed(
    in sections: ELFSections
  ) throws(CompressedSection.Failure) -> [CompressedSection] {
    var found: [CompressedSection] = []
    var total = 0
    for section in sections.all {
      guard let compressed = try CompressedSection(section) else { continue }
      total += compressed.size
      // Section headers may all point at the same bytes, so that a small file has any number of them.
      guard total <= CompressedSection.maximumTotal else {
        throw CompressedSection.Failure(
          reason: "its compressed sections claim to hold more than \(CompressedSection.maximumTotal) bytes; "
            + "decompress it: objcopy --decompress-debug-sections")
      }
      found.append(compressed)
    }
    return found
  }

  /// Why the compressed sections cannot be read, as far as their headers tell; nil where nothing is wrong with them.
  static func problem(in sections: ELFSections) -> String? {
    do throws(CompressedSection.Failure) {
      _ = try compressed(in: sections)
      return nil
    } catch {
      return error.reason
    }
  }
}
