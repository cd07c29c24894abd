import Foundation

/// A program of this package that was built together with the running tests.
///
/// Beside the tests' own executable; that of the test runner is elsewhere where it loads them as a library, and then the
/// debug build's is taken.
public func builtProduct(_ name: String) -> String {
  let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
  let beside = URL(fileURLWithPath: executable).deletingLastPathComponent().appendingPathComponent(name).path
  if FileManager.default.isExecutableFile(atPath: beside) { return beside }
  let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
  return "\(root)/.build/debug/\(name)"
}
