internal import CLibdw
public import CrashModel
private import Glibc

/// What an ELF file holds of what names are made from, and what it is good for.
///
/// Reads headers and tables of contents, no names and no lines; no other file is opened but those that the file's own links
/// name, and of them only the build id. A value; thread-safe.
///
/// ```swift
/// let contents = try DebugFileContents(path: ".build/release/orderd")
/// print(contents.isUsable ? "usable" : contents.remarks.joined(separator: "; "))
/// ```
public struct DebugFileContents: Hashable, Sendable {
  /// What kind of file the linker or compiler meant it to be.
  public enum Kind: String, Hashable, Sendable {
    case program, library
    /// Only what a debugger wants, its code was left out (`objcopy --only-keep-debug`).
    case debugFile = "debug file"
    /// Not linked yet.
    case object
    case core
  }

  /// The best names that can be had from the file.
  public enum Names: String, Hashable, Sendable, Comparable {
    case none
    /// Of functions that other files may call (`.dynsym`).
    case exported
    /// Of all functions, without lines.
    case functions
    /// Of functions, inlined ones included, with files and lines.
    case lines

    private var rank: Int {
      switch self {
      case .none: 0
      case .exported: 1
      case .functions: 2
      case .lines: 3
      }
    }

    public static func < (left: Names, right: Names) -> Bool { left.rank < right.rank }
  }

  /// DWARF that is there, readable or not.
  public struct DebugInformation: Hashable, Sendable {
    /// Compilation units; 0 where they cannot be read.
    public var units: Int
    /// 2 to 5, sorted.
    public var versions: [Int]
    /// Sorted; what has no name here is left out.
    public var languages: [String]
    /// Units whose functions stand in `.dwo` files.
    public var splitUnits: Int
    /// Why it cannot be read, or not to its end.
    public var problem: String?
  }

  public struct CompressedSection: Hashable, Sendable {
    public var name: String
    /// `zlib`, `zstd`, `zlib-gnu` (of `.zdebug_…` sections), or `method N`.
    public var method: String
  }

  /// Another file that holds a part.
  public struct Link: Hashable, Sendable {
    /// A name for `.gnu_debuglink`, a path for `.gnu_debugaltlink`.
    public var name: String
    /// Of the `.gnu_debuglink`'s file.
    public var checksum: UInt32?
    /// Of the `.gnu_debugaltlink`'s file.
    public var buildID: BuildID?
    /// Where the right file lies; nil where it does not lie at the usual places.
    public var found: String?
  }

  public var buildID: BuildID?
  /// `x86-64` or `aarch64`.
  public var architecture: String
  public var kind: Kind
  /// In bytes.
  public var size: Int
  /// The machine code itself is in it.
  public var hasCode: Bool
  /// Some of it was written in Swift.
  public var isSwift: Bool
  public var debugInformation: DebugInformation?
  public var hasLineTable: Bool
  /// Entries of `.symtab`; nil without one.
  public var symbols: Int?
  /// Entries of `.dynsym`; nil without one.
  public var dynamicSymbols: Int?
  /// `.eh_frame`, `.eh_frame_hdr`, `.debug_frame`: those that are there.
  public var unwindTables: [String]
  public var compressedSections: [CompressedSection]
  public var debugLink: Link?
  public var alternateLink: Link?
  /// Bytes of `.gnu_debugdata`, a compressed symbol table; nil without one.
  public var miniDebugInformation: Int?

  /// Looks at a file.
  ///
  /// - Throws: `DebugFileError` where it is no regular ELF file for x86-64 or aarch64, or is cut off.
  public init(path: String) throws(DebugFileError) { try self.init(path: FilePath(path)) }

  /// - Parameter readsUnits: whether to look into the debug information and for the files that links name. Otherwise that
  ///   it is there is all that is known of it, and nothing is decompressed.
  package init(path: FilePath, readsUnits: Bool = true) throws(DebugFileError) {
    let file = try DebugFile(path: path)
    var header = GElf_Ehdr()
    guard gelf_getehdr(file.handle.elf, &header) != nil else {
      throw .damaged(path: file.path, detail: "its header cannot be read (\(ELFHandle.lastError()))")
    }
    let sections = file.sections
    buildID = file.buildID
    architecture = Int32(header.e_machine) == EM_AARCH64 ? "aarch64" : "x86-64"
    size = file.handle.size
    hasCode = Self.hasCode(sections, file.handle.elf)
    kind = Self.kind(header, hasCode: hasCode, file)
    // As they lie in the file.
    compressedSections = Self.compressedSections(sections)
    isSwift = sections.all.contains { $0.name.hasPrefix("swift5_") }
    hasLineTable = sections.all.contains { [".debug_line", ".zdebug_line"].contains($0.name) && $0.hasContents }
    symbols = Self.count(Int(SHT_SYMTAB), sections)
    dynamicSymbols = Self.count(Int(SHT_DYNSYM), sections)
    unwindTables = [".eh_frame", ".eh_frame_hdr", ".debug_frame"].filter { sections[$0]?.hasContents == true }
    miniDebugInformation = sections[".gnu_debugdata"].flatMap {
      $0.hasContents ? Int(clamping: $0.header.sh_size) : nil
    }
    debugInformation = Self.debugInformation(of: file, readsUnits: readsUnits)
    if debugInformation?.languages.contains("Swift") == true { isSwift = true }
    debugLink = file.debugLink.map { link in
      Link(
        name: link.name, checksum: link.checksum,
        found: readsUnits ? Self.find(link, beside: path, buildID: file.buildID)?.description : nil)
    }
    alternateLink = file.alternateLink.map { link in
      Link(
        name: link.path, buildID: link.buildID,
        found: readsUnits ? Self.find(link, beside: path)?.description : nil)
    }
  }

