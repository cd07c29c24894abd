internal import CLibdw
internal import CrashModel

/// A file with split units: one of the compiler (`.dwo`), or a package of many (`.dwp`).
final class SplitFile {
  let path: FilePath
  private let debug: DebugSections
  /// Where each unit's parts are; nil for a file of the compiler.
  private let index: PackageIndex?

  /// - Throws: `DebugFileError` for a file that cannot be read or has no split units.
  init(path: FilePath) throws(DebugFileError) {
    self.path = path
    let handle = try ELFHandle(path: path)
    guard let sections = ELFSections(handle.elf) else {
      throw .damaged(path: path.description, detail: "its section headers cannot be read (\(ELFHandle.lastError()))")
    }
    do throws(CompressedSection.Failure) {
      debug = try DebugSections(handle, sections)
    } catch {
      throw .damaged(path: path.description, detail: error.reason)
    }
    guard !debug.sections.bytes(".debug_info.dwo").isEmpty else {
      throw .damaged(path: path.description, detail: "it has no split debug information (.debug_info.dwo)")
    }
    let indexBytes = debug.sections.bytes(".debug_cu_index")
    if indexBytes.isEmpty {
      index = nil
    } else {
      guard let index = PackageIndex(indexBytes) else {
        throw .damaged(path: path.description, detail: "the index of the package (.debug_cu_index) is damaged")
      }
      self.index = index
    }
  }

  /// Whether the sections are those of such a file, and not of a program.
  static func isSplit(_ sections: ELFSections) -> Bool {
    !sections.all.contains { $0.name == ".debug_info" || $0.name == ".zdebug_info" }
      && sections.all.contains { $0.name == ".debug_info.dwo" || $0.name == ".zdebug_info.dwo" }
  }

  var isPackage: Bool { index != nil }

  /// The unit with an id; nil where the file has none.
  func unit(_ id: UInt64) -> SplitUnit? {
    if let index {
      guard let parts = index.parts(of: id, in: whole) else { return nil }
      return SplitUnit(parts, at: 0, of: self).flatMap { $0.id == id ? $0 : nil }
    }
    return firstUnit { $0.id == id }
  }

  /// The ids of the units of a file that is no package.
  var ids: [UInt64] {
    var ids: [UInt64] = []
    _ = firstUnit {
      ids.append($0.id)
      return false
    }
    return ids
  }

  private func firstUnit(where isWanted: (SplitUnit) -> Bool) -> SplitUnit? {
    let all = whole
    var offset = 0
    while offset < all.info.count {
      if let unit = SplitUnit(all, at: offset, of: self), isWanted(unit) { return unit }
      guard let end = UnitHeader.end(all.info, at: offset) else { return nil }
      offset = end
    }
    return nil
  }

  private var whole: SplitUnit.Sections {
    SplitUnit.Sections(
      info: debug.sections.bytes(".debug_info.dwo"), abbreviations: debug.sections.bytes(".debug_abbrev.dwo"),
      lines: debug.sections.bytes(".debug_line.dwo"), stringOffsets: debug.sections.bytes(".debug_str_offsets.dwo"),
      rangeLists: debug.sections.bytes(".debug_rnglists.dwo"), strings: debug.sections.bytes(".debug_str.dwo"))
  }
}

/// The files with split units that were given by name.
///
/// Packages stay open. Of the compiler's files there may be thousands: which units they hold is noted when the first one is
/// asked for, and a file is opened again when one of its units is.
final class GivenSplitFiles {
  private let paths: [FilePath]
  private lazy var contents = read()

  init(_ paths: [FilePath]) { self.paths = paths }

  func unit(_ id: UInt64) -> SplitUnit? {
    if let path = contents.files[id], let unit = (try? SplitFile(path: path))?.unit(id) { return unit }
    for package in contents.packages {
      if let unit = package.unit(id) { return unit }
    }
    return nil
  }

  private func read() -> (packages: [SplitFile], files: [UInt64: FilePath]) {
    var packages: [SplitFile] = []
    var files: [UInt64: FilePath] = [:]
    for path in paths {
      guard let file = try? SplitFile(path: path) else { continue }
      if file.isPackage {
        packages.append(file)
      } else {
        for id in file.ids where files[id] == nil { files[id] = path }
      }
    }
    return (packages, files)
  }
}

