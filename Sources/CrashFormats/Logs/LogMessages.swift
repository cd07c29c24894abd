/// The words that a runtime writes before it ends the process: in no crash log, only in the lines before it.
enum LogMessages {
  private static let inside: [StaticString] = [
    "Fatal error", "Precondition failed", "Assertion failed", ": Assertion `",
  ]
  private static let atStart: [StaticString] = [
    "terminate called after throwing", "terminate called without", "free(): ", "malloc(): ", "realloc(): ",
    "calloc(): ",
    // Of a report whose stack is markup.
    "AddressSanitizer: ", "MemorySanitizer: ", "ThreadSanitizer: ", "LeakSanitizer: ", "UndefinedBehaviorSanitizer: ",
    "*** stack smashing detected", "*** buffer overflow detected", "munmap_chunk(): ", "corrupted ", "double free",
  ]
  private static let limit = 4_096

  /// The message that a line holds.
  static func message(in line: ArraySlice<UInt8>) -> String? {
    let text = line.trimmed
    guard !text.isEmpty, text.count <= limit else { return nil }
    let isMessage =
      inside.contains { mark in
        guard let index = text.firstIndex(of: mark) else { return false }
        // `main.swift:21: Fatal error: …`; in the middle of a sentence it is a log's own.
        let before = text[..<index]
        return before.isEmpty || before.ends(with: ": ") || mark.isInTheMiddle
      } || atStart.contains { text.starts(with: $0) }
    guard isMessage else { return nil }
    return text.string
  }

  /// A line of which only the prefix, not yet known, may hide a message.
  static func isMentioned(in line: ArraySlice<UInt8>) -> Bool {
    line.count <= limit && (inside + atStart).contains { line.contains($0) }
  }

  /// `  what():  …`, the second line of C++'s message.
  static func continues(_ message: String, with line: ArraySlice<UInt8>) -> Bool {
    line.trimmed.starts(with: "what():") && message.hasPrefix("terminate called after throwing")
  }
}

extension StaticString {
  /// Of glibc's `program: file.c:3: function: Assertion `…' failed.` only the middle is fixed.
  fileprivate var isInTheMiddle: Bool { withUTF8Buffer { $0.first == UInt8(ascii: ":") } }
}
