internal import CrashModel
private import Glibc

/// What a worker of `group --jobs` had to say, with the number of the task that it said it of.
struct WorkerMessage {
  enum Kind: UInt8 {
    /// `texts`: the message.
    case fatal
    /// `texts`: subject and message.
    case error, detail
    /// `texts`: the message, told once.
    case once
    /// A line of NDJSON. `texts`: the file and the message; `number`: its line, -1 for none.
    case line
    /// Of a file that was handed out in pieces; `number`: the line. `texts`: the file's number, and why.
    case problem, skipped
    /// `texts`: the file's number; `number`: how many reports were in the piece.
    case reports
    /// The last one. `numbers` of the worker's totals, as text.
    case end
    /// Of the files given to take names from: `texts` are those that no report has an image of.
    case unmatched
    /// `texts`: build id and name of an image that was wanted.
    case wanted
  }

  var sequence: Int
  var kind: Kind
  var number = -1
  var texts: [String] = []
}

/// Writes messages, one behind the other.
final class WorkerLogWriter {
  private let descriptor: CInt
  private var buffer: [UInt8] = []
  /// Of the task that is being worked on.
  var sequence = 0

  init(_ descriptor: CInt) { self.descriptor = descriptor }

  func add(_ kind: WorkerMessage.Kind, _ texts: String..., number: Int = -1) { add(kind, texts, number: number) }

  func add(_ kind: WorkerMessage.Kind, _ texts: [String], number: Int = -1) {
    append(UInt64(sequence))
    append(UInt64(kind.rawValue))
    append(UInt64(bitPattern: Int64(number)))
    append(UInt64(texts.count))
    for text in texts {
      append(UInt64(text.utf8.count))
      buffer += text.utf8
    }
    if buffer.count > 1 << 16 { flush() }
  }

  private func append(_ value: UInt64) { withUnsafeBytes(of: value.littleEndian) { buffer += $0 } }

  /// A log that cannot be written ends the process with a status that its parent sees.
  func flush() {
    guard buffer.withUnsafeBytes({ GroupWorkers.write($0, to: descriptor) }) else { _exit(1) }
    buffer.removeAll(keepingCapacity: true)
  }
}

/// Reads them, one in memory at a time.
struct WorkerLogReader {
  private let descriptor: CInt
  private var buffer: [UInt8] = []
  private var position = 0
  private(set) var next: WorkerMessage?

  init(_ descriptor: CInt) {
    self.descriptor = descriptor
    advance()
  }

  mutating func advance() {
    next = nil
    guard let sequence = integer(), let kind = integer(), let number = integer(), let count = integer(),
      count < 1 << 20,
      let known = WorkerMessage.Kind(rawValue: UInt8(clamping: kind))
    else { return }
    var message = WorkerMessage(
      sequence: Int(clamping: sequence), kind: known, number: Int(Int64(bitPattern: number)))
    for _ in 0..<count {
      guard let length = integer(), length < 1 << 32, let text = bytes(Int(length)) else { return }
      message.texts.append(String(decoding: text, as: UTF8.self))
    }
    next = message
  }

  private mutating func integer() -> UInt64? {
    bytes(8).map { bytes in bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
  }

  private mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    while buffer.count - position < count {
      buffer.removeSubrange(..<position)
      position = 0
      var piece = [UInt8](repeating: 0, count: max(1 << 16, count - buffer.count))
      let length = piece.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
      if length < 0, errno == EINTR { continue }
      guard length > 0 else { return nil }
      buffer += piece[..<length]
    }
    defer { position += count }
    return buffer[position..<position + count]
  }
}
