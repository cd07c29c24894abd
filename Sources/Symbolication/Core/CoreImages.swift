internal import CLibdw
internal import CrashModel
private import Glibc

/// The ELF files that were mapped in a process, from its core: the notes say which files, and the first page of each, which
/// the kernel keeps for that, what they are.
struct CoreImages {
  private(set) var images: [Image] = []
  private(set) var executable: String?
  private let map: ImageMap

  init(_ notes: CoreNotes, memory: CoreMemory, executableSegments: [AddressRange]) {
    var found: [Image] = []
    var index = 0
    let files = notes.files.sorted { $0.addresses.low < $1.addresses.low }
    while index < files.count {
      // The mappings of one file that follow each other from its beginning are one image; it may be mapped twice.
      let first = files[index]
      var end = index + 1
      while end < files.count, files[end].path == first.path, files[end].offset != 0 { end += 1 }
      let mappings = files[index..<end]
      index = end
      guard first.offset == 0 else { continue }
      let isCode = mappings.contains { mapping in
        executableSegments.contains { $0.low < mapping.addresses.high && mapping.addresses.low < $0.high }
      }
      let header = CoreImageHeader(at: first.addresses.low, in: memory)
      // Without its first page, nothing but running code tells a program from a font.
      guard header != nil || isCode && memory.bytes(at: first.addresses.low) == nil else { continue }
      let last = mappings.map(\.addresses.high).max() ?? first.addresses.high
      found.append(
        Image(
          path: first.path, buildID: header?.buildID, address: Address(rawValue: first.addresses.low),
          size: max(header?.size ?? 0, last - first.addresses.low),
          firstVirtualAddress: header?.firstVirtualAddress ?? 0))
    }
    if let address = notes.auxiliary[UInt64(AT_SYSINFO_EHDR)], let header = CoreImageHeader(at: address, in: memory) {
      found.append(
        Image(
          path: "linux-vdso.so.1", buildID: header.buildID, address: Address(rawValue: address), size: header.size,
          firstVirtualAddress: header.firstVirtualAddress))
    }
    images = found.sorted { $0.address < $1.address }
    map = ImageMap(images)
    if let entry = notes.auxiliary[UInt64(AT_ENTRY)] {
      executable = found.first { $0.contains(Address(rawValue: entry)) }?.path
    }
  }

  func index(of address: UInt64) -> Int? { map.index(of: Address(rawValue: address)) }
}

/// An ELF header in memory.
private struct CoreImageHeader {
  private(set) var firstVirtualAddress: UInt64 = 0
  private(set) var size: UInt64 = 0
  private(set) var buildID: BuildID?

  /// - Returns: nil where no ELF file begins there.
  init?(at address: UInt64, in memory: CoreMemory) {
    guard let bytes = memory.bytes(at: address), bytes.count >= 64,
      bytes.starts(with: [0x7f, 0x45, 0x4c, 0x46, UInt8(ELFCLASS64), UInt8(ELFDATA2LSB)])
    else { return nil }
    var header = ByteCursor(bytes, at: 32)
    let tableOffset = header.u64()
    var counts = ByteCursor(bytes, at: 54)
    let entrySize = counts.u16()
    let count = counts.u16()
    guard entrySize >= 56, count > 0, tableOffset < UInt64(bytes.count) else { return }
    var low = UInt64.max
    var high: UInt64 = 0
    var notes: [(address: UInt64, size: UInt64)] = []
    for index in 0..<Int(count) {
      var entry = ByteCursor(bytes, at: Int(tableOffset) + index * Int(entrySize))
      let type = entry.u32()
      entry.skip(12)
      let virtualAddress = entry.u64()
      entry.skip(8)
      let fileSize = entry.u64()
      let memorySize = entry.u64()
      guard !entry.failed else { break }
      if type == UInt32(PT_LOAD) {
        low = min(low, virtualAddress & ~0xfff)
        high = max(high, virtualAddress.addingReportingOverflow(memorySize).partialValue)
      } else if type == UInt32(PT_NOTE) {
        notes.append((virtualAddress, fileSize))
      }
    }
    guard low < high else { return }
    firstVirtualAddress = low
    size = high - low
    for note in notes where buildID == nil {
      let place = address &+ (note.address &- low)
      guard note.size < 1 << 16, let contents = memory.bytes(at: place, count: Int(note.size)) else { continue }
      buildID = Self.buildID(in: contents)
    }
  }

  private static func buildID(in notes: UnsafeRawBufferPointer) -> BuildID? {
    var cursor = ByteCursor(notes)
    while !cursor.isAtEnd {
      let nameSize = UInt64(cursor.u32())
      let size = UInt64(cursor.u32())
      let type = cursor.u32()
      let name = cursor.offset
      cursor.skip((nameSize + 3) & ~3)
      let contents = cursor.offset
      cursor.skip((size + 3) & ~3)
      guard !cursor.failed else { return nil }
      if type == UInt32(NT_GNU_BUILD_ID), nameSize == 4, size <= 256,
        notes[name..<name + 4].elementsEqual([0x47, 0x4e, 0x55, 0])
      {
        return BuildID(bytes: notes[contents..<contents + Int(size)])
      }
    }
    return nil
  }
}
