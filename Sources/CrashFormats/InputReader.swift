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
  private let contents: JSONContentReader
  private static let prefixSize = 64 * 1024
  /// Of one file, in bytes: dozens of reports, and read in no time.
  private static let rereadLimit = 4 * 1024 * 1024

  /// Reports that were taken before they were made.
  package private(set) var takenCount = 0

  /// Gets a report as it was parsed, with the line that it begins at.
  ///
  /// - Returns: whether nothing else is needed of it. Then it is no event.
  package typealias Taker = (ParsedReport, _ line: Int?) -> Bool

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
  public convenience init?() { self.init(detail: .all) }

  /// - Parameter detail: how much of a `crash-report/1` is wanted.
  package init?(detail: ReportReader.Detail) {
    guard let reader = ReportReader(detail: detail), let contents = JSONContentReader() else { return nil }
    self.reader = reader
    self.contents = contents
  }

  /// - Parameters:
  ///   - path: a regular file; nil for standard input.
  ///   - event: called for everything that is found, in order; false ends the reading.
  /// - Throws: where the file as a whole gives nothing: unreadable, empty, of no known format, a record that cannot be
  ///   read.
  public func read(path: String?, _ event: (Event) -> Bool) throws(InputError) {
    try read(path.map { FilePath($0) }, event)
  }

  /// - Parameters:
  ///   - requiresMark: JSON is read only if its beginning has a `"schema"`: for files that nobody named, of which most are
  ///     something else, and large ones too.
  ///   - beginning: what was read of the file before, from its start.
  ///   - take: gets each report in JSON first.
  package func read(
    _ path: FilePath?, requiresMark: Bool = false, beginning: UnsafeRawBufferPointer = .init(start: nil, count: 0),
    take: Taker = { _, _ in false }, _ event: (Event) -> Bool
  ) throws(InputError) {
    let file: InputFile
    if let path { file = try InputFile(path: path) } else { file = InputFile.standardInput() }
    var lines = LineBuffer(limit: Self.documentLimit, padding: ReportReader.padding, size: file.size)
    lines.append(beginning, isAll: false)
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
    case .json:
      guard !requiresMark || InputFormat.hasMark(lines.unread) || InputFormat.hasBeginning(lines.unread) else {
        throw InputError(.unknownFormat, "JSON without a \"schema\" in its first \(lines.count) bytes")
      }
      try readJSON(&lines, from: file, behind: 0, take, event)
    case .log: try LogFile(contents: contents).read(&lines, from: file, event)
    }
  }

  /// Whether a file begins with a report that is a line of its own: then the lines of reports in it can be read apart.
  package static func isOfLines(_ beginning: UnsafeRawBufferPointer) -> Bool {
    guard beginning.starts(with: "{\"schema\":\"crash-report/".utf8),
      let end = beginning.firstIndex(of: UInt8(ascii: "\n"))
    else { return false }
    return beginning[..<end].last { $0 > 0x20 } == UInt8(ascii: "}")
  }

  /// Reads lines of such a file.
  ///
  /// - Parameter firstLine: the number of the first of them in the file.
  package func readLines(_ bytes: UnsafeRawBufferPointer, firstLine: Int, take: Taker, _ event: (Event) -> Bool)
    throws(InputError)
  {
    var lines = LineBuffer(limit: Self.documentLimit, padding: ReportReader.padding, size: UInt64(bytes.count))
    lines.append(bytes, isAll: true)
    // Nothing is read from it, as all is there.
    try readJSON(&lines, from: InputFile.standardInput(), behind: firstLine - 1, take, event)
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

  /// A file of JSON is one object a line, or objects over many lines, or both.
  ///
  /// A line that begins an object and does not end it is either the first line of a document over many, or was cut. So
  /// the following lines are added to it as long as JSON allows them there. An object at the beginning of a line is what a
  /// line of its own looks like: where no value may stand, or where the object has a schema, it ends the document before.
  /// Where neither tells, the lines are tried as one document, and if they are none, are read again from that line on.
  /// What is broken is one problem, and costs no line behind it.
  ///
  /// - Parameter lineNumber: how many lines were read before.
  private func readJSON(
    _ lines: inout LineBuffer, from file: borrowing InputFile, behind lineNumber: Int, _ take: Taker,
    _ receiver: (Event) -> Bool
  ) throws(InputError) {
    var lineNumber = lineNumber
    var hasTold = false
    func event(_ event: Event) -> Bool {
      hasTold = true
      return receiver(event)
    }
    /// The first line that was left to the log, which may make nothing of it.
    var leftToLog: Int?
    let takenBefore = takenCount
    let log = LogReader(json: contents)
    // So many bytes are read again; a file that is made to be read again and again is read a line at a time from then on.
    var budget = Self.rereadLimit
    var lastLineAlone = 0
    var skipsRest = false
    while true {
      let firstLine = lineNumber + 1
      guard let length = try lines.nextLine(from: file) else {
        log.finish()
        for found in log.takeEvents() { guard event(found) else { return } }
        if !hasTold, takenCount == takenBefore, let leftToLog {
          _ = event(.problem("begins like a crash, and no frame of one follows", line: leftToLog))
        }
        return
      }
      lineNumber += 1
      if length > Self.documentLimit {
        guard event(.problem("a line of more than \(Self.documentLimit) bytes; no report is larger", line: firstLine))
        else { return }
        try lines.skipLine(from: file)
        continue
      }
      let first = UnsafeRawBufferPointer(rebasing: lines.unread.prefix(length))
      if lines.isBlank(length) || skipsRest && Self.isInside(first) {
        lines.consume(length)
        continue
      }
      skipsRest = false
      // Nearly every line is a whole document, and the parser sees that faster than the outline.
      if first.last(where: { $0 > 0x20 }) == UInt8(ascii: "}") {
        let found = document(lines.unread, count: length, line: firstLine, log: log, take)
        if case .problem = found {
        } else {
          if leftToLog == nil, case nil = found { leftToLog = firstLine }
          lines.consume(length)
          guard tell(found, log, event) else { return }
          continue
        }
      }
      var outline = JSONOutline()
      outline.scan(first)
      let isArray = first.count < 8 && first.first { $0 > 0x20 } == UInt8(ascii: "[")
      var total = length
      /// The first line that may be a document of its own: where it begins, and how many lines are before it.
      var doubt: (offset: Int, line: Int)?
      while firstLine > lastLineAlone, outline.isOpen, total < Self.documentLimit {
        guard let more = try lines.nextLine(from: file, after: total) else { break }
        let line = UnsafeRawBufferPointer(rebasing: lines.unread.dropFirst(total).prefix(more))
        let role = role(of: line, behind: outline)
        // In an array whole reports stand at the beginnings of lines.
        if role == .beginning, !isArray { break }
        if role != .inside, doubt == nil { doubt = (total, lineNumber) }
        outline.scan(line)
        total += more
        lineNumber += 1
      }
      var found = document(lines.unread, count: total, line: firstLine, log: log, take)
      if case .problem = found {
        if let doubt {
          budget -= total - doubt.offset
          if budget < 0 { lastLineAlone = lineNumber }
          (total, lineNumber) = doubt
          found = document(lines.unread, count: total, line: firstLine, log: log, take)
        }
        // Of a broken document over many lines, the lines behind the place where it broke are no news.
        skipsRest = lineNumber > firstLine
      }
      // A crash as text between the objects.
      if case .problem = found, lineNumber == firstLine, first.first != UInt8(ascii: "{") {
        log.read(first, number: firstLine)
        if !log.isIdle || log.hasEvents { found = nil }
      }
      if leftToLog == nil, case nil = found { leftToLog = firstLine }
      lines.consume(total)
      guard tell(found, log, event) else { return }
    }
  }

  private enum Role { case beginning, inside, doubtful }

  /// What a line is behind a document that is not closed.
  private func role(of line: UnsafeRawBufferPointer, behind outline: JSONOutline) -> Role {
    switch line.first ?? 0 {
    case UInt8(ascii: "{"):
      guard outline.allowsValue, !line.starts(with: "{\"schema\"".utf8) else { return .beginning }
      return hasSchema(line) ? .beginning : .doubtful
    case UInt8(ascii: "\""): return outline.allowsValue || outline.allowsKey ? .inside : .beginning
    case UInt8(ascii: "["), UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      return outline.allowsValue ? .inside : .beginning
    case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"):
      let isWord = ["true", "false", "null"].contains { line.starts(with: $0.utf8) }
      return outline.allowsValue && isWord ? .inside : .beginning
    case 0x20, 0x09, 0x0A, 0x0D, UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ","), UInt8(ascii: ":"):
      return .inside
    default: return .beginning
    }
  }

  /// Nothing that a document begins with.
  private static func isInside(_ line: UnsafeRawBufferPointer) -> Bool {
    switch line.first ?? 0 {
    case 0x20, 0x09, UInt8(ascii: "\""), UInt8(ascii: "}"), UInt8(ascii: "]"): true
    default: false
    }
  }

  /// The line is a whole object with a `schema`, as no part of a report is.
  private func hasSchema(_ line: UnsafeRawBufferPointer) -> Bool {
    guard line.last(where: { $0 > 0x20 }) == UInt8(ascii: "}") else { return false }
    var outline = JSONOutline()
    outline.scan(line)
    guard !outline.isOpen else { return false }
    do throws(ReportError) {
      if case .other(nil) = try reader.document(in: line, count: line.count) { return false }
      return true
    } catch {
      // An error that has a place comes from an object that said to be a report.
      return !error.path.isEmpty
    }
  }

  /// What was found in a document, or with its help.
  private func tell(_ found: Event?, _ log: LogReader, _ event: (Event) -> Bool) -> Bool {
    for other in log.takeEvents() { guard event(other) else { return false } }
    return found.map(event) ?? true
  }

  /// - Returns: nil where `take` or `log` has taken the document; the latter has events or is to have them.
  private func document(_ bytes: UnsafeRawBufferPointer, count: Int, line: Int, log: LogReader, _ take: Taker) -> Event?
  {
    // Files that were put one behind the other have one in the middle, too.
    let hasMark = bytes.starts(with: [0xEF, 0xBB, 0xBF])
    let body = hasMark ? UnsafeRawBufferPointer(rebasing: bytes.dropFirst(3)) : bytes
    do throws(ReportError) {
      if body.prefix(count).first(where: { $0 > 0x20 }) == UInt8(ascii: "[") {
        log.read(try contents.read(body, count: hasMark ? count - 3 : count), number: line)
        return log.isIdle && !log.hasEvents ? .skipped("a JSON array without a crash", line: line) : nil
      }
      let found = try reader.document(in: body, count: hasMark ? count - 3 : count) { take($0, line) }
      switch found {
      case nil:
        takenCount += 1
        return nil
      case .report(let report): return .report(report, line: line)
      case .other(let schema?):
        return .skipped("an object of schema \(Printable.quoted(String(schema.prefix(64))))", line: line)
      case .other(nil):
        let content = try contents.read(body, count: hasMark ? count - 3 : count)
        switch content {
        case .foreign, .logLine, .list:
          log.read(content, number: line)
          return log.isIdle && !log.hasEvents ? .skipped("a line of a log, without a crash", line: line) : nil
        default: return .skipped("a JSON object without a schema", line: line)
        }
      }
    } catch {
      return .problem(error.description, line: line)
    }
  }
}
