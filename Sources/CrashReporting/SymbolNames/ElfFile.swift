internal import CrashModel
private import Glibc

/// The parts of a 64-bit little-endian ELF file that names come from: build id and symbol table.
///
/// Reads with `pread`, never through a mapping: a file that is cut meanwhile (a deployment that writes in place) would
/// end the process with SIGBUS. Every number in the file may be anything.
struct ElfFile: ~Copyable {
  enum Failure: Error, Hashable {
    case unreadable(SystemError)
    case invalid(String)
  }

  private let file: Descriptor
  private let size: Int
  private var programHeaders: [UInt8] = []
  private var sectionHeaders: [UInt8] = []

  private static let programHeaderSize = 56
  private static let sectionHeaderSize = 64
  private static let symbolSize = 24
  private static let maximumNotes = 1 << 20
  /// Of a name. Swift's mangled names reach some thousand bytes.
  private static let maximumName = 1 << 16

  private init(file: consuming Descriptor, size: Int) {
    self.file = file
    self.size = size
  }

  static func open(_ path: String) throws(Failure) -> ElfFile {
    var elf: ElfFile
    do throws(SystemError) {
      // Links are followed here: that is how libraries are named.
      let file = try Descriptor.open(path, flags: O_RDONLY | O_NONBLOCK)
      let status = try file.status()
      elf = ElfFile(file: file, size: status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : -1)
    } catch { throw .unreadable(error) }
    guard elf.size >= 0 else { throw .invalid("not a regular file") }
    try elf.readHeaders()
    return elf
  }

  private mutating func readHeaders() throws(Failure) {
    let header = try bytes(at: 0, count: 64)
    guard header.starts(with: [0x7f, 0x45, 0x4c, 0x46]) else { throw .invalid("not an ELF file") }
    guard header[4] == 2, header[5] == 1 else { throw .invalid("not a 64-bit little-endian ELF file") }
    programHeaders = try table(
      offset: header.u64(32), entrySize: header.u16(54), count: header.u16(56), expected: Self.programHeaderSize)
    sectionHeaders = try table(
      offset: header.u64(40), entrySize: header.u16(58), count: header.u16(60), expected: Self.sectionHeaderSize)
  }

  private func table(offset: UInt64, entrySize: UInt16, count: UInt16, expected: Int) throws(Failure) -> [UInt8] {
    guard count > 0, offset > 0 else { return [] }
    guard Int(entrySize) == expected else { throw .invalid("its table entries have \(entrySize) bytes") }
    return try bytes(at: offset, count: Int(count) * expected)
  }

  private func bytes(at offset: UInt64, count: Int) throws(Failure) -> [UInt8] {
    guard let start = Int(exactly: offset), count <= size, start <= size - count else {
      throw .invalid("\(count) bytes at \(offset) lie behind its end")
    }
    let result: [UInt8]
    do { result = try file.read(count: count, at: start) } catch { throw .unreadable(error) }
    guard result.count == count else { throw .invalid("it was cut while it was read") }
    return result
  }

  // MARK: Build id

  /// nil where the file has none.
  func buildID() throws(Failure) -> BuildID? {
    for header in stride(from: 0, to: programHeaders.count, by: Self.programHeaderSize)
    where programHeaders.u32(header) == 4 {  // PT_NOTE
      let length = programHeaders.u64(header + 32)
      guard length > 0, length <= UInt64(Self.maximumNotes) else { continue }
      let notes = try bytes(at: programHeaders.u64(header + 8), count: Int(length))
      // Names and contents are padded to four bytes, or to eight where the segment says so.
      let alignment = programHeaders.u64(header + 48) == 8 ? 8 : 4
      if let id = Self.buildID(notes: notes, alignment: alignment) { return id }
    }
    return nil
  }

  static func buildID(notes: [UInt8], alignment: Int) -> BuildID? {
    var offset = 0
    while offset + 12 <= notes.count {
      let nameSize = Int(notes.u32(offset))
      let contentSize = Int(notes.u32(offset + 4))
      let type = notes.u32(offset + 8)
      let content = (offset + 12 + nameSize + alignment - 1) / alignment * alignment
      guard content <= notes.count, contentSize <= notes.count - content else { return nil }
      if type == 3, nameSize == 4, notes[(offset + 12)..<(offset + 16)].elementsEqual([0x47, 0x4e, 0x55, 0]) {
        return BuildID(bytes: notes[content..<content + contentSize])
      }
      offset = (content + contentSize + alignment - 1) / alignment * alignment
    }
    return nil
  }

  // MARK: Symbols

  /// The function that each address lies in, by the linker's names.
  ///
  /// One pass over the table; memory is one entry for each address, whatever the file's size.
  ///
  /// - Parameter addresses: as the ELF file numbers them, ascending and distinct.
  /// - Returns: as many as `addresses`; nil where no function is known.
  func functions(at addresses: [UInt64]) throws(Failure) -> [String?] {
    // .symtab has everything that .dynsym has; a stripped file has the latter alone.
    guard let section = section(ofType: 2) ?? section(ofType: 11) else {
      return Array(repeating: nil, count: addresses.count)
    }
    let strings = Int(clamping: sectionHeaders.u32(section + 40)).multipliedReportingOverflow(
      by: Self.sectionHeaderSize)
    guard !strings.overflow, strings.partialValue <= sectionHeaders.count - Self.sectionHeaderSize else {
      throw .invalid("its symbol table has no names")
    }
    let best = try bestSymbols(
      at: addresses, tableOffset: sectionHeaders.u64(section + 24), tableSize: sectionHeaders.u64(section + 32))
    let stringsOffset = sectionHeaders.u64(strings.partialValue + 24)
    let stringsSize = sectionHeaders.u64(strings.partialValue + 32)
    var names: [UInt32: String?] = [:]
    var result: [String?] = []
    for candidate in best {
      guard let candidate, UInt64(candidate.name) < stringsSize else {
        result.append(nil)
        continue
      }
      if let known = names[candidate.name] {
        result.append(known)
        continue
      }
      let name = try name(
        at: stringsOffset.addingReportingOverflow(UInt64(candidate.name)),
        limit: stringsSize - UInt64(candidate.name))
      names[candidate.name] = .some(name)
      result.append(name)
    }
    return result
  }

