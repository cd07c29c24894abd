import Foundation
import TestSupport

/// The Swift toolchain that compiled this test.
enum Toolchain {
  /// Where its compilers (`bin`) and libraries (`lib/swift/linux`) are.
  static func path() throws -> String {
    let outcome = try ChildProcess(["/bin/sh", "-c", "readlink -f \"$(command -v swiftc)\""]).run()
    let compiler = outcome.text.split(separator: "\n").first.map(String.init) ?? ""
    return URL(fileURLWithPath: compiler).deletingLastPathComponent().deletingLastPathComponent().path
  }
}
