private import CCrashFormat

/// The sections of a record that hold together: in bounds, committed, with a matching checksum.
struct SectionTable {
  private var sections: [UInt32: RecordBytes] = [:]
  /// What was wrong with the others, as sentences.
  private(set) var notes: [String] = []

  /// - Parameters:
  ///   - count: rows to read, at most `CRASH_RECORD_MAX_SECTIONS`.
  ///   - crashed: whether sections that are written at a crash are to be expected.
  init(file: RecordBytes, count: Int, crashed: Bool) {
    let rowSize = MemoryLayout<crash_record_section>.size
    var taken: [(range: Range<UInt64>, type: UInt32)] = []
    var listed: Set<UInt32> = []
    for index in 0..<min(count, Int(CRASH_RECORD_MAX_SECTIONS)) {
      guard let row: crash_record_section = file.load(CRASH_HEADER_SECTIONS_OFFSET + index * rowSize)
      else { break }
      guard let name = Self.name(row.type) else { continue }
      listed.insert(row.type)
      guard row.commit == CRASH_SECTION_COMMITTED else {
        if row.commit != CRASH_SECTION_OPEN {
          notes.append("The section \(name) is damaged: its commit word is \(Hex.prefixed(UInt64(row.commit))).")
        } else if crashed || Self.isWrittenAtStart(row.type) {
          notes.append("The section \(name) was not finished.")
        }
        continue
      }
      let (end, overflow) = row.offset.addingReportingOverflow(row.capacity)
      guard !overflow, row.offset >= UInt64(CRASH_RECORD_HEADER_SIZE),
        row.offset % UInt64(CRASH_RECORD_HEADER_SIZE) == 0, row.length <= row.capacity
      else {
        notes.append(
          "The section \(name) is damaged: \(row.length) of \(row.capacity) bytes at offset \(row.offset) cannot be.")
        continue
      }
      if let other = taken.first(where: { $0.range.overlaps(row.offset..<end) }) {
        notes.append("The section \(name) is damaged: it overlaps \(Self.name(other.type) ?? "another one").")
        continue
      }
      guard let offset = Int(exactly: row.offset), let length = Int(exactly: row.length),
        let bytes = file.slice(offset, length)
      else {
        notes.append("The section \(name) lies behind the end of the file, which was cut.")
        continue
      }
      guard sections[row.type] == nil else {
        notes.append("The section \(name) is there twice; the first one was used.")
        continue
      }
      // By type, not by the flag in the file: a flipped bit there must not switch the check off.
      if !Self.isLive(row.type) {
        guard crash_record_checksum(0, bytes.buffer.baseAddress, bytes.count) == row.checksum else {
          notes.append("The section \(name) is damaged: its checksum does not match.")
          continue
        }
      }
      taken.append((row.offset..<end, row.type))
      sections[row.type] = bytes
    }
    // Every writer of this version lists all of these, used or not. A row whose type was damaged looks like that of a
    // section that is not known here, and what it held would be missed in silence.
    for type in CRASH_SECTION_PROCESS.rawValue...CRASH_SECTION_RUN.rawValue where !listed.contains(type) {
      guard crashed || Self.isWrittenAtStart(type), let name = Self.name(type) else { continue }
      notes.append("The section \(name) is missing.")
    }
  }

  /// The bytes of a section of the type `CRASH_SECTION_…`; nil where it is missing or not to be trusted.
  subscript(_ type: UInt32) -> RecordBytes? { sections[type] }

  /// nil for a section that this reader does not know, which it skips.
  private static func name(_ type: UInt32) -> String? {
    switch crash_record_section_type(rawValue: type) {
    case CRASH_SECTION_PROCESS: "process"
    case CRASH_SECTION_SCOPE: "scope"
    case CRASH_SECTION_BREADCRUMBS: "breadcrumbs"
    case CRASH_SECTION_IMAGES: "images"
    case CRASH_SECTION_PATHS: "paths"
    case CRASH_SECTION_SIGNAL: "signal"
    case CRASH_SECTION_THREADS: "threads"
    case CRASH_SECTION_FRAMES: "frames"
    case CRASH_SECTION_REGISTERS: "registers"
    case CRASH_SECTION_MESSAGES: "messages"
    case CRASH_SECTION_NOTES: "notes"
    case CRASH_SECTION_TASK: "task"
    case CRASH_SECTION_OTHER_THREADS: "other threads"
    case CRASH_SECTION_OTHER_FRAMES: "other frames"
    case CRASH_SECTION_OTHER_REGISTERS: "other registers"
    case CRASH_SECTION_RUN: "run"
    default: nil
    }
  }

  private static func isLive(_ type: UInt32) -> Bool {
    type == CRASH_SECTION_SCOPE.rawValue || type == CRASH_SECTION_BREADCRUMBS.rawValue
      || type == CRASH_SECTION_RUN.rawValue
  }

  private static func isWrittenAtStart(_ type: UInt32) -> Bool {
    type <= CRASH_SECTION_PATHS.rawValue || type == CRASH_SECTION_RUN.rawValue
  }
}
