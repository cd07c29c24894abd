internal import CrashModel

/// What a reader is asked.
enum ReaderRequest: Equatable {
  /// What the search was given.
  case given
  case image(path: FilePath)
  /// What a core says.
  case core(path: FilePath)
  /// The files of an image, to be known by a number from then on.
  case find(number: UInt32, path: String, buildID: BuildID?, file: FilePath?)
  case functions(number: UInt32, addresses: [UInt64], nearestLines: Bool)
  case table(number: UInt32, key: [UInt8])
  /// Is not answered.
  case close(number: UInt32)

  var isAnswered: Bool { if case .close = self { false } else { true } }
}

/// What it answers.
enum ReaderReply: Equatable {
  case given(files: [GivenFile], unreadableFiles: [DebugFileError], unreadableDirectories: [DebugFileError])
  case image(path: String, buildID: BuildID?)
  case failure(DebugFileError)
  case findings(ImageFindings)
  case functions(RawAnswers)
  case table([UInt8]?)
  /// A `crash-report/1` document.
  case report([UInt8])

  struct GivenFile: Equatable {
    var path: String
    var buildID: BuildID?
  }
}

extension ReaderRequest {
  var bytes: [UInt8] {
    var writer = MessageWriter()
    switch self {
    case .given: writer.byte(1)
    case .image(let path):
      writer.byte(2)
      writer.blob(path.bytes)
    case .find(let number, let path, let buildID, let file):
      writer.byte(3)
      writer.number(UInt64(number))
      writer.text(path)
      writer.buildID(buildID)
      writer.optional(file) { $0.blob($1.bytes) }
    case .functions(let number, let addresses, let nearestLines):
      writer.byte(4)
      writer.number(UInt64(number))
      writer.addresses(addresses)
      writer.flag(nearestLines)
    case .table(let number, let key):
      writer.byte(5)
      writer.number(UInt64(number))
      writer.blob(key)
    case .close(let number):
      writer.byte(6)
      writer.number(UInt64(number))
    case .core(let path):
      writer.byte(7)
      writer.blob(path.bytes)
    }
    return writer.bytes
  }

  /// - Returns: nil for bytes that are no request.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = MessageReader(bytes)
    switch reader.byte() {
    case 1: self = .given
    case 2: self = .image(path: FilePath(bytes: reader.blob()))
    case 3:
      self = .find(
        number: reader.integer32(), path: reader.text(), buildID: reader.buildID(),
        file: reader.optional { FilePath(bytes: $0.blob()) })
    case 4:
      self = .functions(number: reader.integer32(), addresses: reader.addresses(), nearestLines: reader.flag())
    case 5: self = .table(number: reader.integer32(), key: Array(reader.blob()))
    case 6: self = .close(number: reader.integer32())
    case 7: self = .core(path: FilePath(bytes: reader.blob()))
    default: return nil
    }
    guard reader.isWhole else { return nil }
  }
}

extension ReaderReply {
  var bytes: [UInt8] {
    var writer = MessageWriter()
    switch self {
    case .given(let files, let unreadableFiles, let unreadableDirectories):
      writer.byte(1)
      writer.list(files) { writer, file in
        writer.text(file.path)
        writer.buildID(file.buildID)
      }
      writer.list(unreadableFiles) { $0.error($1) }
      writer.list(unreadableDirectories) { $0.error($1) }
    case .image(let path, let buildID):
      writer.byte(2)
      writer.text(path)
      writer.buildID(buildID)
    case .failure(let error):
      writer.byte(3)
      writer.error(error)
    case .findings(let findings):
      writer.byte(4)
      writer.findings(findings)
    case .functions(let answers):
      writer.byte(5)
      writer.answers(answers)
    case .table(let bytes):
      writer.byte(6)
      writer.optional(bytes) { $0.blob($1) }
    case .report(let document):
      writer.byte(7)
      writer.blob(document)
    }
    return writer.bytes
  }

