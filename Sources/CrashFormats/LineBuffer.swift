private import Glibc

/// The part of a file that is read and not yet used.
struct LineBuffer: ~Copyable {
  private var memory: UnsafeMutableRawBufferPointer
  private var start = 0
  private var end = 0
  private(set) var isAtEnd = false
  private let limit: Int
  private let padding: Int
  private static let chunk = 256 * 1024

  /// - Parameter size: of the file, where it is known: most are a few kilobytes long.
  init(limit: Int, padding: Int, size: UInt64?) {
    self.limit = limit
    self.padding = padding
    // One byte more, to see the end without growing.
    let room = size.map { $0 < Self.chunk ? Int($0) + 1 : Self.chunk } ?? Self.chunk
    memory = .allocate(byteCount: room + padding, alignment: 16)
    // The parser looks at the bytes behind a document; they have no meaning, but must not be uninitialised.
    memory.initializeMemory(as: UInt8.self, repeating: 0)
  }

  /// Bytes that were read before; nothing more is read if they are all.
  mutating func append(_ bytes: UnsafeRawBufferPointer, isAll: Bool) {
    if memory.count - padding - end < bytes.count { makeRoom(bytes.count) }
    UnsafeMutableRawBufferPointer(rebasing: memory[end...]).copyMemory(from: bytes)
    end += bytes.count
    isAtEnd = isAll
  }

  deinit { memory.deallocate() }

  var count: Int { end - start }

  /// The bytes; behind them there are at least `padding` more that may be read.
  var unread: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

  mutating func consume(_ length: Int) { start = min(end, start + length) }

  /// - Returns: false at the end of the file.
  mutating func fill(from file: borrowing InputFile, atMost: Int = .max) throws(InputError) -> Bool {
    guard !isAtEnd else { return false }
    var room = min(atMost, Self.chunk)
    let free = memory.count - padding - end
    if free > 0, memory.count < Self.chunk + padding {
      room = min(room, free)
    } else if free < room {
      makeRoom(room)
    }
    let count = try file.readSome(into: UnsafeMutableRawBufferPointer(rebasing: memory[end..<end + room]))
    end += count
    isAtEnd = count == 0
    return count > 0
  }

  private mutating func makeRoom(_ room: Int) {
    let used = end - start
    // Moving costs what is unread, growing costs memory: move only where at least as much is gained.
    if used <= start, used + room + padding <= memory.count {
      if let base = memory.baseAddress { memmove(base, base + start, used) }
    } else {
      let larger = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(memory.count * 2, used + room + padding), alignment: 16)
      larger.initializeMemory(as: UInt8.self, repeating: 0)
      larger.copyMemory(from: unread)
      memory.deallocate()
      memory = larger
    }
    start = 0
    end = used
  }

  /// The length of the line that begins `offset` bytes behind the start, its line feed included; nil at the end of the
  /// file. More than the limit for a line that is longer than it.
  mutating func nextLine(from file: borrowing InputFile, after offset: Int = 0) throws(InputError) -> Int? {
    var searched = offset
    while true {
      if let length = lineLength(after: offset, from: searched) { return length }
      if count - offset > limit { return count - offset }
      searched = count
      if try !fill(from: file) { return count > offset ? count - offset : nil }
    }
  }

  /// Drops everything up to and with the next line feed.
  mutating func skipLine(from file: borrowing InputFile) throws(InputError) {
    while true {
      if let length = lineLength(after: 0, from: 0) {
        consume(length)
        return
      }
      consume(count)
      if try !fill(from: file) { return }
    }
  }

  private func lineLength(after offset: Int, from searched: Int) -> Int? {
    guard searched < count, let base = unread.baseAddress,
      let found = memchr(base + searched, CInt(UInt8(ascii: "\n")), count - searched)
    else { return nil }
    return UnsafeRawPointer(found) - base - offset + 1
  }

  func isBlank(_ length: Int) -> Bool {
    unread.prefix(length).allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
  }
}
