public import CrashModel

/// Reads the crashes in a file, whatever format it has.
///
/// One report at a time is in memory; the size of the file does not matter. To be used by one thread at a time.
///
/// ```swift
/// guard let reader = InputReader() else { return }
/// try reader.read(path: "crash.json") { event in
///   if case .report(let report, _) = event { print(report.id) }
///   return true
/// }
/// ```
public final class InputReader {
  /// A JSON document beyond this size is refused, in bytes.
  public static let documentLimit = 64 * 1024 * 1024

  private let reader: ReportReader
  private static let prefixSize = 64 * 1024

  /// What is found on the way through a file.
  public enum Event: Sendable {
    /// A crash; `line` is where it begins, in a file of several.
    case report(CrashReport, line: Int?)
    /// A document that is of no concern here: why.
    case skipped(String, line: Int?)
    /// A part of the file that should be a report and is not. Reading goes on behind it.
    case problem(String, line: Int?)
  }

  /// - Returns: nil without memory.
  public init?() {
    guard let reader = ReportReader() else { return nil }
    self.reader = reader
  }

  /// - Parameters:
  ///   - path: a regular file; nil for standard input.
  ///   - event: called for everything that is found, in order; false ends the reading.
  /// - Throws: where the file as a whole gives nothing: unreadable, empty, of no known format, a record that cannot be
  ///   read.
  public func read(path: String?, _ event: (Event) -> Bool) throws(InputError) {
    let file: InputFile
    if let path { file = try InputFile(path: path) } else { file = InputFile.standardInput() }
    var lines = LineBuffer(limit: Self.documentLimit, padding: ReportReader.padding)
    // Only a prefix is read before the format is known: four gigabytes of zeros are refused like four of them.
    while lines.count < Self.prefixSize, try lines.fill(from: file, atMost: Self.prefixSize - lines.count) {}
    let format: InputFormat
    switch Result(catching: { () throws(InputError) in
      try InputFormat(prefix: lines.unread, isWhole: lines.isAtEnd)
    }) {
    case .success(let found): format = found
    case .failure(let error): throw error
    }
    switch format {
    case .record: try readRecord(&lines, from: file, event)
    case .json: try readJSON(&lines, from: file, event)
    }
  }

  private func readRecord(_ lines: inout LineBuffer, from file: borrowing InputFile, _ event: (Event) -> Bool)
    throws(InputError)
  {
    let limit = RecordSource.sizeLimit
    if let size = file.size, size > UInt64(limit) {
      throw InputError(.tooLarge, "a crash record of \(size) bytes; none is larger than \(limit)")
    }
    while lines.count <= limit, try lines.fill(from: file, atMost: limit + 1 - lines.count) {}
    guard lines.count <= limit else {
      throw InputError(.tooLarge, "a crash record of more than \(limit) bytes; none is larger")
    }
    switch RecordSource.read(lines.unread) {
    case .crash(let report): _ = event(.report(report, line: nil))
    case .noCrash(let why): _ = event(.skipped(why, line: nil))
    case .damaged(let why): throw InputError(.damaged, why)
    }
  }

  /// A file of JSON is one object a line, or one object over many lines.
  ///
  /// A line that is a whole object is one document. A line that begins an object and does not end it begins a document
  /// over many lines, which goes on until its brackets are closed, or until a line begins like a new report: then the
  /// writer of the first one was cut off.
  private func readJSON(_ lines: inout LineBuffer, from file: borrowing InputFile, _ event: (Event) -> Bool)
    throws(InputError)
  {
    var lineNumber = 0
    while true {
      let firstLine = lineNumber + 1
      guard let length = try lines.nextLine(from: file) else { return }
      lineNumber += 1
      if length > Self.documentLimit {
        guard event(.problem("a line of more than \(Self.documentLimit) bytes; no report is larger", line: firstLine))
        else { return }
        try lines.skipLine(from: file)
        continue
      }
      if lines.isBlank(length) {
        lines.consume(length)
        continue
      }
      var total = length
      var balance = JSONBalance()
      balance.scan(lines.unread.prefix(total))
      while balance.isOpen, total < Self.documentLimit {
        guard let more = try lines.nextLine(from: file, after: total) else { break }
        let line = UnsafeRawBufferPointer(rebasing: lines.unread.dropFirst(total).prefix(more))
        if line.starts(with: "{\"schema\"".utf8) { break }
        balance.scan(line[...])
        total += more
        lineNumber += 1
      }
      let goesOn = handle(lines.unread, count: total, line: firstLine, event)
      lines.consume(total)
      guard goesOn else { return }
    }
  }

  private func handle(_ bytes: UnsafeRawBufferPointer, count: Int, line: Int, _ event: (Event) -> Bool) -> Bool {
    let hasMark = line == 1 && bytes.starts(with: [0xEF, 0xBB, 0xBF])
    let body = hasMark ? UnsafeRawBufferPointer(rebasing: bytes.dropFirst(3)) : bytes
    do {
      switch try reader.document(in: body, count: hasMark ? count - 3 : count) {
      case .report(let report): return event(.report(report, line: line))
      case .other(let schema?):
        return event(.skipped("an object of schema \(Printable.quoted(String(schema.prefix(64))))", line: line))
      case .other(nil): return event(.skipped("a JSON object without a schema", line: line))
      }
    } catch {
      return event(.problem(error.description, line: line))
    }
  }
}