  /// - Returns: nil for bytes that are no reply.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = MessageReader(bytes)
    switch reader.byte() {
    case 1:
      self = .given(
        files: reader.list { GivenFile(path: $0.text(), buildID: $0.buildID()) },
        unreadableFiles: reader.list { $0.error() }, unreadableDirectories: reader.list { $0.error() })
    case 2: self = .image(path: reader.text(), buildID: reader.buildID())
    case 3: self = .failure(reader.error())
    case 4: self = .findings(reader.findings())
    case 5: self = .functions(reader.answers())
    case 6: self = .table(reader.optional { Array($0.blob()) })
    case 7: self = .report(Array(reader.blob()))
    default: return nil
    }
    guard reader.isWhole else { return nil }
  }
}

// MARK: Parts of messages

extension MessageWriter {
  mutating func buildID(_ id: BuildID?) { blob(id?.bytes ?? []) }

  fileprivate mutating func error(_ error: DebugFileError) {
    switch error {
    case .cannotOpen(let path, let code):
      byte(1)
      text(path)
      number(Int(code))
    case .notRegular(let path):
      byte(2)
      text(path)
    case .empty(let path):
      byte(3)
      text(path)
    case .notELF(let path):
      byte(4)
      text(path)
    case .unsupportedArchitecture(let path, let detail):
      byte(5)
      text(path)
      text(detail)
    case .damaged(let path, let detail):
      byte(6)
      text(path)
      text(detail)
    case .endedReader(let path, let detail):
      byte(7)
      text(path)
      text(detail)
    case .notCore(let path, let detail):
      byte(8)
      text(path)
      text(detail)
    }
  }

  fileprivate mutating func refusal(_ refusal: FoundDebugFiles.Refusal) {
    text(refusal.path)
    switch refusal.reason {
    case .buildID(let expected, let found):
      byte(1)
      buildID(expected)
      buildID(found)
    case .checksum(let expected, let found):
      byte(2)
      number(UInt64(expected))
      number(UInt64(found))
    case .unreadable(let error):
      byte(3)
      self.error(error)
    case .debugInformation(let text):
      byte(4)
      self.text(text)
    case .symbols(let text):
      byte(5)
      self.text(text)
    }
  }

  fileprivate mutating func status(_ status: ImageSummary.Status) {
    switch status {
    case .debugInformation: byte(1)
    case .symbolsOnly(let reason):
      byte(2)
      optional(reason) { $0.text($1) }
    case .dynamicSymbolsOnly(let reason):
      byte(3)
      optional(reason) { $0.text($1) }
    case .notFound(let places):
      byte(4)
      list(places) { $0.text($1) }
    case .buildIDMismatch(let path, let found):
      byte(5)
      text(path)
      buildID(found)
    case .unreadable(let path, let reason):
      byte(6)
      text(path)
      text(reason)
    case .noNames(let path):
      byte(7)
      text(path)
    }
  }

  mutating func findings(_ findings: ImageFindings) {
    status(findings.status)
    optional(findings.file) { $0.text($1) }
    flag(findings.isUnverified)
    list(findings.refusals) { $0.refusal($1) }
    optional(findings.firstVirtualAddress) { $0.number($1) }
    optional(findings.tableIdentity) { writer, identity in
      writer.blob(identity.key)
      writer.text(identity.name)
    }
    number(findings.tableCost)
    list(findings.conclusiveFiles) { writer, file in
      writer.blob(file.path.bytes)
      for value in [file.device, file.inode, file.size, file.modified, file.changed] { writer.number(value) }
    }
  }

  /// Names and paths once each, and then by their numbers, from 1 on.
  fileprivate mutating func answers(_ answers: RawAnswers) {
    var numbers: [String: Int] = [:]
    var strings: [String] = []
    func string(_ text: String?) -> Int {
      guard let text else { return 0 }
      if let known = numbers[text] { return known }
      strings.append(text)
      numbers[text] = strings.count
      return strings.count
    }
    var body = MessageWriter()
    body.list(answers.functions) { body, functions in
      body.list(functions) { body, function in
        body.byte(
          (function.approximate ? 1 : 0) | (function.inlined ? 2 : 0) | (function.hasDebugInformation ? 4 : 0))
        body.number(string(function.rawFunction))
        body.number(string(function.file))
        for value in [function.line, function.column, function.declarationLine] {
          // 0 for none; a line is no negative number.
          body.number(value.map { UInt64(clamping: $0) &+ 1 } ?? 0)
        }
      }
    }
    number(answers.time)
    number(answers.splitCost)
    list(answers.companionProblems) { $0.text($1) }
    list(strings) { $0.text($1) }
    append(body)
  }
}

