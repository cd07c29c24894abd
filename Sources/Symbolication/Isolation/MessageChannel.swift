private import Glibc

/// One end of the connection between a reader and the process that asks it. A message is its length, 8 bytes, and so many
/// bytes.
final class MessageChannel {
  /// Beyond any table: 4 GiB of code make one of half of that.
  static let maximumSize = 1 << 32
  /// Read at once, and so the most that a length without its bytes makes anybody allocate.
  private static let chunkSize = 1 << 20

  let descriptor: CInt

  enum Failure: Error {
    /// The other end is gone.
    case closed
    /// A length that no message has.
    case malformed
    /// Whoever was asked whether to go on waiting said no.
    case gaveUp
  }

  init(_ descriptor: CInt) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// - Returns: nil where the process has no descriptors left.
  static func pair() -> (MessageChannel, MessageChannel)? {
    var descriptors: [CInt] = [-1, -1]
    guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &descriptors) == 0 else {
      return nil
    }
    return (MessageChannel(descriptors[0]), MessageChannel(descriptors[1]))
  }

  func send(_ message: [UInt8]) throws(Failure) {
    var length = UInt64(message.count).littleEndian
    let header = withUnsafeBytes(of: &length) { Array($0) }
    // A request in one piece: each piece wakes the other end.
    if message.count < 1 << 16 { return try sendAll(header + message) }
    try sendAll(header)
    try sendAll(message)
  }

  private func sendAll(_ bytes: [UInt8]) throws(Failure) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        // Without SIGPIPE: that the other end is gone is an answer.
        Glibc.send(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent, CInt(MSG_NOSIGNAL))
      }
      if count >= 0 { sent += count } else if errno != EINTR { throw .closed }
    }
  }

  /// - Parameters:
  ///   - interval: in seconds; 0 for ever.
  ///   - whileWaiting: called several times a second as long as nothing comes.
  ///   - isWorthWaiting: asked each time when nothing came for so long.
  func receive(
    interval: Int = 0, whileWaiting: (() -> Void)? = nil, isWorthWaiting: () -> Bool = { true }
  ) throws(Failure) -> [UInt8] {
    let header = try receive(8, interval, whileWaiting, isWorthWaiting)
    let length = header.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard length <= UInt64(Self.maximumSize) else { throw .malformed }
    return try receive(Int(length), interval, whileWaiting, isWorthWaiting)
  }

  private func receive(
    _ size: Int, _ interval: Int, _ whileWaiting: (() -> Void)?, _ isWorthWaiting: () -> Bool
  ) throws(Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    var received = 0
    while received < size {
      if interval > 0 { try wait(interval, whileWaiting, isWorthWaiting) }
      // A socket hands out less than a chunk at a time; the rest of it is there for the next time.
      if received == bytes.count { bytes += repeatElement(0, count: min(size - received, Self.chunkSize)) }
      let room = bytes.count - received
      let count = bytes.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress?.advanced(by: received), room, 0) }
      if count == 0 || count < 0 && errno != EINTR { throw .closed }
      received += max(count, 0)
    }
    return bytes
  }

  private func wait(_ interval: Int, _ whileWaiting: (() -> Void)?, _ isWorthWaiting: () -> Bool) throws(Failure) {
    let milliseconds = interval.multipliedReportingOverflow(by: 1_000).partialValue
    let slice = whileWaiting == nil ? milliseconds : min(milliseconds, 200)
    var waited = 0
    while true {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let count = poll(&entry, 1, CInt(clamping: slice))
      if count > 0 { return }
      if count == 0 {
        whileWaiting?()
        waited &+= slice
        if waited >= milliseconds {
          waited = 0
          if !isWorthWaiting() { throw .gaveUp }
        }
      }
      if count < 0, errno != EINTR { throw .closed }
    }
  }
}