  private struct Candidate {
    var value: UInt64
    var name: UInt32
    var rank: Int
  }

  private func section(ofType type: UInt32) -> Int? {
    stride(from: 0, to: sectionHeaders.count, by: Self.sectionHeaderSize).first {
      sectionHeaders.u32($0 + 4) == type && sectionHeaders.u64($0 + 56) == UInt64(Self.symbolSize)
    }
  }

  private func bestSymbols(
    at addresses: [UInt64], tableOffset: UInt64, tableSize: UInt64
  ) throws(Failure) -> [Candidate?] {
    guard let start = Int(exactly: tableOffset), let length = Int(exactly: tableSize), length <= size,
      start <= size - length
    else { throw .invalid("its symbol table lies behind its end") }
    var best = [Candidate?](repeating: nil, count: addresses.count)
    // A multiple of the entry's size, large enough that the system calls do not count.
    var buffer = [UInt8](repeating: 0, count: Self.symbolSize * 8_192)
    var done = 0
    while done < length {
      let wanted = min(buffer.count, length - done)
      let got: Int
      do {
        got = try buffer.withUnsafeMutableBufferPointer { bytes throws(SystemError) in
          try file.read(
            into: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: bytes[..<wanted])),
            at: start + done)
        }
      } catch { throw .unreadable(error) }
      guard got > 0 else { break }
      buffer.withUnsafeBytes { bytes in
        for entry in stride(from: 0, through: got - Self.symbolSize, by: Self.symbolSize) {
          Self.consider(UnsafeRawBufferPointer(rebasing: bytes[entry..<entry + Self.symbolSize]), addresses, &best)
        }
      }
      done += wanted
    }
    return best
  }

  private static func consider(
    _ symbol: UnsafeRawBufferPointer, _ addresses: [UInt64], _ best: inout [Candidate?]
  ) {
    let information = symbol[4]
    let type = information & 15
    // STT_FUNC and STT_GNU_IFUNC that are defined here.
    guard type == 2 || type == 10, symbol.loadUnaligned(fromByteOffset: 6, as: UInt16.self) != 0 else { return }
    let value = symbol.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    let length = symbol.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    // Hand-written assembly may have no size: it then reaches as far as the next symbol, and loses to every one that
    // does contain the address.
    let end = length == 0 ? UInt64.max : value.addingReportingOverflow(length).overflow ? .max : value + length
    var low = 0
    var high = addresses.count
    while low < high {
      let middle = (low + high) / 2
      if addresses[middle] < value { low = middle + 1 } else { high = middle }
    }
    let name = symbol.loadUnaligned(as: UInt32.self)
    // Global before weak before local: of several names for one place the one that people call it by.
    let binding =
      switch information >> 4 {
      case 1: 2
      case 2: 1
      default: 0
      }
    let rank = (length == 0 ? 0 : 4) + binding
    var index = low
    while index < addresses.count, addresses[index] < end {
      let current = best[index]
      let sized = length != 0
      let currentSized = current.map { $0.rank >= 4 } ?? false
      let better =
        if let current {
          sized != currentSized ? sized : value != current.value ? value > current.value : rank > current.rank
        } else { true }
      if better { best[index] = Candidate(value: value, name: name, rank: rank) }
      index += 1
    }
  }

  private func name(at offset: (partialValue: UInt64, overflow: Bool), limit: UInt64) throws(Failure) -> String? {
    guard !offset.overflow, let start = Int(exactly: offset.partialValue), start < size else { return nil }
    var collected: [UInt8] = []
    // Most names are short; the long ones are read on in steps.
    while collected.count < Self.maximumName {
      let count = min(256, size - start - collected.count, Int(clamping: limit) - collected.count)
      guard count > 0 else { return nil }
      let piece = try bytes(at: UInt64(start + collected.count), count: count)
      if let end = piece.firstIndex(of: 0) {
        collected += piece[..<end]
        return collected.isEmpty ? nil : String(decoding: collected, as: UTF8.self)
      }
      collected += piece
    }
    return nil
  }
}

extension [UInt8] {
  // The callers made sure that the bytes are there: the arrays were read with their exact size.
  fileprivate func u16(_ offset: Int) -> UInt16 {
    UInt16(self[offset]) | UInt16(self[offset + 1]) << 8
  }
  fileprivate func u32(_ offset: Int) -> UInt32 { UInt32(u16(offset)) | UInt32(u16(offset + 2)) << 16 }
  fileprivate func u64(_ offset: Int) -> UInt64 { UInt64(u32(offset)) | UInt64(u32(offset + 4)) << 32 }
}