  private static func kind(_ header: GElf_Ehdr, hasCode: Bool, _ file: DebugFile) -> Kind {
    switch Int32(header.e_type) {
    case ET_REL: return .object
    case ET_CORE: return .core
    case _ where !hasCode: return .debugFile
    case ET_EXEC: return .program
    default:
      // Both are shared objects since programs are position-independent, and both may have an entry: libc can be run. What
      // has a name for others to be linked with is a library.
      return header.e_entry != 0 && !hasSharedName(file.sections) ? .program : .library
    }
  }

  private static func hasSharedName(_ sections: ELFSections) -> Bool {
    guard let section = sections.all.first(where: { Int($0.header.sh_type) == Int(SHT_DYNAMIC) && $0.hasContents }),
      let data = elf_getdata(section.handle, nil)
    else { return false }
    for index in 0..<Int32(clamping: section.header.sh_size / UInt64(MemoryLayout<Elf64_Dyn>.size)) {
      var entry = GElf_Dyn()
      guard gelf_getdyn(data, index, &entry) != nil, Int(entry.d_tag) != Int(DT_NULL) else { return false }
      if Int(entry.d_tag) == Int(DT_SONAME) { return true }
    }
    return false
  }

  private static func hasCode(_ sections: ELFSections, _ elf: OpaquePointer) -> Bool {
    let flags = UInt64(SHF_EXECINSTR | SHF_ALLOC)
    let code = sections.all.filter { $0.header.sh_flags & flags == flags }
    if !code.isEmpty { return code.contains(where: \.hasContents) }
    // Without section headers the segments tell.
    var count = 0
    guard elf_getphdrnum(elf, &count) == 0 else { return false }
    for index in 0..<min(count, 1 << 16) {
      var header = GElf_Phdr()
      guard gelf_getphdr(elf, Int32(index), &header) != nil else { return false }
      if header.p_type == PT_LOAD, header.p_flags & UInt32(PF_X) != 0, header.p_filesz > 0 { return true }
    }
    return false
  }

  private static func count(_ type: Int, _ sections: ELFSections) -> Int? {
    guard let section = sections.all.first(where: { Int($0.header.sh_type) == type && $0.hasContents }) else {
      return nil
    }
    // The first entry is the one that means none.
    let entries = section.header.sh_size / UInt64(MemoryLayout<Elf64_Sym>.size)
    return Int(clamping: entries > 0 ? entries - 1 : 0)
  }

  private static func compressedSections(_ sections: ELFSections) -> [CompressedSection] {
    sections.all.compactMap { section in
      guard section.hasContents else { return nil }
      if section.name.hasPrefix(".zdebug_") { return CompressedSection(name: section.name, method: "zlib-gnu") }
      guard section.header.sh_flags & UInt64(SHF_COMPRESSED) != 0 else { return nil }
      var header = GElf_Chdr()
      guard gelf_getchdr(section.handle, &header) != nil else {
        return CompressedSection(name: section.name, method: "a damaged header")
      }
      // 2 is zstd, which the header of this libelf does not know.
      let method =
        header.ch_type == ELFCOMPRESS_ZLIB ? "zlib" : header.ch_type == 2 ? "zstd" : "method \(header.ch_type)"
      return CompressedSection(name: section.name, method: method)
    }
  }

  private static func debugInformation(of file: DebugFile, readsUnits: Bool) -> DebugInformation? {
    let isThere = file.sections.all.contains {
      [".debug_info", ".zdebug_info"].contains($0.name) && $0.hasContents
    }
    guard isThere else { return nil }
    var information = DebugInformation(units: 0, versions: [], languages: [], splitUnits: 0)
    information.problem = file.debugInformationProblem
    guard readsUnits, file.hasDebugInformation else { return information }
    // Decompressed, and not opened by libdw, which would ask for the files that it shares entries with.
    guard let sections = file.debugSections?.sections else {
      information.problem = file.dwarfProblem
      return information
    }
    let census = UnitCensus(sections)
    information.units = census.count
    information.versions = census.versions.sorted()
    information.languages = Set(census.languages.compactMap(UnitCensus.name)).sorted()
    information.splitUnits = census.splitCount
    information.problem = census.damage
    return information
  }

  // MARK: Links

