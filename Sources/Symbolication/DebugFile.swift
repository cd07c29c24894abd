internal import CLibdw
public import CrashModel
private import Glibc

/// An ELF file that is opened as a source of names: the program or library itself, or a file with its debug information.
///
/// Opening reads the headers only. Not thread-safe, as libdw's handles are not: use it on one thread at a time.
///
/// ```swift
/// let file = try DebugFile(path: "/usr/lib/debug/.build-id/ab/cdef.debug")
/// print(file.buildID?.description ?? "none", file.hasDebugInformation)
/// ```
public final class DebugFile {
  /// As it was given; what is not UTF-8 in it, as `\xff`.
  public var path: String { location.description }
  /// The linker's build id; nil where the file has none.
  public let buildID: BuildID?
  /// It has DWARF that can be read.
  public let hasDebugInformation: Bool
  /// Why DWARF that is there cannot be read; nil where there is none or it can.
  public let debugInformationProblem: String?
  /// Why the symbols that are there cannot be read; nil where there are none or they can.
  let symbolsProblem: String?
  /// It has `.symtab`, the full symbol table.
  public let hasSymbolTable: Bool
  /// It has `.dynsym`, the names that the dynamic linker needs.
  public let hasDynamicSymbols: Bool
  /// It has `.gnu_debugdata`: compressed, the symbols that `.dynsym` lacks.
  public let hasMiniDebugInformation: Bool
  /// The address that the file itself gives its first loaded page: 0 for position-independent files.
  public let firstVirtualAddress: UInt64
  /// Where the file says its debug information is (`.gnu_debuglink`).
  public let debugLink: DebugLink?
  /// Where the file says the part of its debug information is that it shares with others (`.gnu_debugaltlink`).
  public let alternateLink: AlternateLink?

  /// A `.gnu_debuglink`.
  public struct DebugLink: Hashable, Sendable {
    /// A file name without a directory.
    public var name: String
    /// CRC-32 of the file that is meant.
    public var checksum: UInt32
  }

  /// A `.gnu_debugaltlink`, written by `dwz -m`.
  public struct AlternateLink: Hashable, Sendable {
    public var path: String
    public var buildID: BuildID?
  }

  /// As it was given, to be opened.
  let location: FilePath
  let handle: ELFHandle
  let sections: ELFSections
  /// The parts that hold code.
  let code: CodeRanges

  /// - Throws: `DebugFileError` where the file is not a regular ELF file for x86-64 or aarch64, or is cut off.
  public convenience init(path: String) throws(DebugFileError) { try self.init(path: FilePath(path)) }

  init(path location: FilePath, watch: ReadingWatch? = nil) throws(DebugFileError) {
    let handle = try ELFHandle(path: location, watch: watch)
    let path = location.description
    var header = GElf_Ehdr()
    guard gelf_getehdr(handle.elf, &header) != nil else {
      throw .damaged(path: path, detail: "its header cannot be read (\(ELFHandle.lastError()))")
    }
    try Self.checkArchitecture(header, path: path)
    try Self.checkLength(header, size: handle.size, path: path)
    guard let sections = ELFSections(handle.elf) else {
      throw .damaged(path: path, detail: "its section headers cannot be read (\(ELFHandle.lastError()))")
    }
    self.location = location
    self.handle = handle
    self.sections = sections
    buildID = handle.buildID
    symbolsProblem = handle.ending(of: .symbols)
    let hasReadableSymbols = symbolsProblem == nil
    hasSymbolTable =
      hasReadableSymbols && sections.all.contains { $0.header.sh_type == SHT_SYMTAB && $0.hasContents }
    hasDynamicSymbols =
      hasReadableSymbols && sections.all.contains { $0.header.sh_type == SHT_DYNSYM && $0.hasContents }
    hasMiniDebugInformation = hasReadableSymbols && !sections.bytes(".gnu_debugdata").isEmpty
    (hasDebugInformation, debugInformationProblem) =
      handle.ending(of: .debugInformation).map { (false, $0) } ?? Self.debugInformation(in: sections)
    let segments = Self.loadedSegments(of: handle.elf)
    // The kernel maps whole pages, so that is where the image begins for the process.
    firstVirtualAddress = (segments.map(\.addresses.low).min() ?? 0) & ~4095
    let codeSections = sections.all.filter {
      $0.header.sh_flags & UInt64(SHF_EXECINSTR | SHF_ALLOC) == UInt64(SHF_EXECINSTR | SHF_ALLOC)
    }
    code = CodeRanges(
      codeSections.isEmpty ? segments.filter(\.isExecutable).map(\.addresses) : codeSections.map(\.addresses))
    var checksum: GElf_Word = 0
    debugLink = dwelf_elf_gnu_debuglink(handle.elf, &checksum).map {
      DebugLink(name: String(cString: $0), checksum: checksum)
    }
    alternateLink = Self.alternateLink(in: sections)
  }

