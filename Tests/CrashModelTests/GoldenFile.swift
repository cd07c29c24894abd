import Foundation
import TestSupport

/// Output that is kept, byte for byte.
///
/// With `RECORD_GOLDEN=1` in the environment files are written anew instead of compared, and the comparison fails, so that
/// nobody takes such a run for a check.
enum GoldenFile {
  /// Why a test fails.
  struct Difference: Error, CustomStringConvertible {
    var description: String
  }

  static func compare(_ bytes: [UInt8], with path: String) throws {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    if getenv("RECORD_GOLDEN") != nil {
      try write(bytes, to: path)
      throw Difference(description: "\(name) was recorded")
    }
    guard let expected = contents(of: path) else { throw Difference(description: "\(name) is missing") }
    guard bytes != expected else { return }
    let (left, right) = (String(decoding: bytes, as: UTF8.self), String(decoding: expected, as: UTF8.self))
    let difference = zip(left.split(separator: "\n"), right.split(separator: "\n")).first { $0 != $1 }
    throw Difference(description: "\(name): \(difference.map { "\($0)" } ?? "of another length")")
  }
}
