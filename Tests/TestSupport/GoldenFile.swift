public import Foundation

/// Output that is kept, byte for byte.
///
/// With `RECORD_GOLDEN=1` in the environment files are written anew instead of compared, and that counts as a difference, so
/// that nobody takes such a run for a check.
public enum GoldenFile {
  /// What sets `bytes` apart from the file at `path`, in a line for whoever reads the failure; nil where nothing does.
  ///
  /// The test expects nil of it, and not this function: a target that is no test target is part of every build of the
  /// package, and one against the static Swift runtime has no `Testing` module.
  ///
  /// - Parameter path: of the file, beside the tests that it belongs to.
  /// - Throws: where the file could not be recorded.
  public static func difference(_ bytes: [UInt8], from path: String) throws -> String? {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    if ProcessInfo.processInfo.environment["RECORD_GOLDEN"] != nil {
      try write(bytes, to: path)
      return "\(name) was recorded"
    }
    guard let expected = contents(of: path) else { return "\(name) is missing" }
    guard bytes != expected else { return nil }
    // Of a file of many lines, the first pair that differs.
    let (left, right) = (String(decoding: bytes, as: UTF8.self), String(decoding: expected, as: UTF8.self))
    let pair = zip(left.split(separator: "\n"), right.split(separator: "\n")).first { $0 != $1 }
    return "\(name): \(pair.map { "\($0)" } ?? "of another length")"
  }

  public static func difference(_ bytes: [UInt8], from url: URL) throws -> String? {
    try difference(bytes, from: url.path)
  }
}
