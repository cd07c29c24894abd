import Foundation
import TestSupport
import Testing

/// The golden files of this folder.
enum Golden {
  static func expect(_ bytes: [UInt8], _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    try GoldenFile.expect(
      bytes, at: folder.appendingPathComponent("Resources/golden/\(name)"), sourceLocation: sourceLocation)
  }
}
