import CrashModel
import Foundation
import Glibc
import TestSupport

/// The tool as it was built, run as a process.
enum SymbolicateTool {
  static let path = builtProduct("symbolicate")

  static func run(_ arguments: String..., input: [UInt8] = [], environment: [String: String] = [:]) throws
    -> ChildProcess.Outcome
  {
    var process = ChildProcess([path] + arguments, environment: environment)
    process.input = input
    return try process.run()
  }
}

extension TemporaryDirectory {
  /// Writes a file and gives its path.
  func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    let url = URL(fileURLWithPath: path).appendingPathComponent(name)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: url)
    return url.path
  }
}

/// A crash without images, so that nothing on this machine changes what is known of it.
func plainReport(_ id: String = "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b", release: String = "1.4.0") -> CrashReport {
  var report = CrashReport(id: id)
  report.service = "orderd"
  report.release = release
  report.timestamp = Timestamp(rawValue: 1_796_015_553_042_000_000)
  report.type = "SIGSEGV"
  report.signal = SignalInfo(number: 11, name: "SIGSEGV", address: Address(rawValue: 0))
  report.message = "mail of alice@" + "example.com"
  report.crashedThreadIndex = 0
  report.threads = [
    ThreadInfo(
      id: 1, crashed: true,
      frames: [.captured(CapturedFrame(kind: .programCounter, address: Address(rawValue: 0x1234)))])
  ]
  return report
}
