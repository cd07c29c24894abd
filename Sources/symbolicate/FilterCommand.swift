internal import CrashFormats
internal import CrashModel
private import Glibc

/// `symbolicate --filter`: passes a log on, with names where frames lack them.
///
/// A line goes on as soon as it is read. Only the lines of a Swift crash log from its first frame without a name on wait
/// for the crash's end, where the runtime lists the images, and no line of another process waits with them: at most
/// until the log says nothing for `silence`, or `limit` bytes wait.
struct FilterCommand {
  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output
  private let pipeline: ReportPipeline
  private let follower: LogFollower
  /// The lines that wait, by the crash that they belong to.
  private var waiting: [Int: [[UInt8]]] = [:]
  private var waitingBytes = 0
  private var totals = Totals()
  /// What was read and is no whole line yet.
  private var rest: [UInt8] = []

  /// In milliseconds.
  private static let silence: CInt = 2_000
  private static let limit = 8 * 1024 * 1024
  /// A line that is longer goes on in pieces, and nothing is looked for in it.
  private static let longLine = 16 * 1024 * 1024
  private static let blockSize = 256 * 1024

  /// - Returns: nil without memory.
  init?(options: Options, diagnostics: Diagnostics, output: Output) {
    guard let follower = LogFollower() else { return nil }
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
    self.follower = follower
    pipeline = ReportPipeline(options: options)
  }

  mutating func run() throws(Output.Failure) -> ExitStatus {
    let before = pipeline.problemsBefore
    for problem in before { try problem.tell(diagnostics, .text, output) }
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 16)
    defer { block.deallocate() }
    var isReadToItsEnd = true
    while true {
      if !waiting.isEmpty, !Self.isReadable(within: Self.silence) { try end(follower.finish()) }
      let count = read(STDIN_FILENO, block.baseAddress, block.count)
      if count < 0 {
        if errno == EINTR { continue }
        if errno == EAGAIN {
          _ = Self.isReadable(within: -1)
          continue
        }
        diagnostics.error("standard input", "cannot be read: \(errnoText(errno))")
        isReadToItsEnd = false
      }
      if count <= 0 { break }
      try add(UnsafeRawBufferPointer(rebasing: block[..<count]))
      try output.flush()
    }
    if !rest.isEmpty { try pass(line: rest) }
    try end(follower.finish())
    for lines in waiting.sorted(by: { $0.key < $1.key }) { for line in lines.value { try output.write(line) } }
    let after = pipeline.problemsAfter
    for problem in after { try problem.tell(diagnostics, .text, output) }
    totals.errors = before.count + after.count + (isReadToItsEnd ? 0 : 1)
    return totals.status(hasAnswer: true)
  }

  private static func isReadable(within milliseconds: CInt) -> Bool {
    var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, milliseconds) != 0
  }

  private mutating func add(_ block: UnsafeRawBufferPointer) throws(Output.Failure) {
    guard let last = block.lastIndex(of: 0x0a) else {
      rest += block
      if rest.count > Self.longLine {
        try output.write(rest)
        rest = []
      }
      return
    }
    var start = 0
    if !rest.isEmpty, let feed = block.firstIndex(of: 0x0a) {
      rest += block[...feed]
      start = feed + 1
      try pass(line: rest)
    }
    let lines = UnsafeRawBufferPointer(rebasing: block[start..<(last + 1)])
    if follower.skip(lines) {
      try output.write(lines)
    } else {
      var from = 0
      while let feed = lines[from...].firstIndex(of: 0x0a) {
        try pass(line: Array(lines[from...feed]))
        from = feed + 1
      }
    }
    rest = Array(block[(last + 1)...])
  }

  private mutating func pass(line: [UInt8]) throws(Output.Failure) {
    if line.withUnsafeBytes(follower.skip) { return try output.write(line) }
    let (taken, ended) = line.withUnsafeBytes { follower.read($0) }
    if let taken, taken.waits {
      waiting[taken.crash, default: []].append(line)
      waitingBytes += line.count
    } else if let taken, let frame = taken.frame {
      let names = LineNames(process(frame))
      for line in names.lines(for: line) { try output.write(line) }
    } else {
      try output.write(line)
    }
    try end(ended)
    if waitingBytes > Self.limit { try end(follower.finish()) }
  }

  /// Writes the lines that waited for the end of a crash.
  private mutating func end(_ ended: [LogFollower.Ended]) throws(Output.Failure) {
    for crash in ended {
      guard let lines = waiting.removeValue(forKey: crash.crash) else { continue }
      waitingBytes -= lines.reduce(0) { $0 + $1.count }
      let names = crash.report.map { LineNames(process($0)) }
      for line in lines {
        for named in names?.lines(for: line) ?? [line] { try output.write(named) }
      }
    }
  }

  private mutating func process(_ report: CrashReport) -> CrashReport {
    let processed = pipeline.process(report)
    totals.add(processed)
    for problem in processed.symbols.compactMap(\.problem) { diagnostics.errorOnce(problem) }
    return processed.report
  }
}
