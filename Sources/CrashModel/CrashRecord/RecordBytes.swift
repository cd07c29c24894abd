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
  func elements(of size: Int) -> some Sequence<RecordBytes> {
    (0..<count / size).lazy.compactMap { slice($0 * size, size) }
  }
}