/// `.debug_cu_index` of a package: a hash table from a unit's id to a row with its part of each section.
///
/// Version 2 is GNU's, for DWARF 4; version 5 the standard's.
struct PackageIndex {
  /// The columns that are read, by their numbers in the section.
  private enum Column {
    static let info: UInt32 = 1
    static let abbreviations: UInt32 = 3
    static let lines: UInt32 = 4
    static let stringOffsets: UInt32 = 6
    /// Version 5 only; in version 2 the number is that of macros.
    static let rangeLists: UInt32 = 8
  }

  private let bytes: UnsafeRawBufferPointer
  private let version: Int
  private let columns: [UInt32]
  private let rowCount: Int
  private let slotCount: Int
  private let ids: Int
  private let rows: Int
  private let offsets: Int
  private let sizes: Int

  /// - Returns: nil where the tables would not fit in the section, or the number of slots is no power of two.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var cursor = ByteCursor(bytes)
    // Two bytes and two of padding in version 5, four before.
    let first = cursor.u32()
    version = Int(first & 0xffff)
    let columnCount = Int(cursor.u32())
    rowCount = Int(cursor.u32())
    slotCount = Int(cursor.u32())
    guard !cursor.failed, version == 2 || version == 5, first >> 16 == 0, (1...16).contains(columnCount),
      slotCount > 0, slotCount & (slotCount - 1) == 0
    else { return nil }
    // Each factor has 32 bits, so that nothing here can overflow.
    ids = cursor.offset
    rows = ids + slotCount * 8
    let header = rows + slotCount * 4
    offsets = header + columnCount * 4
    sizes = offsets + rowCount * columnCount * 4
    guard sizes + rowCount * columnCount * 4 <= bytes.count else { return nil }
    self.bytes = bytes
    cursor = ByteCursor(bytes, at: header)
    var columns: [UInt32] = []
    for _ in 0..<columnCount { columns.append(cursor.u32()) }
    self.columns = columns
  }

  /// The unit's parts of the package's sections; the strings are shared. Nil where the package has no such unit, or a part
  /// lies outside of its section.
  func parts(of id: UInt64, in whole: SplitUnit.Sections) -> SplitUnit.Sections? {
    guard let row = row(of: id) else { return nil }
    var parts = whole
    parts.lines = Self.none
    parts.stringOffsets = Self.none
    parts.rangeLists = Self.none
    var hasInfo = false
    for (number, column) in columns.enumerated() {
      let at = (row * columns.count + number) * 4
      let offset = Int(word(offsets + at))
      let size = Int(word(sizes + at))
      func part(_ section: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard offset <= section.count, size <= section.count - offset else { return nil }
        return UnsafeRawBufferPointer(rebasing: section[offset..<offset + size])
      }
      switch column {
      case Column.info:
        guard let found = part(whole.info) else { return nil }
        parts.info = found
        hasInfo = true
      case Column.abbreviations:
        guard let found = part(whole.abbreviations) else { return nil }
        parts.abbreviations = found
      case Column.lines: parts.lines = part(whole.lines) ?? Self.none
      case Column.stringOffsets: parts.stringOffsets = part(whole.stringOffsets) ?? Self.none
      case Column.rangeLists where version == 5: parts.rangeLists = part(whole.rangeLists) ?? Self.none
      default: break
      }
    }
    return hasInfo ? parts : nil
  }

  private static var none: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

  /// The unit's row, counted from 0.
  private func row(of id: UInt64) -> Int? {
    let mask = UInt64(slotCount - 1)
    var slot = id & mask
    // Odd, and so visits all slots before it comes to one again.
    let step = (id >> 32) & mask | 1
    for _ in 0..<slotCount {
      let row = word(rows + Int(slot) * 4)
      if row == 0 { return nil }
      if bytes.loadUnaligned(fromByteOffset: ids + Int(slot) * 8, as: UInt64.self).littleEndian == id {
        return row <= UInt32(clamping: rowCount) ? Int(row) - 1 : nil
      }
      slot = (slot &+ step) & mask
    }
    return nil
  }

  /// - Parameter offset: within the tables, whose size was checked.
  private func word(_ offset: Int) -> UInt32 {
    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}
