import CrashFormats
import CrashModel
import Foundation
import TestSupport
import Testing

/// What holds for every format whatever the report says.
struct WriterPropertyTests {
  private static let seeds = (0..<150).map { UInt64($0) }

  /// Nothing that a terminal acts on, that reorders what is read, or that has no shape.
  private func expectPrintable(_ text: String, _ seed: UInt64) {
    let hidden = text.unicodeScalars.first { scalar in
      let value = scalar.value
      return value < 0x20 && value != 0x0A || 0x7F...0x9F ~= value || 0x200B...0x200F ~= value
        || 0x2028...0x202E ~= value || value == 0xFEFF || 0xE0000...0xE0FFF ~= value
    }
    #expect(hidden == nil, "seed \(seed): U+\(String(hidden?.value ?? 0, radix: 16))")
  }

  @Test func textFormats() {
    for seed in Self.seeds {
      let report = hostileReport(seed: seed)
      var writer = TextReportWriter()
      (writer.showsAllThreads, writer.foldsRuntimeFrames) = (true, seed % 2 == 0)
      expectPrintable(writer.text(of: report), seed)
      expectPrintable(MarkdownReportWriter().text(of: report), seed)
      expectPrintable(SymbolizerMarkupWriter().text(of: report), seed)
      var stacks = FoldedStackWriter()
      stacks.add(report)
      expectPrintable(stacks.text(), seed)
    }
  }

  @Test func jsonFormats() throws {
    for seed in Self.seeds {
      let report = hostileReport(seed: seed)
      let documents = [
        SwiftCrashLogWriter().json(of: report), OTLPLogWriter().json(of: report), SentryEventWriter().event(of: report),
      ]
      for document in documents {
        expectPrintable(String(decoding: document, as: UTF8.self), seed)
        #expect(!document.contains(UInt8(ascii: "\n")), "seed \(seed)")
        #expect(try JSONSerialization.jsonObject(with: Data(document)) is [String: Any], "seed \(seed)")
        try expectNoKeyTwice(document, seed)
      }
    }
  }

  /// Parsers differ on the second one. Foundation keeps one of two equal keys, so that a count of keys shows it.
  private func expectNoKeyTwice(_ document: [UInt8], _ seed: UInt64) throws {
    func count(_ value: Any) -> Int {
      if let object = value as? [String: Any] { return object.count + object.values.reduce(0) { $0 + count($1) } }
      return (value as? [Any])?.reduce(0) { $0 + count($1) } ?? 0
    }
    var written = 0
    var isInString = false
    var isEscaped = false
    for (index, byte) in document.enumerated() {
      if isInString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
          if index + 1 < document.count, document[index + 1] == UInt8(ascii: ":") { written += 1 }
        }
      } else if byte == UInt8(ascii: "\"") {
        isInString = true
      }
    }
    #expect(count(try JSONSerialization.jsonObject(with: Data(document))) == written, "seed \(seed)")
  }

  /// Logs that give names only: no address of a frame, no place of an image.
  @Test func framesWithoutAddresses() {
    var report = sampleReport()
    report.images = [Image(path: "app", buildID: BuildID("0102"), address: Address(rawValue: 0), size: 0)]
    report.signal = nil
    let captured = CapturedFrame(kind: .programCounter, address: nil, imageIndex: 0)
    report.threads[0].frames = [
      .symbolicated(SymbolicatedFrame(captured: captured, status: .resolved, function: "work()", inApp: true)),
      .symbolicated(SymbolicatedFrame(captured: captured, status: .noSymbols)),
    ]
    let text = TextReportWriter().text(of: report)
    #expect(text.contains("0 - work() in app\n") && text.contains(" in app (no symbols)\n"), "\(text)")
    let event = String(decoding: SentryEventWriter().event(of: report), as: UTF8.self)
    #expect(!event.contains("image_addr") && !event.contains("debug_meta"))
    #expect(event.contains(#"{"function":"work()","in_app":true,"package":"app"}"#), "\(event)")
    #expect(!String(decoding: SwiftCrashLogWriter().json(of: report), as: UTF8.self).contains("images"))
    #expect(!SymbolizerMarkupWriter().text(of: report).contains("{{{mmap"))
    var stacks = FoldedStackWriter()
    stacks.add(report)
    #expect(stacks.text() == "orderd;app;work() 4\n")
  }

  /// The grammar of folded lines, read by rules of its own.
  @Test func foldedLines() throws {
    var stacks = FoldedStackWriter()
    var expected: UInt64 = 0
    for seed in Self.seeds {
      var report = hostileReport(seed: seed)
      report.suppressedCount = report.suppressedCount.map { min(max($0, 0), 1_000) }
      if stacks.add(report) { expected += 1 + UInt64(report.suppressedCount ?? 0) }
    }
    #expect(expected > 100)
    var total: UInt64 = 0
    for line in stacks.text().split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      let space = try #require(line.lastIndex(of: " "))
      total += try #require(UInt64(line[line.index(after: space)...]), "\(line)")
      let frames = line[..<space].split(separator: ";", omittingEmptySubsequences: false)
      #expect(frames.count >= 2 && frames.allSatisfy { !$0.isEmpty }, "\(line)")
    }
    #expect(total == expected)
  }

  /// Elements of markup are only those that the writer makes, whatever the names are.
  @Test func markupElements() {
    let allowed = ["{{{reset}}}", "{{{module:", "{{{mmap:", "{{{bt:"]
    for seed in Self.seeds {
      let report = hostileReport(seed: seed)
      let text = SymbolizerMarkupWriter().text(of: report)
      var elements = 0
      for line in text.split(separator: "\n") where line.contains("{{{") {
        elements += 1
        #expect(allowed.contains { line.hasPrefix($0) } && line.hasSuffix("}}}"), "seed \(seed): \(line)")
        #expect(line.dropFirst(3).dropLast(3).allSatisfy { $0 != "{" && $0 != "}" }, "seed \(seed): \(line)")
      }
      #expect(elements >= 1)
      #expect(text.hasPrefix("{{{reset}}}\n"))
    }
  }
}
