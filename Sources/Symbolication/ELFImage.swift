internal import CLibdw
private import Glibc

/// An ELF file in memory that has sections and nothing else: what libdw gets where the file itself is of no use to it.
struct ELFImage {
  struct Section {
    var name: String
    var size: Int
  }

  let memory: MemoryRegion
  /// Where the contents of each section stand in `memory`.
  private let places: [Range<Int>]

  /// Lays the sections out; their contents are zeros until someone writes them.
  ///
  /// - Parameters:
  ///   - machine: `e_machine` of the file that this stands for.
  ///   - type: its `e_type`.
  /// - Returns: nil where sizes add up to more than there can be, or the memory cannot be had.
  init?(machine: UInt16, type: UInt16, sections: [Section]) {
    var names: [UInt8] = [0]
    var nameOffsets: [UInt32] = []
    for section in sections {
      nameOffsets.append(UInt32(clamping: names.count))
      names += Array(section.name.utf8) + [0]
    }
    let ownName = UInt32(clamping: names.count)
    names += Array(".shstrtab".utf8) + [0]

    // The null section, the given ones, the names.
    let count = sections.count + 2
    guard count < Int(SHN_LORESERVE) else { return nil }
    let headerSize = MemoryLayout<Elf64_Ehdr>.size
    let entrySize = MemoryLayout<Elf64_Shdr>.size
    var end = headerSize + count * entrySize
    var places: [Range<Int>] = []
    for size in sections.map(\.size) + [names.count] {
      let start = (end + 15) & ~15
      let (next, overflow) = start.addingReportingOverflow(size)
      guard size >= 0, !overflow, next < Int.max - 16 else { return nil }
      places.append(start..<next)
      end = next
    }
    guard let memory = MemoryRegion(byteCount: end) else { return nil }
    self.memory = memory
    self.places = places

    var header = Elf64_Ehdr()
    withUnsafeMutableBytes(of: &header.e_ident) { ident in
      ident.copyBytes(from: [0x7f, UInt8(ascii: "E"), UInt8(ascii: "L"), UInt8(ascii: "F")])
      ident[Int(EI_CLASS)] = UInt8(ELFCLASS64)
      ident[Int(EI_DATA)] = UInt8(ELFDATA2LSB)
      ident[Int(EI_VERSION)] = UInt8(EV_CURRENT)
    }
    header.e_type = type
    header.e_machine = machine
    header.e_version = UInt32(EV_CURRENT)
    header.e_shoff = UInt64(headerSize)
    header.e_ehsize = UInt16(headerSize)
    header.e_shentsize = UInt16(entrySize)
    header.e_shnum = UInt16(count)
    header.e_shstrndx = UInt16(count - 1)
    memory.bytes.storeBytes(of: header, as: Elf64_Ehdr.self)
    for (index, place) in places.enumerated() {
      var section = Elf64_Shdr()
      let isNames = index == sections.count
      section.sh_name = isNames ? ownName : nameOffsets[index]
      section.sh_type = UInt32(isNames ? SHT_STRTAB : SHT_PROGBITS)
      section.sh_offset = UInt64(place.lowerBound)
      section.sh_size = UInt64(place.count)
      section.sh_addralign = 1
      memory.bytes.storeBytes(of: section, toByteOffset: headerSize + (index + 1) * entrySize, as: Elf64_Shdr.self)
    }
    names.withUnsafeBytes { contents(of: sections.count).copyMemory(from: $0) }
  }

  /// The contents of a section, by its number among the given ones.
  func contents(of section: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: memory.bytes[places[section]])
  }
}
