internal import CrashGrouping
internal import CrashModel
private import Glibc

/// The file of `--rules`.
enum RulesFile {
  /// Rules are written by hand; whoever names a larger file most likely named the wrong one.
  private static let limit = 1 << 20

  /// What is wrong with the file, with its name and the line.
  struct Failure: Error { var message: String }

  static func read(_ path: FilePath) throws(Failure) -> GroupingRules {
    let bytes = try contents(of: path)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Failure(message: "\(path): not UTF-8, and so no rules file")
    }
    do {
      return try GroupingRules(text)
    } catch {
      throw Failure(message: "\(path):\(error.line): \(error.problem)")
    }
  }

  private static func contents(of path: FilePath) throws(Failure) -> [UInt8] {
    let file = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
    guard file >= 0 else { throw Failure(message: "\(path): \(errnoText(errno))") }
    defer { close(file) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = piece.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Failure(message: "\(path): \(errnoText(errno))") }
      if count == 0 { return bytes }
      bytes += piece.prefix(count)
      guard bytes.count <= limit else {
        throw Failure(message: "\(path): larger than 1 MiB, and so no rules file")
      }
    }
  }
}
