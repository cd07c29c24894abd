import Foundation
import TestSupport
import Testing

/// The golden files of this folder.
enum Golden {
  static func expect(_ bytes: [UInt8], _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let difference = try GoldenFile.difference(
      bytes, from: folder.appendingPathComponent("Resources/golden/\(name)"))
    #expect(difference == nil, sourceLocation: sourceLocation)
  }
}