  /// Where the files that this one refers to are looked for. To be set before the debug information is asked for.
  var companions = CompanionSearch()

  /// The sections with debug information, decompressed; nil where they cannot be.
  private(set) lazy var debugSections: DebugSections? = {
    do throws(CompressedSection.Failure) {
      return try DebugSections(handle, sections)
    } catch {
      dwarfProblem = error.reason
      return nil
    }
  }()

  /// Why debug information that is there has turned out not to be readable, in words.
  private(set) var dwarfProblem: String?
  /// What the debug information lacks because another file was not found, in words.
  private var supplementaryProblem: String?

  /// What answers so far lacked because a file that this one refers to was not found, in words.
  var companionProblems: [String] {
    let split = isReadingUnits ? units?.splitUnits.problem : nil
    return [supplementaryProblem, split].compactMap { $0 }.map { "\(path): \($0)" }
  }

  /// Size of the debug information in bytes, to estimate what it takes to read.
  var debugInformationSize: Int {
    hasDebugInformation ? debugSections?.sections.bytes(".debug_info").count ?? 0 : 0
  }

  /// libdw's handle, opened when first asked for; nil where the file has no debug information that libdw can read.
  private(set) lazy var dwarf: DwarfHandle? = {
    guard hasDebugInformation, let debugSections else { return nil }
    guard let dwarf = DwarfHandle(debugSections.handle) else {
      dwarfProblem = "its debug information cannot be read (\(DwarfHandle.lastError()))"
      return nil
    }
    if let alternateLink {
      do throws(SupplementaryFile.Failure) {
        let shared = try SupplementaryFile(for: alternateLink, of: location, in: companions).file
        if let other = shared.dwarf {
          dwarf.setSupplementary(other)
        } else {
          supplementaryProblem =
            "it shares debug information with \(shared.path): \(shared.dwarfProblem ?? "which has none")"
        }
      } catch {
        supplementaryProblem = error.reason
      }
      if supplementaryProblem != nil, let nothing = DwarfHandle.empty { dwarf.setSupplementary(nothing) }
    }
    return dwarf
  }()

  private var isReadingUnits = false

  /// The addresses and lines of the file's debug information; nil where it has none.
  private(set) lazy var units: UnitReader? = {
    isReadingUnits = true
    guard let dwarf, let sections = debugSections?.sections else { return nil }
    return UnitReader(
      dwarf, sections: sections, code: code, splitUnits: SplitUnitSearch(of: location, in: companions))
  }()

  /// The ELF file in `.gnu_debugdata`; nil where there is none, or it cannot be read.
  private(set) lazy var miniDebugInformation: ELFHandle? = {
    guard hasMiniDebugInformation else { return nil }
    do throws(MiniDebugInformation.Failure) {
      return try MiniDebugInformation.open(sections.bytes(".gnu_debugdata"))
    } catch {
      miniDebugInformationProblem = error.reason
      return nil
    }
  }()

  /// Why `.gnu_debugdata` cannot be read, once it was asked for; in words.
  private(set) var miniDebugInformationProblem: String?

  /// How much the file's symbols name.
  enum SymbolCompleteness: Comparable {
    case none, dynamic, mini, full
  }

  /// Reads `.gnu_debugdata`, where it decides.
  private(set) lazy var symbolCompleteness: SymbolCompleteness = {
    if hasSymbolTable { return .full }
    if miniDebugInformation != nil { return .mini }
    return hasDynamicSymbols ? .dynamic : .none
  }()

  /// The functions that the file's symbol table names.
  private(set) lazy var symbols: SymbolTable = {
    handle.willRead(.symbols)
    hasAllSymbols = true
    return SymbolTable(of: self)
  }()

  private var hasAllSymbols = false
  private var partialReadings = 0

