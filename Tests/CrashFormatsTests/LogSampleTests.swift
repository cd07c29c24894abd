import CrashModel
import Foundation
import TestSupport
import Testing

struct LogSampleTests {
  /// Every log gives the report that lies beside it, to the byte.
  @Test(arguments: LogSamples.names)
  func givesTheReport(_ name: String) throws {
    let url = LogSamples.folder.appendingPathComponent("reports/\(name).json")
    let found = try LogSamples.read(try LogSamples.bytes(name))
    #expect(found.others == [])
    let text = found.reports.map { String(decoding: $0.json(pretty: true), as: UTF8.self) }.joined(separator: "\n")
    #expect(try GoldenFile.difference(Array(text.utf8), from: url) == nil)
  }

  /// Nothing is passed over: as many threads, frames, images and registers as an expression finds in the text.
  @Test(
    arguments: LogSamples.swiftNames.filter {
      !$0.contains("json") && !$0.contains("color") && !$0.contains("in-process") && !$0.contains("server")
    })
  func readsEveryLine(_ name: String) throws {
    let text = try LogSamples.text(name)
    let report = try LogSamples.report(text)
    let lines = text.split(separator: "\n").map(String.init)
    func count(_ pattern: String) throws -> Int {
      let expression = try NSRegularExpression(pattern: pattern)
      return lines.count { expression.firstMatch(in: $0, range: NSRange($0.startIndex..., in: $0)) != nil }
    }
    #expect(report.threads.count == (try count(#"^Thread \d+( ".*")?( crashed)?:$"#)))
    #expect(report.images.count { $0.isPlaced } == (try count(#"^0x[0-9a-f]{16}–0x[0-9a-f]{16} "#)))
    let frames = report.threads.flatMap(\.frames).count { $0.captured != nil }
    #expect(frames == (try count(#"^ *\d+ .*( in |0x[0-9a-f]{16}$)"#)), "\(name)")
    // `cs`, `fs` and `gs` share a line.
    let registers = report.threads.map(\.registers.count).reduce(0, +)
    let perThread = try count(#"^ *[a-z][a-z0-9]* 0x[0-9a-f]{16}"#) + 3 * count("^cs 0x")
    #expect(registers == perThread)
    for frame in report.threads.flatMap(\.frames) {
      guard let address = frame.captured?.address, address.rawValue != 0 else { continue }
      let digits = String(address.rawValue, radix: 16)
      #expect(text.contains("0x" + String(repeating: "0", count: 16 - digits.count) + digits))
    }
  }

  /// `docker logs --tail N`: the beginning is missing, and what is there is read.
  @Test(arguments: ["swift-preset-full.txt", "swift-vapor_default.txt", "swift-async.txt"])
  func logsWithoutTheirHead(_ name: String) throws {
    let lines = try LogSamples.text(name).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let whole = try LogSamples.report(lines.joined(separator: "\n"))
    let isCall = { (line: String) in line.contains(" [ra] ") && line.contains(" 0x") }
    let calls = lines.indices.filter { isCall(lines[$0]) }
    #expect(calls.count > 3)
    for start in calls {
      let report = try LogSamples.report(lines[start...].joined(separator: "\n"))
      #expect(report.images == whole.images)
      #expect(report.crashedThreadIndex != nil && report.notes.contains("the log begins in the middle of the crash"))
      let expected = lines[start...].count { isCall($0) }
      let found = report.threads.flatMap(\.frames).count { $0.captured?.kind == .returnAddress && !$0.isInlined }
      #expect(found == expected, "\(name) from line \(start)")
    }
  }

  /// The same crash under different settings of the runtime is one bug.
  @Test func presetsAgree() throws {
    let hasher = StackHasher()
    func hash(_ name: String) throws -> StackHash {
      hasher.analyze(try LogSamples.report(try LogSamples.text(name))).hash
    }
    let full = try hash("swift-preset-full.txt")
    #expect(full.quality == .dwarf)
    for name in ["medium", "friendly", "friendly-color", "images-none", "limit"] {
      #expect(try hash("swift-preset-\(name).txt") == full, "\(name)")
    }
    let index = try hash("swift-index.txt")
    for name in ["swift-index.color.txt", "swift-vapor_default.txt", "swift-async.txt"] {
      #expect(try hash(name) == index, "\(name)")
    }
  }

  @Test func kindsFollowTheMarks() throws {
    let report = try LogSamples.report(try LogSamples.text("swift-async.txt"))
    let crashed = try #require(report.crashedThread)
    #expect(report.crashedThreadIndex == 1)
    #expect(crashed.name == "oot.default-qos")
    #expect(
      crashed.frames.compactMap(\.captured?.kind)
        == [.programCounter] + Array(repeating: .returnAddress, count: 5) + Array(repeating: .asyncResume, count: 5))
    #expect(crashed.status == .partial)
    // Also where registers stand behind the frames.
    let vapor = try #require(LogSamples.report(try LogSamples.text("swift-vapor_default.txt")).crashedThread)
    #expect(vapor.frames.compactMap(\.captured?.kind) == crashed.frames.compactMap(\.captured?.kind))
    let inlined = try #require(LogSamples.report(try LogSamples.text("swift-rel_index.txt")).crashedThread)
    #expect(inlined.frames.prefix(3).compactMap(\.symbolicated?.inlined) == [true, true, false])
    // What was inlined is of the frame's kind and address.
    #expect(Set(inlined.frames.prefix(3).compactMap(\.captured)).count == 1)
    // Without marks all but the innermost are calls.
    let friendly = try #require(LogSamples.report(try LogSamples.text("swift-preset-friendly.txt")).crashedThread)
    #expect(friendly.frames.compactMap(\.captured?.kind).dropFirst().allSatisfy { $0 == .returnAddress })
  }

