internal import CrashModel
private import Glibc

/// `symbolicate redact`: passes standard input on, line by line, without what belongs to a person or opens a door.
///
/// A line goes on as soon as it is read. Memory does not grow with the input: a line that is longer than `longLine` is
/// redacted in pieces.
struct RedactCommand {
  private let diagnostics: Diagnostics
  private let output: Output
  private var redactor: LineRedactor
  /// What was read and is no whole line yet.
  private var rest: [UInt8] = []

  private static let longLine = 1024 * 1024
  private static let blockSize = 256 * 1024

  init(options: Options, diagnostics: Diagnostics, output: Output) {
    self.diagnostics = diagnostics
    self.output = output
    redactor = LineRedactor(options.redactor)
  }

  mutating func run() throws(Output.Failure) -> ExitStatus {
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 16)
    defer { block.deallocate() }
    while true {
      let count = read(STDIN_FILENO, block.baseAddress, block.count)
      if count < 0 {
        if errno == EINTR { continue }
        if errno == EAGAIN {
          var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
          _ = poll(&entry, 1, -1)
          continue
        }
        diagnostics.error("standard input", "cannot be read: \(errnoText(errno))")
        // What was read of the last line may be half of a secret.
        return .incomplete
      }
      if count == 0 { break }
      try add(UnsafeRawBufferPointer(rebasing: block[..<count]))
      try output.flush()
    }
    try pass(rest)
    return .complete
  }

  private mutating func add(_ block: UnsafeRawBufferPointer) throws(Output.Failure) {
    var block = block
    if !rest.isEmpty {
      let end = block.firstIndex(of: 0x0a).map { $0 + 1 } ?? block.count
      rest += block[..<end]
      block = UnsafeRawBufferPointer(rebasing: block[end...])
      if rest.last == 0x0a {
        let line = rest
        rest = []
        try pass(line)
      }
    }
    // Lines that stay as they are go on in one piece.
    var clean = 0
    var start = 0
    while start < block.count, let base = block.baseAddress,
      let feed = memchr(base + start, 0x0a, block.count - start)
    {
      let end = UnsafeRawPointer(feed) - base + 1
      if let changed = redacted(UnsafeRawBufferPointer(rebasing: block[start..<end])) {
        if clean < start { try output.write(UnsafeRawBufferPointer(rebasing: block[clean..<start])) }
        try output.write(changed)
        clean = end
      }
      start = end
    }
    if clean < start { try output.write(UnsafeRawBufferPointer(rebasing: block[clean..<start])) }
    rest += block[start...]
    while rest.count > Self.longLine { try passPiece() }
  }

  /// Of a line that does not end: up to a space, so that no word is cut where that can be helped.
  private mutating func passPiece() throws(Output.Failure) {
    let space = rest.lastIndex { $0 == 0x20 || $0 == 0x09 }
    let end = space.flatMap { $0 > Self.longLine / 2 ? $0 + 1 : nil } ?? rest.count
    try pass(Array(rest[..<end]))
    rest.removeFirst(end)
  }

  private mutating func pass(_ line: [UInt8]) throws(Output.Failure) {
    if !line.isEmpty { try output.write(redactor.redact(line.span) ?? line) }
  }

  private mutating func redacted(_ line: UnsafeRawBufferPointer) -> [UInt8]? {
    redactor.redact(line.bindMemory(to: UInt8.self).span)
  }
}
