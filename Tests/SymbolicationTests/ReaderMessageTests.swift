import CrashModel
import TestSupport
import Testing

@testable import Symbolication

/// What goes between the process that reads and the one that asks: the same comes out, and of other bytes nothing.
@Suite struct ReaderMessageTests {
  private static let id = BuildID(bytes: [1, 2, 3, 0xff])

  private static let errors: [DebugFileError] = [
    .cannotOpen(path: "/a", code: 13), .notRegular(path: "/b"), .empty(path: ""), .notELF(path: "/ü"),
    .unsupportedArchitecture(path: "/d", detail: "32-bit ARM"), .damaged(path: "/e", detail: "cut"),
    .endedReader(path: "/f", detail: "reading it ended in SIGSEGV"),
  ]

  private static let statuses: [ImageSummary.Status] = [
    .debugInformation, .symbolsOnly(reason: nil), .symbolsOnly(reason: "why"), .dynamicSymbolsOnly(reason: "x"),
    .notFound(places: []), .notFound(places: ["/a", "/b"]), .buildIDMismatch(path: "/c", found: nil),
    .buildIDMismatch(path: "/c", found: id), .unreadable(path: "/d", reason: "no"), .noNames(path: "/e"),
  ]

  private static let requests: [ReaderRequest] = [
    .given, .image(path: FilePath("/x/y")), .find(number: 7, path: "/p", buildID: id, file: nil),
    .find(number: .max, path: "", buildID: nil, file: FilePath("/f")),
    .functions(number: 1, addresses: [0, 1, 0x1139, 0x7fff_ffff_ffff, .max], nearestLines: true),
    .functions(number: 0, addresses: [], nearestLines: false),
    .table(number: 3, key: Array(repeating: 9, count: 32)), .close(number: 2),
  ]

  private static let replies: [ReaderReply] = {
    var replies: [ReaderReply] = statuses.map { status in
      var findings = ImageFindings(status: status)
      findings.file = "/file"
      findings.isUnverified = true
      findings.refusals =
        errors.map { .init(path: $0.path, reason: .unreadable($0)) }
        + [
          .init(path: "/g", reason: .checksum(expected: 1, found: .max)),
          .init(path: "/h", reason: .debugInformation("text")),
        ]
      if let id { findings.refusals.append(.init(path: "/i", reason: .buildID(expected: id, found: nil))) }
      findings.firstVirtualAddress = 0x400000
      findings.tableIdentity = AddressTableIdentity(key: Array(repeating: 5, count: 32), name: "0102ff-0a0b")
      findings.tableCost = 123_456
      findings.conclusiveFiles = [
        FileVersion(
          path: FilePath(bytes: [0x2f, 0xff]), device: 1, inode: 2, size: 3, modified: .max, changed: 1 << 63)
      ]
      return .findings(findings)
    }
    replies += errors.map { .failure($0) }
    replies += [
      .given(
        files: [.init(path: "/a", buildID: id), .init(path: "/b", buildID: nil)], unreadableFiles: errors,
        unreadableDirectories: []),
      .image(path: "/a", buildID: nil), .table(nil), .table([]), .table([1, 2, 3]), .report([123, 125]),
      .functions(
        RawAnswers(
          functions: [
            [],
            [
              SymbolicatedFunction(
                rawFunction: "$s1a", file: "/a.swift", line: 0, column: 17, approximate: true, inlined: true,
                hasDebugInformation: true),
              SymbolicatedFunction(rawFunction: "main", file: "/a.swift", line: 12, declarationLine: 3),
            ], [SymbolicatedFunction()],
          ], time: 42)),
    ]
    return replies
  }()

  @Test func everyMessageComesOutAsItWentIn() {
    for request in Self.requests {
      #expect(request.bytes.withUnsafeBytes { ReaderRequest($0) } == request)
    }
    for reply in Self.replies {
      #expect(reply.bytes.withUnsafeBytes { ReaderReply($0) } == reply)
    }
  }

  @Test func cutMessagesAreNone() {
    for bytes in Self.requests.map(\.bytes) {
      for cut in (0..<bytes.count).map({ Array(bytes[..<$0]) }) + [bytes + [0]] {
        #expect(cut.withUnsafeBytes { ReaderRequest($0) } == nil)
      }
    }
    for bytes in Self.replies.map(\.bytes) {
      for cut in (0..<bytes.count).map({ Array(bytes[..<$0]) }) + [bytes + [0]] {
        #expect(cut.withUnsafeBytes { ReaderReply($0) } == nil)
      }
    }
  }

  /// Bytes of a process that may have lost its mind: no trap, and nothing larger than the message asks for.
  @Test func changedMessagesDoNoHarm() {
    var generator = SeededGenerator(seed: 11)
    let (requests, replies) = (Self.requests.map(\.bytes), Self.replies.map(\.bytes))
    var understood = 0
    for _ in 0..<30_000 {
      let isReply = Bool.random(using: &generator)
      var bytes = (isReply ? replies : requests).randomElement(using: &generator) ?? []
      for _ in 0..<Int.random(in: 1...6, using: &generator) where !bytes.isEmpty {
        let at = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes.remove(at: at)
        case 1: bytes.insert(0xff, at: at)
        case 2: bytes.insert(contentsOf: repeatElement(0xff, count: 9) + [0x01], at: at)
        default: bytes[at] = UInt8.random(in: 0...255, using: &generator)
        }
      }
      bytes.withUnsafeBytes {
        if isReply, let reply = ReaderReply($0) {
          understood += 1
          if case .functions(let answers) = reply { #expect(answers.functions.count <= bytes.count) }
          // What was understood can be said again.
          #expect(reply.bytes.withUnsafeBytes { ReaderReply($0) } == reply)
        } else if let request = ReaderRequest($0) {
          understood += 1
          if case .functions(_, let addresses, _) = request { #expect(addresses.count <= bytes.count) }
        }
      }
    }
    #expect(understood > 100)
  }

  /// The name of a table becomes that of a file.
  @Test func noNameLeadsOutOfTheCache() {
    for name in ["", "../../etc/passwd", "a/b", ".hidden", "a\0b", String(repeating: "a", count: 700)] {
      var findings = ImageFindings(status: .debugInformation)
      findings.tableIdentity = AddressTableIdentity(key: Array(repeating: 5, count: 32), name: name)
      #expect(ReaderReply.findings(findings).bytes.withUnsafeBytes { ReaderReply($0) } == nil)
    }
  }
}
