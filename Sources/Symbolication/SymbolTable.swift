internal import CLibdw
private import Glibc

/// The functions of an ELF file's symbol table, by address.
///
/// `.symtab`; where a file has none, `.dynsym` and what `.gnu_debugdata` adds to it. Read once, when first asked: a batch whose
/// functions all have debug information never pays for it. A symbol takes 24 bytes; names stay in the file until one is asked
/// for.
struct SymbolTable {
  private struct Symbol {
    var address: UInt64
    /// 0 where the symbol does not say.
    var size: UInt64
    /// Offset in the string table.
    var name: UInt32
    /// Lower is better, among symbols of one address.
    var rank: UInt8
    /// Index in `names`.
    var table: UInt8
  }

  /// Sorted by address, one for each.
  private let symbols: [Symbol]
  /// The string tables.
  private let names: [UnsafeRawBufferPointer]
  private let code: CodeRanges
  // The names lie in their memory.
  private let handles: [ELFHandle]

  /// - Parameter addresses: sorted, without repetitions; only `name(of:)` of these is to be asked. Nil for all. To sort
  ///   all symbols takes longer than to look each of them up among some addresses.
  init(of file: DebugFile, around addresses: [UInt64]? = nil) {
    code = file.code
    var sources: [(handle: ELFHandle, sections: ELFSections)] = [(file.handle, file.sections)]
    if !file.hasSymbolTable, let mini = file.miniDebugInformation, let sections = ELFSections(mini.elf) {
      sources.append((mini, sections))
    }
    handles = sources.map(\.handle)
    var names: [UnsafeRawBufferPointer] = []
    var symbols: [Symbol] = []
    var nearest = addresses.map { NearestSymbols($0) }
    for source in sources {
      guard let table = Self.table(in: source.sections) else { continue }
      Self.forEachFunction(
        in: table.symbols, names: table.names, table: UInt8(clamping: names.count), code: file.code
      ) { symbol in
        if nearest == nil { symbols.append(symbol) } else { nearest?.add(symbol) }
      }
      names.append(table.names)
    }
    self.names = names
    self.symbols = Self.sorted(nearest?.all ?? symbols)
  }

  /// For each of some addresses, the symbols that `name(of:)` may look at.
  private struct NearestSymbols {
    private let addresses: [UInt64]
    /// Those between an address and the one before it, highest first; one for each address of code.
    private var before: [[Symbol]]
    /// For each address: what lies below is not among its nearest.
    private var least: [UInt64]

    init(_ addresses: [UInt64]) {
      self.addresses = addresses
      before = Array(repeating: [], count: addresses.count)
      least = Array(repeating: 0, count: addresses.count)
    }

    mutating func add(_ symbol: Symbol) {
      let index = addresses.partitioningIndex { $0 >= symbol.address }
      guard index < addresses.count, symbol.address >= least[index] else { return }
      let place = before[index].firstIndex { $0.address <= symbol.address } ?? before[index].count
      if place < before[index].count, before[index][place].address == symbol.address {
        if SymbolTable.isBefore(symbol, before[index][place]) { before[index][place] = symbol }
        return
      }
      guard place < SymbolTable.stepLimit else { return }
      if before[index].count == SymbolTable.stepLimit { before[index].removeLast() }
      before[index].insert(symbol, at: place)
      if before[index].count == SymbolTable.stepLimit, let last = before[index].last { least[index] = last.address }
    }

    var all: [Symbol] { before.flatMap { $0 } }
  }

  /// Stable by the place in the table, so that the choice among aliases is the same in every run.
  private static func isBefore(_ left: Symbol, _ right: Symbol) -> Bool {
    (left.address, left.rank, left.table, left.name) < (right.address, right.rank, right.table, right.name)
  }

  /// Symbols with sizes may nest (a local entry point within a function), so one step back is not always enough; eight are
  /// more than any nesting seen.
  private static let stepLimit = 8

