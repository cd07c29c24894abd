internal import CrashModel

/// Finds the crashes in a log, line by line, whatever is written around and between their lines.
///
/// Lines of several processes are told apart by what the log systems put before them, and each process's crash is read by
/// a reader of its own. Memory is bounded: so many crashes are read at once, and of each so many frames are kept.
final class LogReader {
  private struct Session {
    /// Counts from 0.
    var number: Int
    var key: [UInt8]
    var prefix: UnknownPrefix?
    var reader: any TraceReader
    var firstLine: Int
    var lastLine: Int
    var foreignLines = 0
    var message: String?
    var timestamp: Timestamp?
  }

  /// Where a line is from.
  private struct Origin {
    /// Equal for the lines of one process, as far as log systems say.
    var key: [UInt8] = []
    /// What stands before the text and is none of a log system that is known.
    var prefix: UnknownPrefix?
    var timestamp: Timestamp?
    /// Of the file, from 1.
    var line: Int
    /// How many envelopes it was taken out of.
    var depth = 0

    func inside(_ key: [UInt8] = [], timestamp: Timestamp? = nil) -> Origin {
      var origin = self
      if let prefix { origin.key += prefix.key }
      origin.prefix = nil
      origin.key += key
      origin.timestamp = timestamp ?? self.timestamp
      origin.depth += 1
      return origin
    }
  }

  /// A message in the journal, whose first line was read.
  private struct JournalMessage {
    var key: [UInt8]
    /// Of what the journal wrote before the first line, in bytes.
    var width: Int
    var timestamp: Timestamp?

    /// What `journalctl` shows of the message's further lines: as far to the right as the first one.
    func furtherLine(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
      if line.trimmed.isEmpty { return line.trimmed }
      let spaces = line.prefix(width)
      guard spaces.count == width, spaces.allSatisfy({ $0 == 0x20 }) else { return nil }
      return line.dropFirst(width)
    }
  }

  private struct Message {
    var key: [UInt8]
    var text: [UInt8]
    var line: Int
  }

  private var sessions: [Session] = []
  private var messages: [Message] = []
  /// The last one of each stream, by the key of what stands before the journal's own part.
  private var journalMessages: [[UInt8]: JournalMessage] = [:]
  private var partials: [[UInt8]: [UInt8]] = [:]
  /// That were put into `partials` since it was empty: at least what is in it.
  private var partialBytes = 0
  private var identifiers: [String: Int] = [:]
  private let json: JSONContentReader
  private var sessionCount = 0
  /// Of the line that was read last, for whoever follows the log.
  private(set) var lastTaken: LogFollower.Line?
  /// The crashes that ended since they were last taken.
  private(set) var ended: [LogFollower.Ended] = []
  private let isFollowed: Bool
  /// What was found and not yet taken.
  private var found: [InputReader.Event] = []

  private static let sessionLimit = 64
  private static let messageLimit = 64
  private static let identifierLimit = 65_536
  /// A message is a crash's own if the crash begins within so many lines.
  private static let messageReach = 256
  /// Of a stream from which no more comes, a crash ends so many lines of others later.
  private static let sessionReach = 100_000
  /// Longer lines are none of a crash, unless they are JSON.
  private static let lineLimit = 64 * 1024
  private static let partialLimit = 16 * 1024 * 1024
  /// Of all streams together.
  private static let partialsLimit = 64 * 1024 * 1024
  private static let depthLimit = 3

  /// - Parameter isFollowed: it is told which line belongs to which crash.
  init(json: JSONContentReader, isFollowed: Bool = false) {
    self.json = json
    self.isFollowed = isFollowed
  }

  func takeEnded() -> [LogFollower.Ended] {
    defer { ended.removeAll() }
    return ended
  }

  /// No crash is being read: lines in which nothing begins may be left out.
  var isIdle: Bool { sessions.isEmpty && partials.isEmpty }

  var hasEvents: Bool { !found.isEmpty }

  func takeEvents() -> [InputReader.Event] {
    guard !found.isEmpty else { return [] }
    defer { found.removeAll() }
    return found
  }

  /// - Parameter number: of the line, from 1; growing.
  func read(_ bytes: UnsafeRawBufferPointer, number: Int) {
    lastTaken = nil
    read(Array(bytes)[...], from: Origin(line: number))
    // What waits for a stream that has gone quiet.
    for index in sessions.indices.reversed() where number - sessions[index].lastLine > Self.sessionReach {
      end(at: index)
    }
  }

