public import Foundation
public import Testing

/// Output that is kept, byte for byte.
///
/// With `RECORD_GOLDEN=1` in the environment files are written anew instead of compared, and the test fails, so that nobody
/// takes such a run for a check.
public enum GoldenFile {
  /// - Parameter path: of the file, beside the tests that it belongs to.
  public static func expect(_ bytes: [UInt8], at path: String, sourceLocation: SourceLocation = #_sourceLocation) throws
  {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    if ProcessInfo.processInfo.environment["RECORD_GOLDEN"] != nil {
      try write(bytes, to: path)
      Issue.record("\(name) was recorded", sourceLocation: sourceLocation)
      return
    }
    let expected = try #require(contents(of: path), "\(name) is missing", sourceLocation: sourceLocation)
    // Of a file of many lines, the first pair that differs.
    let (left, right) = (String(decoding: bytes, as: UTF8.self), String(decoding: expected, as: UTF8.self))
    let difference = zip(left.split(separator: "\n"), right.split(separator: "\n")).first { $0 != $1 }
    #expect(
      bytes == expected, "\(name): \(difference.map { "\($0)" } ?? "of another length")", sourceLocation: sourceLocation
    )
  }

  public static func expect(_ bytes: [UInt8], at url: URL, sourceLocation: SourceLocation = #_sourceLocation) throws {
    try expect(bytes, at: url.path, sourceLocation: sourceLocation)
  }
}
