import Foundation
import TestSupport
import Testing

/// Output that is kept in `Resources`, byte for byte.
///
/// With `RECORD_GOLDEN=1` in the environment the files are written anew, and the tests fail, so that nobody takes such a run
/// for a check.
enum Golden {
  static func expect(_ bytes: [UInt8], _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    try expect(bytes, at: folder.appendingPathComponent("Resources/golden/\(name)"), sourceLocation: sourceLocation)
  }

  static func expect(_ bytes: [UInt8], at url: URL, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let (path, name) = (url.path, url.lastPathComponent)
    if ProcessInfo.processInfo.environment["RECORD_GOLDEN"] != nil {
      try write(bytes, to: path)
      Issue.record("\(name) was recorded", sourceLocation: sourceLocation)
      return
    }
    let expected = try #require(contents(of: path), "\(name) is missing", sourceLocation: sourceLocation)
    let (left, right) = (String(decoding: bytes, as: UTF8.self), String(decoding: expected, as: UTF8.self))
    let difference = zip(left.split(separator: "\n"), right.split(separator: "\n")).first { $0 != $1 }
    #expect(
      bytes == expected, "\(name): \(difference.map { "\($0)" } ?? "of another length")", sourceLocation: sourceLocation
    )
  }
}