extension MessageReader {
  fileprivate mutating func buildID() -> BuildID? { BuildID(bytes: blob()) }

  fileprivate mutating func error() -> DebugFileError {
    let kind = byte()
    let path = text()
    switch kind {
    case 1: return .cannotOpen(path: path, code: Int32(clamping: integer()))
    case 2: return .notRegular(path: path)
    case 3: return .empty(path: path)
    case 4: return .notELF(path: path)
    case 5: return .unsupportedArchitecture(path: path, detail: text())
    case 6: return .damaged(path: path, detail: text())
    case 7: return .endedReader(path: path, detail: text())
    case 8: return .notCore(path: path, detail: text())
    default:
      fail()
      return .notELF(path: path)
    }
  }

  fileprivate mutating func refusal() -> FoundDebugFiles.Refusal {
    let path = text()
    switch byte() {
    case 1:
      if let expected = buildID() {
        return .init(path: path, reason: .buildID(expected: expected, found: buildID()))
      }
    case 2: return .init(path: path, reason: .checksum(expected: integer32(), found: integer32()))
    case 3: return .init(path: path, reason: .unreadable(error()))
    case 4: return .init(path: path, reason: .debugInformation(text()))
    case 5: return .init(path: path, reason: .symbols(text()))
    default: break
    }
    fail()
    return .init(path: path, reason: .debugInformation(""))
  }

  fileprivate mutating func status() -> ImageSummary.Status {
    switch byte() {
    case 1: return .debugInformation
    case 2: return .symbolsOnly(reason: optional { $0.text() })
    case 3: return .dynamicSymbolsOnly(reason: optional { $0.text() })
    case 4: return .notFound(places: list { $0.text() })
    case 5: return .buildIDMismatch(path: text(), found: buildID())
    case 6: return .unreadable(path: text(), reason: text())
    case 7: return .noNames(path: text())
    default:
      fail()
      return .notFound(places: [])
    }
  }

  mutating func findings() -> ImageFindings {
    var findings = ImageFindings(status: status())
    findings.file = optional { $0.text() }
    findings.isUnverified = flag()
    findings.refusals = list { $0.refusal() }
    findings.firstVirtualAddress = optional { $0.number() }
    findings.tableIdentity = optional { reader in
      let key = Array(reader.blob())
      let name = reader.text()
      // It becomes the name of a file in the cache.
      let isName =
        !name.isEmpty && name.utf8.allSatisfy { (48...57).contains($0) || (97...122).contains($0) || $0 == 45 }
      if key.count != 32 || !isName || name.utf8.count > 600 { reader.fail() }
      return AddressTableIdentity(key: key, name: name)
    }
    findings.tableCost = integer()
    findings.conclusiveFiles = list { reader in
      FileVersion(
        path: FilePath(bytes: reader.blob()), device: reader.number(), inode: reader.number(), size: reader.number(),
        modified: reader.number(), changed: reader.number())
    }
    return findings
  }

  fileprivate mutating func answers() -> RawAnswers {
    let time = integer()
    let splitCost = integer()
    let companionProblems = list { $0.text() }
    let strings = list { $0.text() }
    func string(_ reader: inout MessageReader) -> String? {
      let number = reader.integer()
      if number == 0 { return nil }
      guard number <= strings.count else {
        reader.fail()
        return nil
      }
      return strings[number - 1]
    }
    func line(_ reader: inout MessageReader) -> Int? {
      let value = reader.number()
      return value == 0 ? nil : Int(clamping: value - 1)
    }
    let functions = list { reader in
      reader.list { reader in
        let flags = reader.byte()
        return SymbolicatedFunction(
          rawFunction: string(&reader), file: string(&reader), line: line(&reader), column: line(&reader),
          declarationLine: line(&reader), approximate: flags & 1 != 0, inlined: flags & 2 != 0,
          hasDebugInformation: flags & 4 != 0)
      }
    }
    return RawAnswers(functions: functions, time: time, splitCost: splitCost, companionProblems: companionProblems)
  }
}
