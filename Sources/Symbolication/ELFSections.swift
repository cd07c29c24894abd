internal import CLibdw
internal import Glibc

/// The sections of an ELF file by name.
struct ELFSections {
  struct Section {
    let name: String
    let header: GElf_Shdr
    let handle: OpaquePointer

    /// Takes bytes of the file; a section that only names a place in memory does not.
    var hasContents: Bool { header.sh_type != SHT_NOBITS && header.sh_size > 0 }

    /// As they stand in the file; empty where there are none, or they lie outside of it.
    var bytes: UnsafeRawBufferPointer {
      guard hasContents, let data = elf_rawdata(handle, nil), let buffer = data.pointee.d_buf, data.pointee.d_size > 0
      else { return UnsafeRawBufferPointer(start: nil, count: 0) }
      return UnsafeRawBufferPointer(start: buffer, count: data.pointee.d_size)
    }

    var addresses: AddressRange {
      AddressRange(low: header.sh_addr, high: header.sh_addr &+ header.sh_size)
    }
  }

  /// More than any compiler makes, even with a section per function in an object file.
  static let maximumCount = 1 << 20

  let all: [Section]

  /// - Returns: nil where the section headers cannot be read.
  init?(_ elf: OpaquePointer) {
    var count = 0
    var namesIndex = 0
    guard elf_getshdrnum(elf, &count) == 0, count <= Self.maximumCount else { return nil }
    guard count == 0 || elf_getshdrstrndx(elf, &namesIndex) == 0 else { return nil }
    var sections: [Section] = []
    var current: OpaquePointer?
    while let next = elf_nextscn(elf, current) {
      current = next
      var header = GElf_Shdr()
      guard gelf_getshdr(next, &header) != nil else { return nil }
      let name = elf_strptr(elf, namesIndex, Int(header.sh_name)).map { String(cString: $0) } ?? ""
      sections.append(Section(name: name, header: header, handle: next))
    }
    all = sections
  }

  subscript(name: String) -> Section? { all.first { $0.name == name } }

  /// The bytes of the first of these sections that has any, as they stand in the file; empty where there are none.
  ///
  /// They belong to libelf and live as long as its handle.
  func bytes(_ names: String...) -> UnsafeRawBufferPointer {
    for name in names {
      guard let section = self[name] else { continue }
      let bytes = section.bytes
      if !bytes.isEmpty { return bytes }
    }
    return UnsafeRawBufferPointer(start: nil, count: 0)
  }
}
