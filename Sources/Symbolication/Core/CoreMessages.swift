internal import CLibdw
internal import CrashModel

/// What the Swift runtime and the C library said before they ended the process, from where they keep it for a debugger.
struct CoreMessages {
  private static let limit = 4096

  /// - Parameter file: with the image's symbols; nil where there is none.
  static func message(of images: CoreImages, in memory: CoreMemory, file: (Image) -> DebugFile?) -> String? {
    var fallback: String?
    for image in images.images {
      guard let file = file(image) else { continue }
      let bias = image.address.rawValue &- image.firstVirtualAddress
      if let text = swiftMessage(file, bias: bias, memory) { return text }
      // `struct abort_msg_s`: an `unsigned` with the size, then the text.
      if fallback == nil, let variable = symbol("__abort_msg", in: file),
        let place = memory.word(at: bias &+ variable), place != 0
      {
        fallback = text(memory.text(at: place &+ 4, limit: limit))
      }
    }
    return fallback
  }

  /// The runtime has the text's address in a variable that nobody but itself can name, and a function that returns the
  /// variable's address. Without a symbol table that function is read: it loads one address, relative to its own.
  private static func swiftMessage(_ file: DebugFile, bias: UInt64, _ memory: CoreMemory) -> String? {
    var variable = symbol("_ZL18kFatalErrorMessage", in: file)
    if variable == nil, let function = symbol("swift_getFatalErrorMessageBuffer", in: file) {
      variable = loadedAddress(ofFunctionAt: function, in: file)
    }
    guard let variable, let place = memory.word(at: bias &+ variable), place != 0 else { return nil }
    return text(memory.text(at: place, limit: limit))
  }

  private static func text(_ bytes: [UInt8]) -> String? {
    var bytes = bytes[...]
    while bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }

  /// The address, as the file numbers it, of a variable or function of its symbol tables.
  private static func symbol(_ name: StaticString, in file: DebugFile) -> UInt64? {
    for section in file.sections.all
    where section.header.sh_type == SHT_SYMTAB || section.header.sh_type == SHT_DYNSYM {
      guard section.hasContents, let data = elf_getdata(section.handle, nil), let buffer = data.pointee.d_buf,
        let names = file.sections.all.first(where: { elf_ndxscn($0.handle) == Int(section.header.sh_link) })?.bytes
      else { continue }
      let table = UnsafeRawBufferPointer(start: buffer, count: data.pointee.d_size)
      let wanted = name.withUTF8Buffer { Array($0) + [0] }
      for offset in stride(from: 0, to: table.count - 23, by: 24) {
        let nameOffset = Int(table.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        let section = table.loadUnaligned(fromByteOffset: offset + 6, as: UInt16.self)
        guard section != 0, nameOffset < names.count, names[nameOffset...].starts(with: wanted) else { continue }
        return table.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
      }
    }
    return nil
  }

  private static func loadedAddress(ofFunctionAt address: UInt64, in file: DebugFile) -> UInt64? {
    guard let section = file.sections.all.first(where: { $0.hasContents && $0.addresses.contains(address) }) else {
      return nil
    }
    let bytes = section.bytes
    let start = Int(clamping: address - section.addresses.low)
    guard start < bytes.count else { return nil }
    let code = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + 32, bytes.count)])
    // `lea disp32(%rip), %rax`
    for offset in 0..<max(code.count - 6, 0) where code[offset...].starts(with: [0x48, 0x8d, 0x05]) {
      let distance = code.loadUnaligned(fromByteOffset: offset + 3, as: Int32.self)
      return address &+ UInt64(offset + 7) &+ UInt64(bitPattern: Int64(distance))
    }
    // `adrp x0, page`, `add x0, x0, offset`
    for offset in stride(from: 0, to: max(code.count - 7, 0), by: 4) {
      let page = code.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      let add = code.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
      guard page & 0x9f00_001f == 0x9000_0000, add & 0xffc0_03ff == 0x9100_0000 else { continue }
      let immediate = Int64(page >> 5 & 0x7ffff) << 2 | Int64(page >> 29 & 3)
      let pages = (immediate << 43) >> 43
      let base = (address &+ UInt64(offset)) & ~0xfff
      return base &+ UInt64(bitPattern: pages << 12) &+ UInt64(add >> 10 & 0xfff)
    }
    return nil
  }
}
