private import Glibc

/// Lines of a descriptor, read in large pieces and looked at where they lie.
final class AddrInput {
  struct Failure: Error {
    var code: CInt
  }

  struct Line {
    /// Without the line feed. Valid until the next call of `read`.
    var bytes: UnsafeRawBufferPointer
    /// It was longer than the buffer; only the end of it is here.
    var isTooLong = false
  }

  private let descriptor: CInt
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: AddrInput.size, alignment: 16)
  private var start = 0
  private var end = 0
  private var isAtEnd = false
  private var isSkipping = false

  /// A pipe holds 64 KiB; files come in pieces of this.
  private static let size = 256 << 10

  init(descriptor: CInt) { self.descriptor = descriptor }

  deinit { buffer.deallocate() }

  /// Waits for more and reads it.
  ///
  /// - Returns: false at the end of the input, where `nextLine` still gives a line without a line feed.
  func read() throws(Failure) -> Bool {
    if isAtEnd { return false }
    if start > 0 {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<end]))
      end -= start
      start = 0
    }
    if end == buffer.count {
      // No line is that long that means something.
      isSkipping = true
      end = 0
    }
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress.map { $0 + end }, buffer.count - end)
      if count > 0 {
        end += count
        return true
      }
      if count == 0 {
        isAtEnd = true
        return false
      }
      switch errno {
      case EINTR: break
      case EAGAIN: _ = isReady(timeout: -1)
      default: throw Failure(code: errno)
      }
    }
  }

  /// Whether `read` would not have to wait.
  var isReady: Bool { isAtEnd || isReady(timeout: 0) }

  private func isReady(timeout: CInt) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, timeout) > 0
  }

  /// The next line that was read as a whole; nil where there is none.
  @inline(__always)
  func nextLine() -> Line? {
    guard let base = buffer.baseAddress, start < end else {
      // A long line that ends without a line feed right behind what was dropped.
      return isAtEnd && isSkipping ? lastLine() : nil
    }
    guard let feed = memchr(base + start, 0x0a, end &- start) else { return isAtEnd ? lastLine() : nil }
    let length = UnsafeRawPointer(feed) - UnsafeRawPointer(base + start)
    let line = Line(bytes: UnsafeRawBufferPointer(start: base + start, count: length), isTooLong: isSkipping)
    start &+= length &+ 1
    isSkipping = false
    return line
  }

  @inline(never)
  private func lastLine() -> Line? {
    let line = Line(bytes: UnsafeRawBufferPointer(rebasing: buffer[start..<end]), isTooLong: isSkipping)
    start = end
    isSkipping = false
    return line
  }
}