  private static func find(_ link: DebugFile.DebugLink, beside path: FilePath, buildID: BuildID?) -> FilePath? {
    guard !link.name.contains("/"), !link.name.isEmpty else { return nil }
    let directory = (RealPath.of(path) ?? path).directory
    let places = [
      directory.appending(link.name), directory.appending(".debug/" + link.name),
      FilePath(bytes: Array("/usr/lib/debug".utf8) + directory.bytes).appending(link.name),
    ]
    return places.first { place in
      guard let file = try? DebugFile(path: place) else { return false }
      // The checksum takes a read of the whole file; the build id says the same.
      return buildID == nil ? file.checksum == link.checksum : file.buildID == buildID
    }
  }

  private static func find(_ link: DebugFile.AlternateLink, beside path: FilePath) -> FilePath? {
    guard !link.path.isEmpty, let id = link.buildID else { return nil }
    let text = id.description
    let directory = (RealPath.of(path) ?? path).directory
    let places = [
      link.path.hasPrefix("/") ? FilePath(link.path) : directory.appending(link.path),
      FilePath("/usr/lib/debug/.build-id/\(text.prefix(2))/\(text.dropFirst(2)).debug"),
    ]
    return places.first { (try? ELFHandle(path: $0))?.buildID == id }
  }
}

// MARK: The judgement

extension DebugFileContents {
  /// What can be had from the file itself, whoever it belongs to.
  public var names: Names {
    if let debugInformation, debugInformation.units > 0 { return hasLineTable ? .lines : .functions }
    if symbols != nil || miniDebugInformation != nil { return .functions }
    return dynamicSymbols != nil ? .exported : .none
  }

  /// It names every function of the image with its build id.
  public var isUsable: Bool {
    buildID != nil && (kind == .program || kind == .library || kind == .debugFile) && names >= .functions
  }

  /// How code is told to its readers: what is missing, why, and what to do about it. Empty where nothing is.
  public var remarks: [String] {
    switch kind {
    case .core: return ["it is the memory of a process, and names nothing; give the program that ran"]
    case .object:
      return ["it is not linked yet, so that its addresses are not those of a process; give what was linked from it"]
    case .program, .library, .debugFile: break
    }
    var remarks: [String] = []
    if buildID == nil {
      remarks.append(
        "it has no build id, so that no crash can be told to be of it; link it with -Xlinker --build-id (swift build, "
          + "swiftc) or -Wl,--build-id (gcc, clang) and ship that build")
    }
    remarks += remarksOnDebugInformation
    if kind != .debugFile, !unwindTables.contains(".eh_frame") {
      remarks.append(
        "it has no unwind table that is there at run time, so that stacks end in it; compile it without "
          + "-fno-asynchronous-unwind-tables")
    }
    if debugInformation != nil, let alternateLink, alternateLink.found == nil {
      remarks.append(
        "a part of its debug information is in \(alternateLink.name)"
          + (alternateLink.buildID.map { " (build id \($0))" } ?? "")
          + ", which is not there; put it there, or into /usr/lib/debug/.build-id")
    }
    return remarks
  }

  private var remarksOnDebugInformation: [String] {
    guard let debugInformation else { return [whyWithoutDebugInformation] }
    var remarks: [String] = []
    if let problem = debugInformation.problem {
      remarks.append(
        "its debug information cannot be read\(debugInformation.units > 0 ? " to its end" : ""): \(problem)")
    } else if debugInformation.units == 0 {
      remarks.append("its debug information has no units; compile it with -g")
    }
    if !hasLineTable {
      remarks.append("its debug information has no line table, so that functions have no lines; compile it with -g")
    }
    if debugInformation.splitUnits > 0 {
      remarks.append(
        "the functions of \(debugInformation.splitUnits) of its units are in .dwo files, which have to lie where they were "
          + "compiled, or in a .dwp beside it")
    }
    if isSwift, debugInformation.units > 0, !debugInformation.languages.isEmpty,
      !debugInformation.languages.contains("Swift")
    {
      remarks.append(
        "its Swift code was compiled without -g: lines are of \(debugInformation.languages.joined(separator: " and ")) code only"
      )
    }
    return remarks
  }

  private var whyWithoutDebugInformation: String {
    if let debugLink {
      if let found = debugLink.found { return "its debug information is in \(found); give that file" }
      return "its debug information is in a file \(debugLink.name), which is not beside it; give that file"
    }
    if symbols != nil {
      return
        "it was compiled without -g\(isSwift ? " (swift build adds it in both configurations)" : "") or stripped of "
        + "debug information (strip --strip-debug), so that functions have names and no lines, and inlined ones are missing"
    }
    if miniDebugInformation != nil {
      return
        "it is stripped and has the names of its functions in .gnu_debugdata, without lines; give the file as it was "
        + "before strip, or its debug file"
    }
    if let dynamicSymbols {
      return "it is stripped: of its functions only those have names that other files may call "
        + "(\(dynamicSymbols) dynamic symbols); "
        + "give the file as it was before strip, or its debug file"
    }
    return "it is stripped, and names nothing; give the file as it was before strip, or its debug file"
  }
}