  /// The log is at its end.
  func finish() {
    for (key, text) in partials.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      partials[key] = nil
      readText(text[...], from: Origin(key: key, line: sessions.last?.lastLine ?? 0))
    }
    // In the order in which they began.
    while let first = sessions.indices.min(by: { sessions[$0].firstLine < sessions[$1].firstLine }) { end(at: first) }
  }

  // MARK: Lines

  private func read(_ line: ArraySlice<UInt8>, from origin: Origin) {
    var line = line
    while line.last == 0x0a { line = line.dropLast() }
    if line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
    var prefix = LogPrefix(line)
    // A piece of a line stays as it is: it may begin or end within an escape sequence.
    let isPiece = prefix.isPartial || partials[origin.key + prefix.key] != nil
    if !isPiece, line.first != UInt8(ascii: "{"), let plain = EscapeSequences.removed(from: line) {
      prefix = LogPrefix(plain[...])
    }
    var origin = origin
    let before = origin
    origin.key += prefix.key
    origin.timestamp = prefix.timestamp ?? origin.timestamp
    var text = prefix.text
    if prefix.journalWidth > 0 {
      if journalMessages.count >= Self.sessionLimit { journalMessages.removeAll() }
      journalMessages[before.key + prefix.outerKey] = JournalMessage(
        key: origin.key, width: prefix.journalWidth, timestamp: origin.timestamp)
    } else if let message = journalMessages[origin.key] {
      if let further = message.furtherLine(text) {
        (origin.key, origin.timestamp) = (message.key, message.timestamp)
        text = further
      } else {
        journalMessages[origin.key] = nil
      }
    }
    join(text, isPartial: prefix.isPartial, from: origin)
  }

  /// Puts a line that was cut together again.
  private func join(_ text: ArraySlice<UInt8>, isPartial: Bool, from origin: Origin) {
    let key = origin.key
    if isPartial {
      if partials.isEmpty { partialBytes = 0 }
      partialBytes += text.count
      // Pieces whose ends do not come.
      if partials[key] == nil, partials.count >= Self.sessionLimit || partialBytes > Self.partialsLimit {
        partials.removeAll()
        partialBytes = text.count
      }
      if partials[key, default: []].count + text.count <= Self.partialLimit {
        partials[key, default: []] += text
      } else {
        partials[key] = nil
      }
    } else if !partials.isEmpty, let before = partials.removeValue(forKey: key) {
      // What was cut may be an escape sequence, or another log system's prefix.
      read((before + text)[...], from: origin.inside())
    } else {
      readText(text, from: origin)
    }
  }

  private func readText(_ text: ArraySlice<UInt8>, from origin: Origin) {
    var text = text
    while text.last == 0x0d { text = text.dropLast() }
    let trimmed = text.trimmed
    if trimmed.first == UInt8(ascii: "{") || trimmed.starts(with: "[{"), readJSON(text, from: origin) { return }
    if let lines = EscapedLines.lines(of: text) {
      let inner = origin.inside()
      guard inner.depth <= Self.depthLimit else { return }
      for line in lines { read(line[...], from: inner) }
      return
    }
    guard text.count <= Self.lineLimit else { return }
    guard !continueSession(text, from: origin) else { return }
    if begin(text, from: origin) { return }
    remember(text, key: origin.key, number: origin.line)
  }

  // MARK: Crashes

  /// - Returns: whether the line belongs to a crash that is being read.
  private func continueSession(_ text: ArraySlice<UInt8>, from origin: Origin) -> Bool {
    // From the back, so that one can end.
    for index in sessions.indices.reversed() where sessions[index].key == origin.key {
      let line: ArraySlice<UInt8>
      if let prefix = sessions[index].prefix {
        guard let rest = prefix.removed(from: text) else { continue }
        line = rest
      } else {
        line = text
      }
      let frameCount = isFollowed ? sessions[index].reader.draft.frameCount : 0
      let verdict = sessions[index].reader.read(Self.lastPart(of: line))
      switch verdict {
      case .taken:
        if isFollowed { follow(sessions[index], since: frameCount) }
        sessions[index].foreignLines = 0
        sessions[index].lastLine = origin.line
        return true
      case .last:
        if isFollowed { follow(sessions[index], since: frameCount) }
        end(at: index)
        return true
      case .behind:
        end(at: index)
        return false
      case .behindHeading(let heading):
        var source = origin
        source.prefix = sessions[index].prefix
        end(at: index)
        guard let reader = Self.reader(beginning: heading[...]) else { return false }
        add(reader, from: source)
        return continueSession(text, from: origin)
      case .foreign:
        sessions[index].foreignLines += 1
        if sessions[index].foreignLines > type(of: sessions[index].reader).patience { end(at: index) }
      }
    }
    return false
  }

  private func follow(_ session: Session, since frameCount: Int) {
    guard isFollowed else { return }
    let reader = session.reader
    lastTaken = LogFollower.Line(
      crash: session.number, waits: type(of: reader).listsImagesLast && reader.draft.hasNamelessFrames,
      frame: reader.draft.frameCount > frameCount ? reader.draft.lastFrame : nil)
  }

  /// Behind a carriage return, what was before it is written over.
  private static func lastPart(of line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let last = line.lastIndex(of: 0x0d), !line[(last + 1)...].trimmed.isEmpty else { return line }
    return line[(last + 1)...]
  }

  private func begin(_ text: ArraySlice<UInt8>, from source: Origin) -> Bool {
    if let (prefix, object) = Self.embeddedObject(in: text) {
      var origin = source
      origin.prefix = prefix.isBlank ? nil : prefix
      if readJSON(object, from: origin) { return true }
    }
    let last = Self.lastPart(of: text)
    // What is overwritten may have had a prefix.
    if last.count == text.count, let reader = Self.reader(beginning: text) {
      // The frames of another process, perhaps: what is being read is not given up for a log without a head.
      if (reader as? SwiftTextLog)?.isHeadless == true, sessions.contains(where: { $0.key == source.key }) {
        return false
      }
      add(reader, from: source)
      return true
    }
    for anchor in TraceReaders.anchors {
      guard let index = text.firstIndex(of: anchor) else { continue }
      guard let prefix = UnknownPrefix(text[..<index]) else { continue }
      let line = last.startIndex > index ? last : text[index...]
      var origin = source
      origin.prefix = prefix.isBlank ? nil : prefix
      guard let reader = Self.reader(beginning: line) else { continue }
      add(reader, from: origin)
      return true
    }
    return false
  }

  /// A JSON object behind something, at the end of a line: fluentd's `TIME TAG {…}`, fluent-bit's
  /// `[7] TAG: [[TIME, {}], {…}]`, a logger's `INFO {…}`.
  private static func embeddedObject(in text: ArraySlice<UInt8>) -> (prefix: UnknownPrefix, object: ArraySlice<UInt8>)?
  {
    var line = text.trimmed
    guard line.first != UInt8(ascii: "{") else { return nil }
    if line.last == UInt8(ascii: "]") { line = line.dropLast().trimmed }
    guard line.last == UInt8(ascii: "}"), var start = line.firstIndex(of: UInt8(ascii: "{")) else { return nil }
    // Markup, and an object that is empty.
    if line[start...].starts(with: "{{{") { return nil }
    if line[start...].starts(with: "{}"), let next = line[(start + 2)...].firstIndex(of: UInt8(ascii: "{")) {
      start = next
    }
    var before = line[..<start]
    // fluent-bit counts its records.
    if before.first == UInt8(ascii: "["), before.contains(": ["), let end = before.firstIndex(of: UInt8(ascii: "]")),
      before[before.index(after: before.startIndex)..<end].allSatisfy(\.isASCIIDigit)
    {
      before = before[(end + 1)...]
    }
    guard let prefix = UnknownPrefix(before) else { return nil }
    return (prefix, line[start...])
  }

  private static func reader(beginning line: ArraySlice<UInt8>) -> (any TraceReader)? {
    for type in TraceReaders.all {
      if let reader = type.init(beginning: line) { return reader }
    }
    return nil
  }

  private func add(_ reader: any TraceReader, from origin: Origin) {
    // One process dies once: what it began before has ended.
    while let index = sessions.firstIndex(where: { $0.key == origin.key && $0.prefix == origin.prefix }) {
      end(at: index)
    }
    if sessions.count >= Self.sessionLimit,
      let oldest = sessions.indices.min(by: { sessions[$0].lastLine < sessions[$1].lastLine })
    {
      end(at: oldest)
    }
    sessions.append(
      Session(
        number: sessionCount, key: origin.key, prefix: origin.prefix, reader: reader, firstLine: origin.line,
        lastLine: origin.line,
        message: takeMessage(from: origin), timestamp: origin.timestamp))
    sessionCount += 1
    if let session = sessions.last { follow(session, since: 0) }
  }

  private func end(at index: Int) {
    var session = sessions.remove(at: index)
    let finished = session.reader.finish()
    if isFollowed { ended.append(LogFollower.Ended(crash: session.number, report: finished)) }
    guard var report = finished else {
      // What looked like a crash was none, or the stack of it is in another format: its message is that of the crash that
      // comes.
      if let message = session.reader.draft.report.message ?? session.message {
        messages.append(Message(key: session.key, text: Array(message.utf8), line: session.firstLine))
      }
      return
    }
    if report.message == nil { report.message = session.message }
    if report.timestamp == nil { report.timestamp = session.timestamp }
    emit(report, line: session.firstLine)
  }

  private func emit(_ report: CrashReport, line: Int) {
    var report = report
    // The same crash twice in one input is two crashes.
    if identifiers.count < Self.identifierLimit {
      let count = identifiers[report.id, default: 0]
      identifiers[report.id] = count + 1
      if count > 0 { report.id = ReportDraft.identifier(of: report, occurrence: count) }
    }
    found.append(.report(report, line: line))
  }

  // MARK: Messages

  private func remember(_ text: ArraySlice<UInt8>, key: [UInt8], number: Int) {
    if let last = messages.indices.last, messages[last].key == key, messages[last].line == number - 1,
      LogMessages.continues(String(decoding: messages[last].text, as: UTF8.self), with: text)
    {
      messages[last].text += [0x0a] + text.trimmed
      return
    }
    guard LogMessages.message(in: text) != nil || LogMessages.isMentioned(in: text) else { return }
    if messages.count >= Self.messageLimit { messages.removeFirst() }
    messages.append(Message(key: key, text: Array(text), line: number))
  }

  private func takeMessage(from origin: Origin) -> String? {
    messages.removeAll { origin.line - $0.line > Self.messageReach }
    for index in messages.indices.reversed() where messages[index].key == origin.key {
      let text = messages[index].text[...]
      let line = origin.prefix.map { $0.removed(from: text) } ?? text
      guard let line, let message = LogMessages.message(in: line) else { continue }
      messages.remove(at: index)
      return message
    }
    return nil
  }

  // MARK: JSON

  /// - Returns: whether it is JSON.
  private func readJSON(_ text: ArraySlice<UInt8>, from origin: Origin) -> Bool {
    guard origin.depth < Self.depthLimit else { return false }
    let content: JSONContent
    do throws(ReportError) { content = try json.read(text) } catch {
      // A crash with an error in it is told; what is no JSON is just a line.
      guard !error.path.isEmpty else { return false }
      found.append(.problem(error.description, line: origin.line))
      return true
    }
    read(content, from: origin)
    return true
  }

  /// Reads an object that a file consists of, or one of its lines.
  func read(_ content: JSONContent, number: Int) { read(content, from: Origin(line: number)) }

  private func read(_ content: JSONContent, from origin: Origin) {
    switch content {
    case .report(let report): found.append(.report(report, line: origin.line))
    case .foreign(let report): readForeign(report, from: origin)
    case .list(let contents):
      // Whoever passes a log on has no place for names within a list of lines.
      if isFollowed { return }
      for content in contents { read(content, from: origin) }
    case .logLine(let entry):
      let inner = origin.inside(entry.key, timestamp: entry.timestamp)
      if let fields = entry.coreDump { begin(fields, from: inner) }
      if entry.isPartial { return join(entry.text[...], isPartial: true, from: inner) }
      var text = entry.text
      if let before = partials.removeValue(forKey: inner.key) { text = before + text }
      if text.last == 0x0a { text.removeLast() }
      for line in text.split(separator: 0x0a, omittingEmptySubsequences: false) { read(line, from: inner) }
    case .other: break
    }
  }

  /// An entry of systemd-coredump: its fields come before its text.
  private func begin(_ fields: CoreDumpFields, from origin: Origin) {
    let index = sessions.firstIndex { $0.key == origin.key && $0.prefix == origin.prefix }
    if let index, var trace = sessions[index].reader as? SystemdStackTrace, trace.isOfSameProcess(fields) {
      trace.take(fields)
      sessions[index].reader = trace
    } else {
      add(SystemdStackTrace(fields), from: origin)
    }
  }

  private func readForeign(_ report: CrashReport, from origin: Origin) {
    var (report, line) = (report, origin.line)
    if report.message == nil { report.message = takeMessage(from: origin) }
    // The text that the runtime writes before its JSON: the signal, and nothing else.
    let index = sessions.firstIndex {
      $0.key == origin.key && $0.prefix == origin.prefix && ($0.reader as? SwiftTextLog)?.hasFrames == false
    }
    if let index {
      let session = sessions.remove(at: index)
      if isFollowed { ended.append(LogFollower.Ended(crash: session.number, report: nil)) }
      line = session.firstLine
      if report.message == nil { report.message = session.message }
      if let signal = (session.reader as? SwiftTextLog)?.signal, report.signal?.number != signal {
        report.signal = SignalInfo(number: signal, name: SignalNames.name(signal), address: report.signal?.address)
        report.type = SignalNames.name(signal)
      }
    }
    if report.timestamp == nil { report.timestamp = origin.timestamp }
    emit(report, line: line)
  }
}
