/// Copies of an ELF file with changed bytes.
struct Variants {
  private let original: [UInt8]
  private let parts: [Range<Int>]
  private var state: UInt64

  init(_ original: [UInt8], seed: UInt64) {
    self.original = original
    state = seed
    parts = Variants.parts(of: original)
  }

  /// What is read of an ELF file: its headers, and the sections with names, lines, and what belongs to them.
  private static func parts(of file: [UInt8]) -> [Range<Int>] {
    func number(_ offset: Int, _ width: Int) -> Int {
      guard offset >= 0, offset + width <= file.count else { return 0 }
      let value = file[offset..<offset + width].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return Int(truncatingIfNeeded: value)
    }
    let (table, count, names) = (number(40, 8), number(60, 2), number(62, 2))
    let nameTable = number(table + 64 * names + 24, 8)
    var parts = [0..<64, table..<table + 64 * count]
    for index in 0..<count {
      let row = table + 64 * index
      let start = nameTable + number(row, 4)
      let name = String(decoding: file[start...].prefix { $0 != 0 }, as: UTF8.self)
      let isRead =
        name.hasPrefix(".debug") || name.hasPrefix(".note") || name.hasPrefix(".gnu_debug")
        || [".symtab", ".strtab", ".shstrtab", ".dynsym"].contains(name)
      let (offset, size) = (number(row + 24, 8), number(row + 32, 8))
      if isRead, number(row + 4, 4) != 8, size > 0, offset + size <= file.count { parts.append(offset..<offset + size) }
    }
    return parts
  }

  private mutating func random(_ bound: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % max(bound, 1)
  }

  mutating func next(cut: Bool) -> [UInt8] {
    if cut { return Array(original.prefix(random(original.count))) }
    var file = original
    for _ in 0...random(4) {
      let part = parts[random(parts.count)]
      // Headers of units, tables and sections are at the beginning, and decide most.
      let offset = part.lowerBound + random(random(3) == 0 ? min(64, part.count) : part.count)
      switch random(8) {
      case 0: file[offset] ^= 1 << UInt8(random(8))
      // A number in LEB128 without an end, or with one beyond 64 bits.
      case 1:
        let byte: UInt8 = random(2) == 0 ? 0xff : 0x80
        for index in offset..<min(offset + 1 + random(12), part.upperBound) { file[index] = byte }
      // Whole words, as offsets and lengths are.
      case 2, 3:
        let value: UInt64 =
          [0, 1, UInt64(random(1 << 20)), 0xffff_fff0, .max, 0x7fff_ffff, 1 << 63, UInt64(part.count)][random(8)]
        for (byte, index) in (offset..<min(offset + (random(2) == 0 ? 4 : 8), part.upperBound)).enumerated() {
          file[index] = UInt8(truncatingIfNeeded: value >> UInt64(8 * byte))
        }
      // What stands elsewhere in the same section: an abbreviation, a reference, a row.
      case 4:
        let from = part.lowerBound + random(part.count)
        let size = min(1 + random(32), part.upperBound - max(from, offset))
        for index in 0..<size { file[offset + index] = original[from + index] }
      default: file[offset] = [0, 1, 0x7f, 0x80, 0xff, UInt8(random(256))][random(6)]
      }
    }
    return file
  }
}
