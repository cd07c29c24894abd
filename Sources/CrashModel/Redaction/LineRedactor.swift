/// Redacts a text that comes line by line, and what goes over several of them: a private key.
package struct LineRedactor: Sendable {
  private let redactor: Redactor
  private let mark: [UInt8]
  /// How many lines of a private key may still come; 0 outside of one.
  private var keyLines = 0
  /// Of 8192 bits it has about a hundred. One that was cut must not take the rest of a log with it.
  private static let longestKey = 128

  package init(_ redactor: Redactor) {
    self.redactor = redactor
    mark = Array(redactor.privateKeyMark.utf8)
  }

  /// - Parameter line: with or without the line feed at its end, which stays.
  /// - Returns: what to write instead; nil for the line as it is.
  package mutating func redact(_ line: Span<UInt8>) -> [UInt8]? {
    if keyLines > 0 { return insideKey(line) }
    let redacted = redactor.redacted(line)
    // Only a line in which something was found can have begun a key.
    if redacted != nil, Self.opensKey(line) { keyLines = Self.longestKey }
    return redacted.map { Self.withLineFeed(of: line, $0) }
  }

  // Each line of the key becomes the mark, so that the text keeps its lines.
  private mutating func insideKey(_ line: Span<UInt8>) -> [UInt8] {
    keyLines -= 1
    guard let end = line.find("-----END ", from: 0) else { return Self.withLineFeed(of: line, mark) }
    keyLines = 0
    var behind = line.end(from: end + 9) { $0 != UInt8(ascii: "-") && $0 != 10 }
    behind = line.end(from: behind) { $0 == UInt8(ascii: "-") }
    let rest = line.bytes(from: behind)
    // Another key may begin there.
    return mark + (redact(rest.span) ?? rest)
  }

  private static func opensKey(_ line: Span<UInt8>) -> Bool {
    guard let last = SecretRules.privateKeys(line).last else { return false }
    return line.find("-----END ", from: last.lowerBound) == nil
  }

  // A key that is not closed takes the line feed with it.
  private static func withLineFeed(of line: Span<UInt8>, _ text: [UInt8]) -> [UInt8] {
    guard line.count > 0, line[line.count - 1] == 10, text.last != 10 else { return text }
    return text + [10]
  }
}

extension Span<UInt8> {
  fileprivate func bytes(from start: Int) -> [UInt8] { (Swift.min(start, count)..<count).map { self[$0] } }
}