  /// The same for some addresses (sorted, without repetitions) and no others: for one report that is most of the time that
  /// a small program takes. Whoever asks again and again, or for many, gets all.
  func symbols(around addresses: [UInt64]) -> SymbolTable {
    guard !hasAllSymbols, addresses.count <= 256, partialReadings < 8 else { return symbols }
    partialReadings += 1
    handle.willRead(.symbols)
    return SymbolTable(of: self, around: addresses)
  }

  private static func checkArchitecture(_ header: GElf_Ehdr, path: String) throws(DebugFileError) {
    let (wordSize, byteOrder) = withUnsafeBytes(of: header.e_ident) {
      (Int32($0[Int(EI_CLASS)]), Int32($0[Int(EI_DATA)]))
    }
    let machine = Int32(header.e_machine)
    if wordSize == ELFCLASS64, byteOrder == ELFDATA2LSB, machine == EM_X86_64 || machine == EM_AARCH64 { return }
    let name = dwelf_elf_e_machine_string(machine).map { String(cString: $0) } ?? "machine \(machine)"
    var detail = wordSize == ELFCLASS64 ? "64-bit" : "32-bit"
    if byteOrder != ELFDATA2LSB { detail += " big-endian" }
    throw .unsupportedArchitecture(path: path, detail: "\(detail) \(name)")
  }

  /// libelf takes a file whose end is missing, and then finds fewer sections than there were.
  private static func checkLength(_ header: GElf_Ehdr, size: Int, path: String) throws(DebugFileError) {
    for (what, offset, count, entry) in [
      ("section headers", header.e_shoff, header.e_shnum, header.e_shentsize),
      ("program headers", header.e_phoff, header.e_phnum, header.e_phentsize),
    ] where offset != 0 {
      // Both factors have 16 bits.
      let (end, overflow) = offset.addingReportingOverflow(UInt64(count) * UInt64(entry))
      if overflow || end > UInt64(size) {
        throw .damaged(
          path: path, detail: "its \(what) would end at byte \(end), but it has only \(size) bytes; it was cut off")
      }
    }
  }

  private static func debugInformation(in sections: ELFSections) -> (Bool, String?) {
    guard sections.all.contains(where: { ($0.name == ".debug_info" || $0.name == ".zdebug_info") && $0.hasContents })
    else { return (false, nil) }
    // DWARF 5's own way to share entries (7.3.6). libdw 0.188 takes a reference to the other file for one to this file, and
    // so finds any name.
    if !sections.bytes(".debug_sup").isEmpty {
      return (
        false,
        "it shares debug information by .debug_sup, which libdw reads wrongly; use .gnu_debugaltlink (dwz without -5)"
      )
    }
    // The headers only; what the bytes are worth is seen when they are decompressed.
    let problem = DebugSections.problem(in: sections)
    return (problem == nil, problem)
  }

  struct Segment {
    var addresses: AddressRange
    var isExecutable: Bool
  }

  private static func loadedSegments(of elf: OpaquePointer) -> [Segment] {
    var count = 0
    guard elf_getphdrnum(elf, &count) == 0 else { return [] }
    var segments: [Segment] = []
    for index in 0..<min(count, 1 << 16) {
      var header = GElf_Phdr()
      guard gelf_getphdr(elf, Int32(index), &header) != nil else { break }
      guard header.p_type == PT_LOAD else { continue }
      segments.append(
        Segment(
          addresses: AddressRange(low: header.p_vaddr, high: header.p_vaddr &+ header.p_memsz),
          isExecutable: header.p_flags & UInt32(PF_X) != 0))
    }
    return segments
  }

  private static func alternateLink(in sections: ELFSections) -> AlternateLink? {
    let bytes = sections.bytes(".gnu_debugaltlink")
    guard let path = bytes.string(at: 0), let end = bytes.firstIndex(of: 0) else { return nil }
    return AlternateLink(path: path, buildID: BuildID(bytes: bytes[(end + 1)...].prefix(256)))
  }
}

extension DebugFile {
  /// It has call frame information, and not only a place for it.
  var hasUnwindInformation: Bool { sections[".eh_frame"]?.hasContents == true }

  /// CRC-32 of the whole file, which takes a read of it.
  var checksum: UInt32 {
    var checksum = Checksum()
    var size = 0
    if let bytes = elf_rawfile(handle.elf, &size) {
      checksum.update(UnsafeRawBufferPointer(start: bytes, count: size))
    }
    return checksum.value
  }
}
