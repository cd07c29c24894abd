import CrashModel
import Foundation
import Symbolication
import TestSupport
import Testing

/// A temporary directory in which a test compiles its programs; removed with the object.
final class Workshop: Sendable {
  private let directory: TemporaryDirectory
  var path: String { directory.path }

  init() throws { directory = try TemporaryDirectory("symbolication") }

  func file(_ name: String) -> String { path + "/" + name }

  @discardableResult
  func write(_ name: String, _ text: String) throws -> String {
    try FileManager.default.createDirectory(
      atPath: (file(name) as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try text.write(toFile: file(name), atomically: false, encoding: .utf8)
    return file(name)
  }

  /// Runs a tool in the directory and returns what it wrote to standard output.
  @discardableResult
  func run(_ tool: String, _ arguments: String..., input: String? = nil) throws -> String {
    try run(tool, arguments, input: input)
  }

  @discardableResult
  func run(_ tool: String, _ arguments: [String], input: String? = nil) throws -> String {
    // The Swift compiler leaves empty folders where it puts its temporary files.
    var process = ChildProcess(
      [try Workshop.locate(tool)] + arguments, environment: ["TMPDIR": path], directory: path)
    process.input = Array((input ?? "").utf8)
    let outcome = try process.run()
    guard outcome.status == .exited(0) else {
      throw ChildProcess.LaunchFailure(
        description: "\(tool) \(arguments.joined(separator: " ")): \(outcome.status): \(outcome.errorText)")
    }
    return outcome.text
  }

  static func exists(_ tool: String) -> Bool { (try? locate(tool)) != nil }

  static func locate(_ tool: String) throws -> String {
    if tool.hasPrefix("/") { return tool }
    for directory in (Foundation.ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":") {
      let path = directory + "/" + tool
      if access(String(path), X_OK) == 0 { return String(path) }
    }
    throw ChildProcess.LaunchFailure(description: "\(tool) is not in PATH")
  }

  /// A tool of the Swift toolchain, which lies beside `swiftc` and need not be in `PATH`.
  static func locateToolchain(_ tool: String) throws -> String {
    let compiler = URL(fileURLWithPath: try locate("swiftc")).resolvingSymlinksInPath()
    let path = compiler.deletingLastPathComponent().appendingPathComponent(tool).path
    return access(path, X_OK) == 0 ? path : try locate(tool)
  }

  struct Instruction {
    var address: UInt64
    /// Address of the byte behind it.
    var next: UInt64
    var text: String
    /// Label that it stands behind.
    var symbol: String
  }

  /// The file's instructions, as objdump sees them.
  func disassemble(_ file: String) throws -> [Instruction] {
    var result: [Instruction] = []
    var symbol = ""
    for line in try run("objdump", "-d", "-w", file).split(separator: "\n") {
      if line.hasSuffix(">:"), let open = line.firstIndex(of: "<") {
        symbol = String(line[line.index(after: open)...].dropLast(2))
        continue
      }
      // `  1139:\te8 f2 fe ff ff \tcall 1030 <abort@plt>`
      let parts = line.split(separator: "\t", maxSplits: 2)
      guard parts.count == 3, let address = Hex.value(parts[0].dropLast().drop { $0 == " " }) else { continue }
      let size = UInt64(parts[1].filter { $0 != " " }.count / 2)
      result.append(.init(address: address, next: address + size, text: String(parts[2]), symbol: symbol))
    }
    return result
  }

  /// The addresses of the last byte of each call instruction, optionally only of calls to one function.
  func calls(in file: String, to callee: String? = nil) throws -> [UInt64] {
    try disassemble(file).filter { instruction in
      (instruction.text.hasPrefix("call") || instruction.text.hasPrefix("bl"))
        && (callee.map { instruction.text.contains("<\($0)>") || instruction.text.contains("<\($0)@") } ?? true)
    }.map { $0.next - 1 }
  }

  func buildID(of file: String) throws -> BuildID {
    try #require(try DebugFile(path: file).buildID)
  }
}

/// A report of one thread whose frames lie in one image.
func report(_ frames: [CapturedFrame], image: Image) -> CrashReport {
  var report = CrashReport(id: "0190a000-0000-7000-8000-000000000000")
  report.images = [image]
  report.threads = [ThreadInfo(crashed: true, frames: frames.map { .captured($0) })]
  report.crashedThreadIndex = 0
  return report
}

func frame(_ address: UInt64, _ kind: FrameKind = .programCounter, image: Int? = 0) -> CapturedFrame {
  CapturedFrame(kind: kind, address: Address(rawValue: address), imageIndex: image)
}

extension CrashReport {
  /// Functions of the first thread, innermost first.
  var names: [String?] { threads[0].frames.map { $0.symbolicated?.function } }
}
