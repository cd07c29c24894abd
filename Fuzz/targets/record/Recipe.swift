// A file of the record's format in few bytes.
//
//   0     crash state      1     run state      2     machine: even x86-64, odd aarch64; from 128 on unknown
//   3…    steps: kind, flags, length (2 bytes), that many bytes
//         kind 0–31   a section of this type. Flags: 1 wrong checksum, 2 not committed, 4 another commit word,
//                     8 as short as it is (else grown with zeros to the size that its type has), 16 overlaps the
//                     section before it, 32 at least 32 KB
//         kind 240    offset (2 bytes) and bytes that replace the header's, before it is sealed; 241 after
//         kind 242    3 bytes: the length that the file is cut to
// Fuzz/make-seeds makes recipes from records.

import CCrashFormat
import CrashModel

/// One step of a recipe.
struct Step {
  /// Of the bytes in front of the first one.
  static let start = 3
  /// Of the bytes in front of what a step holds.
  static let headSize = 4

  var kind: UInt8
  var flags: UInt8
  var bytes: UnsafeRawBufferPointer

  /// The last one ends with the input, whatever its length says.
  static func all(in input: UnsafeRawBufferPointer) -> [Step] {
    var steps: [Step] = []
    var position = start
    while position + headSize <= input.count {
      let length = Int(input[position + 2]) | Int(input[position + 3]) << 8
      let bytes = UnsafeRawBufferPointer(rebasing: input[(position + headSize)...].prefix(length))
      steps.append(Step(kind: input[position], flags: input[position + 1], bytes: bytes))
      position += headSize + bytes.count
    }
    return steps
  }
}

/// What a record's file is made from.
struct Recipe {
  private struct Section {
    var type: UInt32
    var flags: UInt8
    var bytes: UnsafeRawBufferPointer

    /// What a writer gives it at least.
    var length: Int {
      if flags & 8 != 0 { return bytes.count }
      if flags & 32 != 0 { return max(bytes.count, 0x8000) }
      let usual =
        switch crash_record_section_type(rawValue: type) {
        case CRASH_SECTION_PROCESS: CRASH_PROCESS_SIZE
        case CRASH_SECTION_SCOPE: CRASH_SCOPE_SIZE
        case CRASH_SECTION_BREADCRUMBS: CRASH_BREADCRUMBS_SIZE
        case CRASH_SECTION_TASK: CRASH_TASK_SIZE
        case CRASH_SECTION_MESSAGES: (bytes.count + CRASH_MESSAGE_SIZE - 1) / CRASH_MESSAGE_SIZE * CRASH_MESSAGE_SIZE
        default: 0
        }
      return max(bytes.count, usual)
    }
  }

  private var sections: [Section] = []
  private var patches: [(isSealed: Bool, bytes: UnsafeRawBufferPointer)] = []
  private var cut: Int?
  private let crashState: UInt32
  private let runState: UInt32
  private let machine: UInt32

  init?(_ input: UnsafeRawBufferPointer) {
    guard input.count >= 3 else { return nil }
    crashState = UInt32(input[0])
    runState = UInt32(input[1])
    machine = input[2] >= 128 ? 1 : input[2].isMultiple(of: 2) ? 62 : 183
    for step in Step.all(in: input) {
      switch step.kind {
      case ..<32 where sections.count < CRASH_RECORD_MAX_SECTIONS:
        sections.append(Section(type: UInt32(step.kind), flags: step.flags, bytes: step.bytes))
      case 240, 241: patches.append((step.kind == 241, step.bytes))
      case 242 where step.bytes.count >= 3:
        cut = Int(step.bytes[0]) | Int(step.bytes[1]) << 8 | Int(step.bytes[2]) << 16
      default: break
      }
    }
  }

  func withFile(_ body: (UnsafeRawBufferPointer) -> Void) {
    let page = CrashRecord.headerSize
    var offsets: [Int] = []
    var size = page
    for section in sections {
      let before = section.flags & 16 != 0 ? offsets.last : nil
      offsets.append(before ?? size)
      size = max(size, (before ?? size) + max(1, (section.length + page - 1) / page) * page)
    }
    let file = Sheet.take(size)
    var written: [Range<Int>] = [0..<page]
    for (section, offset) in zip(sections, offsets) where !section.bytes.isEmpty {
      UnsafeMutableRawBufferPointer(rebasing: file[offset...]).copyMemory(from: section.bytes)
      written.append(offset..<offset + section.bytes.count)
    }
    var header = crash_record_header()
    withUnsafeMutableBytes(of: &header.magic) { $0.copyBytes(from: CrashRecord.magic.utf8) }
    header.version = CrashRecord.version
    header.header_size = UInt32(page)
    header.file_size = UInt64(size)
    header.architecture = machine
    header.section_count = UInt32(sections.count)
    header.run_state = runState
    header.crash_state = crashState
    header.crash_thread = 1
    file.storeBytes(of: header, as: crash_record_header.self)
    for (index, (section, offset)) in zip(sections, offsets).enumerated() {
      let length = section.length
      // None is looked at in what changes while the program runs.
      let isLive = section.type == CRASH_SECTION_SCOPE.rawValue || section.type == CRASH_SECTION_BREADCRUMBS.rawValue
      let sum = isLive ? 0 : checksum(file.baseAddress?.advanced(by: offset), length)
      let row = crash_record_section(
        type: section.type, flags: 0, offset: UInt64(offset),
        capacity: UInt64(max(1, (length + page - 1) / page) * page), length: UInt64(length),
        commit: section.flags & 2 != 0 ? 0 : section.flags & 4 != 0 ? 7 : CRASH_SECTION_COMMITTED,
        checksum: section.flags & 1 != 0 ? ~sum : sum)
      file.storeBytes(
        of: row, toByteOffset: CRASH_HEADER_SECTIONS_OFFSET + index * MemoryLayout<crash_record_section>.size,
        as: crash_record_section.self)
    }
    apply(sealed: false, to: file)
    let sum = checksum(file.baseAddress, CRASH_HEADER_FIXED_CHECKSUM_OFFSET)
    file.storeBytes(of: sum, toByteOffset: CRASH_HEADER_FIXED_CHECKSUM_OFFSET, as: UInt32.self)
    apply(sealed: true, to: file)
    Sheet.cut(min(cut ?? size, size))
    body(UnsafeRawBufferPointer(rebasing: file.prefix(cut ?? size)))
    Sheet.wipe(written)
  }

  private func apply(sealed: Bool, to file: UnsafeMutableRawBufferPointer) {
    for patch in patches where patch.isSealed == sealed && patch.bytes.count > 2 {
      let offset = (Int(patch.bytes[0]) | Int(patch.bytes[1]) << 8) % CrashRecord.headerSize
      for (target, byte) in zip(offset..<CrashRecord.headerSize, patch.bytes.dropFirst(2)) { file[target] = byte }
    }
  }
}

@_silgen_name("fuzz_checksum")
private func checksum(_ bytes: UnsafeRawPointer?, _ count: Int) -> UInt32
