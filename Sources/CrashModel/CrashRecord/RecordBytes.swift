/// A range of a record's bytes, whose every access is checked.
///
/// Offsets and lengths come from the file and may be anything; whatever lies outside answers nil, never a trap.
struct RecordBytes {
  let buffer: UnsafeRawBufferPointer

  var count: Int { buffer.count }

  init(_ buffer: UnsafeRawBufferPointer) { self.buffer = buffer }

  /// The `length` bytes at `offset`; nil where they do not lie inside.
  func slice(_ offset: Int, _ length: Int) -> RecordBytes? {
    guard offset >= 0, length >= 0, offset <= count, length <= count - offset else { return nil }
    return RecordBytes(UnsafeRawBufferPointer(rebasing: buffer[offset..<offset + length]))
  }

  /// A value of a plain C type at `offset`, which need not be aligned.
  func load<Value: BitwiseCopyable>(_ offset: Int, as type: Value.Type = Value.self) -> Value? {
    guard let slice = slice(offset, MemoryLayout<Value>.size) else { return nil }
    return slice.buffer.loadUnaligned(as: type)
  }

  /// UTF-8, with what is none replaced by U+FFFD.
  func text(_ offset: Int, _ length: Int) -> String? {
    slice(offset, length).map { String(decoding: $0.buffer, as: UTF8.self) }
  }

  /// The elements of an array of `size` bytes each; an incomplete one at the end is left out.
  func elements(of size: Int) -> RecordRows { RecordRows(bytes: self, size: size) }
}

/// The rows of a table in a record, front to back.
///
/// A type of its own: the lazy sequences of the standard library take three times as long in a debug build, in which every
/// cut of a record is read.
struct RecordRows: Sequence, IteratorProtocol {
  fileprivate let bytes: RecordBytes
  fileprivate let size: Int
  private var position = 0

  fileprivate init(bytes: RecordBytes, size: Int) {
    self.bytes = bytes
    self.size = size
  }

  mutating func next() -> RecordBytes? {
    guard let row = bytes.slice(position, size) else { return nil }
    position += size
    return row
  }
}