  private static func table(
    in sections: ELFSections
  ) -> (symbols: UnsafeRawBufferPointer, names: UnsafeRawBufferPointer)? {
    let tables = sections.all.filter { $0.hasContents }
    let table =
      tables.first { $0.header.sh_type == SHT_SYMTAB } ?? tables.first { $0.header.sh_type == SHT_DYNSYM }
    guard let table, let data = elf_getdata(table.handle, nil), let buffer = data.pointee.d_buf,
      let strings = sections.all.first(where: { elf_ndxscn($0.handle) == Int(table.header.sh_link) }),
      !strings.bytes.isEmpty
    else { return nil }
    return (UnsafeRawBufferPointer(start: buffer, count: data.pointee.d_size), strings.bytes)
  }

  private static func forEachFunction(
    in bytes: UnsafeRawBufferPointer, names: UnsafeRawBufferPointer, table: UInt8, code: CodeRanges,
    _ body: (Symbol) -> Void
  ) {
    let stride = MemoryLayout<Elf64_Sym>.size
    for index in 0..<bytes.count / stride {
      let symbol = bytes.loadUnaligned(fromByteOffset: index &* stride, as: Elf64_Sym.self)
      let type = Int32(symbol.st_info & 15)
      guard type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE, symbol.st_shndx != SHN_UNDEF,
        symbol.st_name != 0, code.range(of: symbol.st_value) != nil
      else { continue }
      if type == STT_NOTYPE, isMarker(names, at: Int(symbol.st_name)) { continue }
      let isLocal = Int32(symbol.st_info >> 4) == STB_LOCAL
      body(
        Symbol(
          address: symbol.st_value, size: symbol.st_size, name: symbol.st_name,
          rank: (type == STT_NOTYPE ? 4 : 0) | (isLocal ? 2 : 0) | (symbol.st_size == 0 ? 1 : 0), table: table))
    }
  }

  /// One symbol for each address.
  private static func sorted(_ symbols: [Symbol]) -> [Symbol] {
    var symbols = symbols
    symbols.sort(by: isBefore)
    var kept = 0
    for symbol in symbols where kept == 0 || symbols[kept - 1].address != symbol.address {
      symbols[kept] = symbol
      kept += 1
    }
    // A copy, and so without the room that growing took.
    return Array(symbols[..<kept])
  }

  /// Whether the name is one of the marks that aarch64 assemblers set (`$x` code, `$d` data), or a local label.
  private static func isMarker(_ names: UnsafeRawBufferPointer, at offset: Int) -> Bool {
    guard offset < names.count - 2 else { return false }
    let (first, second, third) = (names[offset], names[offset + 1], names[offset + 2])
    if first == UInt8(ascii: "$"), second == UInt8(ascii: "x") || second == UInt8(ascii: "d") {
      return third == 0 || third == UInt8(ascii: ".")
    }
    return first == UInt8(ascii: ".") && second == UInt8(ascii: "L")
  }

  /// The first address above `address` at which `name(of:)` may change its answer; nil where there is none.
  func nextChange(after address: UInt64) -> UInt64? {
    let index = symbols.partitioningIndex { $0.address > address }
    var next = index < symbols.count ? symbols[index].address : UInt64.max
    // The ends of those that `name(of:)` looks at.
    for symbol in symbols[max(0, index - 9)..<index] {
      let end = symbol.size > 0 ? symbol.address &+ symbol.size : code.range(of: symbol.address)?.high ?? 0
      if end > address { next = min(next, end) }
    }
    return next == .max ? nil : next
  }

  /// The linker's name of the function that `address` lies in; nil where no symbol covers it.
  func name(of address: UInt64) -> String? {
    var index = symbols.partitioningIndex { $0.address > address }
    for step in 0..<Self.stepLimit where index > 0 {
      index -= 1
      let symbol = symbols[index]
      let offset = address &- symbol.address
      // A symbol without a size (assembly) reaches up to the next one, whether that says where it ends or not, but not into
      // another section: the first stub of `.plt` is not the last function of `.init`.
      let covers =
        symbol.size > 0
        ? offset < symbol.size : step == 0 && code.range(of: symbol.address)?.contains(address) == true
      if covers { return names[Int(symbol.table)].string(at: Int(symbol.name)) }
      if symbol.size == 0 { return nil }
    }
    return nil
  }
}
