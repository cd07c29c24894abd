import CCrashFormat
import CrashModel

/// The memory of all files, one after the other: to allocate and to clear 50 KB for each would take longer than to read it.
/// AddressSanitizer is told where the file of now ends, so that a byte behind it is a finding as it is behind an allocation.
enum Sheet {
  /// 32 sections of 64 KB, the most that a recipe can ask for, and the header.
  private static let capacity = (Int(CRASH_RECORD_MAX_SECTIONS) * 17 + 1) * CrashRecord.headerSize
  nonisolated(unsafe) private static let memory: UnsafeMutableRawBufferPointer = {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: CrashRecord.headerSize)
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    poison(memory.baseAddress, capacity)
    return memory
  }()
  nonisolated(unsafe) private static var size = 0

  /// The first `count` bytes, all of them zero.
  static func take(_ count: Int) -> UnsafeMutableRawBufferPointer {
    precondition(count <= capacity, "a recipe for a larger file than any")
    let file = UnsafeMutableRawBufferPointer(rebasing: memory.prefix(count))
    if count > size {
      unpoison(file.baseAddress, count)
      size = count
    } else {
      cut(count)
    }
    return file
  }

  static func cut(_ count: Int) {
    poison(memory.baseAddress?.advanced(by: count), size - count)
    size = count
  }

  static func wipe(_ ranges: [Range<Int>]) {
    if let end = ranges.map(\.upperBound).max(), end > size {
      unpoison(memory.baseAddress, end)
      size = end
    }
    for range in ranges {
      UnsafeMutableRawBufferPointer(rebasing: memory[range]).initializeMemory(as: UInt8.self, repeating: 0)
    }
  }
}

@_silgen_name("__asan_poison_memory_region")
private func poison(_ start: UnsafeMutableRawPointer?, _ count: Int)
@_silgen_name("__asan_unpoison_memory_region")
private func unpoison(_ start: UnsafeMutableRawPointer?, _ count: Int)
