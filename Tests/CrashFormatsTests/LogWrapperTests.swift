import CrashModel
import Foundation
import Testing

/// The same crash through every log system.
struct LogWrapperTests {
  /// How a log system writes the lines of a process.
  enum Wrapper: String, CaseIterable, CustomTestStringConvertible {
    case compose, composeWithTimes, docker, dockerJSON, cri, criPartial, journalShort, journalISO, journalPrecise,
      journalFull
    case journalJSON, journalBytes, syslog, heroku, foreman, kubectlPrefix, processManager, logger, loggerWithTimes
    case messageJSON, msgJSON, textPayload, jsonPayload, fluentBit, wholeMessage, composeJSON, carriageReturns,
      escapesLost, caret
    case datadog, elastic, splunk, openTelemetry, storeArray, loki, cloudWatch, fluentdFile, fluentBitOutput, logfmt,
      literalFeeds, daemontools, moreutils, nerdctl, stern, composeColored, processManagerNumbered

    var testDescription: String { rawValue }

    /// - Parameter process: tells two of them apart.
    func wrap(_ text: String, process: Int = 1) -> [String] {
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      func time(_ index: Int) -> String {
        "2026-11-30T05:12:\(String(format: "%02d", index / 30 % 60)).\(String(format: "%09d", index * 1_001))Z"
      }
      func clock(_ index: Int) -> String { "05:12:\(String(format: "%02d", index / 30 % 60))" }
      func json(_ text: String) -> String {
        let data = (try? JSONSerialization.data(withJSONObject: [text], options: [.withoutEscapingSlashes])) ?? Data()
        return String(String(decoding: data, as: UTF8.self).dropFirst().dropLast())
      }
      func each(_ body: (Int, String) -> String) -> [String] { lines.enumerated().map { body($0.offset, $0.element) } }
      switch self {
      case .compose: return each { _, line in "api-\(process)  | \(line)" }
      case .composeWithTimes: return each { "api-\(process)  | \(time($0)) \($1)" }
      case .docker: return each { "\(time($0)) \($1)" }
      case .dockerJSON:
        return each { #"{"log":\#(json($1 + "\n")),"stream":"stderr","time":"\#(time($0))"}"# }
      case .cri: return each { "\(time($0)) \(process == 1 ? "stderr" : "stdout") F \($1)" }
      case .criPartial:
        return lines.enumerated().flatMap { index, line -> [String] in
          let half = line.index(line.startIndex, offsetBy: line.count / 2)
          return ["\(time(index)) stderr P \(line[..<half])", "\(time(index)) stderr F \(line[half...])"]
        }
      case .journalShort: return each { "Nov 30 \(clock($0)) web-3 api[\(1_000 + process)]: \($1)" }
      case .journalISO: return each { "2026-11-30T\(clock($0))+0000 web-3 api[\(1_000 + process)]: \($1)" }
      case .journalPrecise: return each { "Nov 30 \(clock($0)).042137 web-3 api[\(1_000 + process)]: \($1)" }
      case .journalFull: return each { "Mon 2026-11-30 \(clock($0)) UTC web-3 api[\(1_000 + process)]: \($1)" }
      case .journalJSON:
        return each {
          #"{"__REALTIME_TIMESTAMP":"1764479553\#(String(format: "%06d", $0))","_PID":"\#(1_000 + process)","MESSAGE":\#(json($1))}"#
        }
      case .journalBytes:
        return each { _, line in
          #"{"_PID":"\#(1_000 + process)","MESSAGE":[\#(line.utf8.map { "\($0)" }.joined(separator: ","))]}"#
        }
      case .syslog: return each { "<13>Nov 30 \(clock($0)) web-3 api[\(1_000 + process)]: \($1)" }
      case .heroku: return each { "2026-11-30T\(clock($0)).123456+00:00 app[web.\(process)]: \($1)" }
      case .foreman: return each { "\(clock($0)) web.\(process)  | \($1)" }
      case .kubectlPrefix: return each { _, line in "[pod/api-7d4b-\(process)/app] \(line)" }
      case .processManager: return each { _, line in "api\(process): \(line)" }
      case .logger: return each { _, line in "[error] worker-\(process) \(line)" }
      case .loggerWithTimes: return each { "[2026-11-30 \(clock($0))] [info] app-\(process) - \($1)" }
      case .messageJSON:
        return each {
          #"{"level":"error","service":"api-\#(process)","message":\#(json($1)),"timestamp":"\#(time($0))"}"#
        }
      case .msgJSON: return each { #"{"time":"\#(time($0))","pid":\#(process),"msg":\#(json($1))}"# }
      case .textPayload:
        return each {
          #"{"insertId":"i\#($0)","resource":{"labels":{"pod_name":"api-\#(process)"}},"textPayload":\#(json($1)),"timestamp":"\#(time($0))"}"#
        }
      case .jsonPayload:
        return each { _, line in #"{"jsonPayload":{"message":\#(json(line))},"labels":{"pod":"p\#(process)"}}"# }
      case .fluentBit:
        return each {
          #"{"date":1764479553.5,"log":\#(json("\(time($0)) stderr F \($1)")),"kubernetes":{"pod_name":"api-\#(process)","container_name":"app"}}"#
        }
      case .wholeMessage: return [#"{"host":"web-\#(process)","message":\#(json(text))}"#]
      case .composeJSON: return each { _, line in #"api-\#(process)  | {"msg":\#(json(line))}"# }
      case .carriageReturns: return each { _, line in line + "\r" }
      case .escapesLost: return each { _, line in line.replacingOccurrences(of: "\u{1b}", with: "") }
      case .datadog:
        return each {
          #"{"id":"i\#($0)","type":"log","attributes":{"host":"web-\#(process)","message":\#(json($1)),"tags":["a:b"]}}"#
        }
      case .elastic:
        return each {
          #"{"_index":"logs","_source":{"@timestamp":"\#(time($0))","message":\#(json($1)),"host":"web-\#(process)"}}"#
        }
      case .splunk: return each { _, line in #"{"result":{"_raw":\#(json(line)),"host":"web-\#(process)"}}"# }
      case .openTelemetry:
        let records = each {
          #"{"timeUnixNano":"\#(1_764_479_553_000_000_000 + $0)","body":{"stringValue":\#(json($1))}}"#
        }
        return [#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[\#(records.joined(separator: ","))]}]}]}"#]
      // Newest first, as `gcloud logging read` gives them.
      case .storeArray:
        let entries = each { #"{"textPayload":\#(json($1)),"timestamp":"\#(time($0))"}"# }
        return ["[" + entries.reversed().joined(separator: ",") + "]"]
      case .loki:
        let pairs = each { #"["\#(1_764_479_553_000_000_000 + $0)",\#(json($1))]"# }
        return [
          #"{"status":"success","data":{"resultType":"streams","result":[{"stream":{"app":"api"},"values":["#
            + pairs.joined(separator: ",") + "]}]}}"
        ]
      case .cloudWatch:
        let events = each { #"{"timestamp":\#(1_764_479_553_000 + $0),"message":\#(json($1)),"ingestionTime":1}"# }
        return [#"{"events":[\#(events.joined(separator: ","))],"nextForwardToken":"f/1"}"#]
      case .fluentdFile:
        return each { "\(time($0))\tapp.api\t" + #"{"container_name":"api-\#(process)","log":\#(json($1))}"# }
      case .fluentBitOutput:
        return each {
          "[\($0)] app.api: [[1764479553.\(String(format: "%09d", $0)), {}], "
            + #"{"container_name":"api-\#(process)","log":\#(json($1))}]"#
        }
      case .logfmt:
        return each {
          // In quotes where it has to be.
          let needsQuotes = $1.contains(" ") || $1.contains("\"") || $1.contains("=")
          let quoted =
            "\"" + $1.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"") + "\""
          return "ts=\(time($0)) level=error pid=\(process) msg=\(needsQuotes ? quoted : $1)"
        }
      case .literalFeeds:
        // A document of the runtime's is one line, and one sample has a prefix of its own.
        if text.contains("crashReport") || text.hasPrefix("Nov 30") { return lines }
        return [
          "crash:\\n"
            + text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\n", with: "\\n")
        ]
      case .daemontools: return each { "@400000006747a6a1\(String(format: "%08x", $0)) \($1)" }
      case .moreutils: return each { "Nov 30 \(clock($0)) \($1)" }
      case .nerdctl: return each { _, line in "api-\(process) |\(line)" }
      case .stern: return each { "api-7d4b9c6f5-\(process) app \(time($0)) \($1)" }
      case .composeColored: return each { _, line in "\u{1b}[36mapi_\(process)  |\u{1b}[0m \(line)" }
      case .processManagerNumbered: return each { _, line in "\(process)|api  | \(line)" }
      case .caret: return each { _, line in line.replacingOccurrences(of: "\u{1b}", with: "#033") }
      }
    }

    /// The runtime's lines look the same for two processes.
    var tellsProcessesApart: Bool {
      ![
        .docker, .dockerJSON, .criPartial, .carriageReturns, .escapesLost, .caret, .wholeMessage, .openTelemetry,
        .storeArray, .loki,
        .cloudWatch, .literalFeeds, .daemontools, .moreutils,
      ].contains(self)
    }
  }

  /// Lines of others around a crash, and none in front: whatever a file begins with.
  private static let noise = [
    "[ NOTICE ] Server starting on http://127.0.0.1:8080", "{\"level\":\"info\",\"msg\":\"GET /orders\"}", "",
    "plain words",
    "2026-11-30T05:12:33Z info api: request id=9",
  ]

  @Test(arguments: Wrapper.allCases, LogSamples.swiftNames)
  func givesTheSame(_ wrapper: Wrapper, _ name: String) throws {
    // The lost escape characters of a private sequence cannot be told from text.
    let text = try LogSamples.text(name)
    let expected = LogSamples.content(try LogSamples.report(text))
    let found = try LogSamples.read(
      Self.noise.joined(separator: "\n") + "\n" + wrapper.wrap(text).joined(separator: "\n") + "\nthe end\n")
    #expect(found.reports.count == 1)
    let report = try #require(found.reports.first)
    #expect(LogSamples.content(report) == expected)
    if wrapper == .docker || wrapper == .cri || wrapper == .dockerJSON || wrapper == .journalJSON {
      #expect(report.timestamp != nil)
    }
  }

  @Test(arguments: Wrapper.allCases.filter(\.tellsProcessesApart))
  func interleaved(_ wrapper: Wrapper) throws {
    let texts = [try LogSamples.text("swift-index.color.txt"), try LogSamples.text("swift-async.txt")]
    let expected = try texts.map { LogSamples.content(try LogSamples.report($0)) }
    let (first, second) = (wrapper.wrap(texts[0], process: 1), wrapper.wrap(texts[1], process: 2))
    var lines: [String] = []
    for index in 0..<max(first.count, second.count) {
      if index < first.count { lines.append(first[index]) }
      if index < second.count { lines.append(second[index]) }
      lines += wrapper == .wholeMessage ? [] : [Self.noise[index % Self.noise.count]]
    }
    let found = try LogSamples.read(lines.joined(separator: "\n")).reports.map(LogSamples.content)
    #expect(found.count == 2)
    #expect(Set(found) == Set(expected))
  }

  /// The 16 KiB pieces that docker and the kubelet cut lines into.
  @Test func longLinesAreJoined() throws {
    let lines = try LogSamples.text("swift-json_full_all.txt").split(separator: "\n").map(String.init)
    let expected = LogSamples.content(try LogSamples.report(lines.joined(separator: "\n")))
    var docker: [String] = []
    var cri: [String] = []
    for line in lines {
      var rest = Substring(line + "\n")
      while !rest.isEmpty {
        let piece = rest.prefix(1_000)
        rest = rest.dropFirst(1_000)
        let text = String(decoding: try JSONSerialization.data(withJSONObject: [String(piece)]), as: UTF8.self)
          .dropFirst().dropLast()
        docker.append(#"{"log":\#(text),"stream":"stderr","time":"2026-11-30T05:12:33.042Z"}"#)
        cri.append("2026-11-30T05:12:33.042Z stderr \(rest.isEmpty ? "F" : "P") \(piece.filter { $0 != "\n" })")
      }
    }
    #expect(docker.count > lines.count)
    for text in [docker, cri] {
      #expect(LogSamples.content(try LogSamples.report(text.joined(separator: "\n"))) == expected)
    }
  }

  /// Two crashes of one process manager's child, one after the other, without a word between them.
  @Test func oneBehindTheOther() throws {
    let text = try LogSamples.text("swift-segv.txt")
    let found = try LogSamples.read(text + text + (try LogSamples.text("swift-fatal.txt"))).reports
    #expect(found.count == 3)
    // The same text twice is two crashes, each with an id of its own; read again, they have the same ids.
    #expect(Set(found.map(\.id)).count == 3)
    #expect(try LogSamples.read(text + text).reports.map(\.id) == found.prefix(2).map(\.id))
  }

  @Test func messagesStayWithTheirProcess() throws {
    let lines = [
      "api-1  | App/Cart.swift:12: Fatal error: cart overflow", "api-2  | App/Mail.swift:3: Fatal error: no host",
    ]
    let crash = try LogSamples.text("swift-segv.txt").split(separator: "\n", omittingEmptySubsequences: false)
    for process in [1, 2] {
      let log = (lines + crash.map { "api-\(process)  | \($0)" }).joined(separator: "\n")
      #expect(
        try LogSamples.report(log).message
          == (process == 1 ? "App/Cart.swift:12: Fatal error: cart overflow" : "App/Mail.swift:3: Fatal error: no host")
      )
    }
  }
}