  @Test(arguments: ["swift-preset-limit.txt", "swift-preset-limit-off.txt", "swift-preset-limit-json.txt"])
  func gapsAreCounted(_ name: String) throws {
    let crashed = try #require(LogSamples.report(try LogSamples.text(name)).crashedThread)
    #expect(crashed.frames.contains(.omitted(count: 192)))
    #expect(crashed.frames.count == 16)
  }

  /// An aborted process has no faulting address; what the runtime prints there is who sent the signal.
  @Test func abortHasASender() throws {
    let report = try LogSamples.report(try LogSamples.text("swift-abort.txt"))
    #expect(report.signal == SignalInfo(number: 6, name: "SIGABRT", senderPID: 0x2e6d))
  }

  @Test func addressesWithoutImages() throws {
    let report = try LogSamples.report(try LogSamples.text("swift-preset-noimages-off.txt"))
    #expect(report.images == [])
    #expect(
      report.notes.contains { $0.contains("does not say where images were loaded") && $0.contains("images=mentioned") })
    #expect(report.threads.flatMap(\.frames).allSatisfy { $0.symbolicated == nil })
  }

  /// The three addresses of a module that is named with offsets have one beginning.
  @Test func offsetsGiveImages() throws {
    let systemd = try LogSamples.report(try LogSamples.text("coredumpctl.txt"))
    let api = try #require(systemd.images.first { $0.path == "/srv/api" })
    #expect(api.address.rawValue == 0x55fd_efc8_e000)
    #expect(api.buildID?.description == "a4b7e00e1409a2223c02df7c20e9291932ccdc25")
    let sanitizer = try LogSamples.report(try LogSamples.text("asan-off-clang.txt"))
    let frame = try #require(sanitizer.crashedThread?.frames.first?.captured)
    let image = sanitizer.images[try #require(frame.imageIndex)]
    // The number in the log is the file's own.
    #expect(image.virtualAddress(of: image.offset(of: frame.lookupAddress)) == 0x12538e)
  }

  /// What a debugger's session lists places its frames; a frame that has only a name has no address.
  @Test func debuggersListImages() throws {
    for name in ["gdb-mappings.txt", "lldb-images.txt"] {
      let report = try LogSamples.report(try LogSamples.text(name))
      let api = try #require(report.images.first { $0.path == "/srv/api" })
      #expect(api.address.rawValue == 0x5555_5555_4000)
      let frame = try #require(report.crashedThread?.frames.first?.captured)
      #expect(report.images[try #require(frame.imageIndex)] == api)
      #expect(api.offset(of: frame.address).rawValue == 0x1129)
    }
    #expect(
      try LogSamples.report(try LogSamples.text("lldb-images.txt")).images.first?.buildID?.description
        == "a4b7e00e1409a2223c02df7c20e9291932ccdc25")
    let arm = try LogSamples.report(try LogSamples.text("swift-aarch64-json.txt"))
    let named = try #require(arm.crashedThread?.frames[2])
    #expect(named.captured?.hasAddress == false && named.symbolicated?.function == "Store.load(id:)")
    #expect(String(decoding: arm.json(), as: UTF8.self).contains(#""kind":"return_address","status""#))
  }

  /// A session shows its threads again and again: where the process stopped, as a list, one by one, all.
  @Test func oneSessionOfLLDBIsOneCrash() throws {
    let report = try LogSamples.report(try LogSamples.text("lldb-14-session.txt"))
    #expect(report.threads.map(\.frames.count) == [5, 7, 4])
    #expect(report.threads.map(\.id) == [14517, 14440, 14516])
    #expect(report.threads.map(\.crashed) == [true, false, false] && report.threads[0].name == "crasher")
    #expect(report.signal?.number == 11 && report.signal?.address?.rawValue == 0 && report.process?.id == 14440)

    let swift = try LogSamples.report(try LogSamples.text("lldb-swift-release.txt"))
    #expect(swift.reason == .bounds && swift.message == "Swift runtime failure: Index out of range")
    let calls = try #require(swift.crashedThread).frames.compactMap(\.captured)
    // Four functions inlined into one that lldb hides, and their caller.
    #expect(calls.map(\.kind) == Array(repeating: .programCounter, count: 4) + [.returnAddress])
    #expect(Set(calls.prefix(4).map(\.address.rawValue)) == [0x5555_5555_6649])
  }

  @Test func crashesOfLLDBAreToldApart() throws {
    let heading = "* thread #1, name = 'api', stop reason = signal SIGSEGV: invalid address (fault address: 0x8)\n"
    let first =
      "    frame #0: 0x0000555555551111 api`one(p=0x0) at a.c:1\n    frame #1: 0x0000555555552222 api`main at a.c:9\n"
    let second = first.replacingOccurrences(of: "0x0000555555551111 api`one", with: "0x0000555555553333 api`two")
    // The same again is shown again; another frame behind the same heading is another crash, with its signal.
    #expect(try LogSamples.read(heading + first + heading + first).reports.count == 1)
    let two = try LogSamples.read(heading + first + heading + second).reports
    #expect(two.map { $0.threads[0].frames[0].symbolicated?.function } == ["one", "two"])
    #expect(two.allSatisfy { $0.signal?.number == 11 && $0.signal?.address?.rawValue == 8 })
    // The process went on, and stopped again.
    let resumed = heading + first + "Process 7 resuming\nProcess 7 stopped\n" + heading + first
    #expect(try LogSamples.read(resumed).reports.count == 2)
    // The user looks at another thread.
    let other = "(lldb) thread select 2\n* thread #2, name = 'io'\n    frame #0: 0x0000555555554444 api`wait + 4\n"
    let selected = try LogSamples.report(heading + first + other)
    #expect(selected.threads.map(\.crashed) == [true, false] && selected.crashedThreadIndex == 0)
    let stopped = try LogSamples.report(
      "* thread #1, name = 'api', stop reason = breakpoint 1.1\n" + first)
    #expect(stopped.kind == .snapshot && !stopped.fatal && stopped.signal == nil)
  }

  /// The values of arguments are none of the name's, whatever stands in them.
  @Test func argumentsAreNoneOfTheName() throws {
    let text = """
      * thread #1, stop reason = signal SIGBUS
        * frame #0: 0x1000 api`parse(text="a) (b", depth=1) at a.c:1
          frame #1: 0x2000 api`std::function<void (int)>::operator()(this=0x10, 3) const
          frame #2: 0x3000 api`Tree<Key>.visit(body=(api`closure #1 in go at b.swift:4), depth=2) at b.swift:7:3 [opt]
      """
    let functions = try LogSamples.report(text).threads[0].frames.map { $0.symbolicated?.function }
    #expect(functions[0] == "parse" && functions[2] == "Tree<Key>.visit")
    #expect(functions[1]?.hasPrefix("std::function<void (int)>::operator()") == true)
  }

  /// What the journal knows beside the message, in each of its formats.
  @Test func journalFieldsAreRead() throws {
    for name in ["coredumpctl-swift.txt", "journal-swift-verbose.txt", "journal-swift.json"] {
      let report = try LogSamples.report(try LogSamples.text(name))
      #expect(report.signal?.number == 4 && report.process?.host == "vm", "\(name)")
      #expect(report.process?.executable == "/srv/orders/orders-release" && report.process?.id == 17251, "\(name)")
      #expect(report.timestamp?.rfc3339 == "2026-11-30T23:54:44.000Z", "\(name)")
    }
    // `journalctl` itself shows the message alone, its further lines below the first one.
    let short = try LogSamples.report(try LogSamples.text("journal-swift-short.txt"))
    #expect(short.process?.id == 17251 && short.threads.count == 4)
    #expect(short.timestamp?.rfc3339 == "2026-11-30T23:54:47.000Z")
  }

  /// A line that looks like the beginning of a crash takes no message away from the one that follows.
  @Test func messagesAreKeptForTheCrash() throws {
    let report = try LogSamples.report(
      "api/main.swift:3: Fatal error: no more stock\nProcess 12 stopped\n" + (try LogSamples.text("swift-text_off.txt"))
    )
    #expect(report.message == "api/main.swift:3: Fatal error: no more stock")
  }

  @Test func everyCutIsReadOrRefused() throws {
    for name in LogSamples.names {
      let bytes = try LogSamples.bytes(name)
      for length in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 40)) {
        let cut = Array(bytes.prefix(length))
        if let found = try? LogSamples.read(cut) {
          #expect(!found.reports.isEmpty || !found.others.isEmpty, "\(name) \(length)")
        }
      }
    }
  }
}

extension Frame {
  fileprivate var isInlined: Bool { symbolicated?.inlined ?? false }
}
