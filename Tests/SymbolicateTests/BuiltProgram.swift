import CrashModel
import Foundation
import TestSupport
import Testing

/// A C program that is compiled for a test, in whatever states the test wants it.
struct BuiltProgram {
  let folder: TemporaryDirectory
  /// With debug information and a build id.
  let path: String
  let buildID: String

  static let source = """
    static __attribute__((noinline)) int inner(volatile int *p) { return *p + 1; }
    static __attribute__((noinline)) int outer(volatile int *p) { return inner(p) + 1; }
    __attribute__((visibility("default"))) int exported(volatile int *p) { return outer(p) + VALUE; }
    int main(int argc, char **argv) { (void)argv; return exported(&argc); }

    """

  init(_ name: String = "program", in folder: TemporaryDirectory? = nil, value: Int = 1) throws {
    let folder = try folder ?? TemporaryDirectory("built")
    self.folder = folder
    path = try Self.compile(name, in: folder, ["-DVALUE=\(value)"])
    buildID = try Self.buildID(of: path)
  }

  /// - Parameter flags: override those that are given anyway.
  @discardableResult
  static func compile(_ name: String, in folder: TemporaryDirectory, _ flags: [String]) throws -> String {
    let source = try folder.file("sources/\(name).c", Array(Self.source.utf8))
    let path = folder.path + "/" + name
    try run(
      ["/usr/bin/gcc", "-g", "-O1", "-rdynamic", "-DVALUE=1", "-Wl,--build-id"] + flags + ["-o", path, source])
    return path
  }

  /// Puts a changed copy beside the program.
  func objcopy(_ name: String, _ flags: String...) throws -> String {
    let copy = folder.path + "/" + name
    try Self.run(["/usr/bin/objcopy"] + flags + [path, copy])
    return copy
  }

  static func buildID(of path: String) throws -> String {
    let notes = try run(["/usr/bin/env", "readelf", "-n", path]).split(separator: "\n")
    return String(try #require(notes.first { $0.contains("Build ID:") }?.split(separator: " ").last))
  }

  /// A crash in `inner`, called by `outer`, in a process whose program lay at `place`.
  func report(place: String) throws -> CrashReport {
    let symbols = try Self.run(["/usr/bin/env", "nm", path]).split(separator: "\n").map { $0.split(separator: " ") }
    func address(of name: String) throws -> UInt64 {
      try #require(symbols.first { $0.last.map(String.init) == name }.flatMap { Hex.value($0[0]) })
    }
    var report = CrashReport(id: "0192a3b4-c5d6-7e8f-9a0b-1c2d3e4f5a6b")
    report.service = "program"
    report.type = "SIGSEGV"
    report.signal = SignalInfo(number: 11, name: "SIGSEGV")
    report.process = ProcessInfo(executable: place)
    let base: UInt64 = 0x5555_0000_0000
    report.images = [
      Image(path: place, buildID: BuildID(buildID), address: Address(rawValue: base), size: 1 << 20),
      Image(
        path: "/lib/x86_64-linux-gnu/libother.so", buildID: BuildID("0102030405"),
        address: Address(rawValue: 0x7f00_0000_0000), size: 1 << 20),
    ]
    func frame(_ kind: FrameKind, _ image: Int, _ distance: UInt64) -> Frame {
      .captured(
        CapturedFrame(
          kind: kind, address: Address(rawValue: report.images[image].address.rawValue + distance), imageIndex: image,
          imageOffset: ImageOffset(rawValue: distance)))
    }
    report.threads = [
      ThreadInfo(
        id: 1, crashed: true,
        frames: [
          frame(.programCounter, 0, try address(of: "inner")), frame(.returnAddress, 0, try address(of: "outer") + 5),
          frame(.returnAddress, 1, 0x1000),
        ])
    ]
    report.crashedThreadIndex = 0
    return report
  }

  @discardableResult
  static func run(_ command: [String]) throws -> String {
    let outcome = try ChildProcess(command).run()
    guard outcome.status == .exited(0) else {
      throw ChildProcess.LaunchFailure(description: "\(command): \(outcome.status): \(outcome.errorText)")
    }
    return outcome.text
  }
}

/// One object a line.
func objects(_ outcome: ChildProcess.Outcome, schema: String? = nil) throws -> [[String: Any]] {
  try outcome.text.split(separator: "\n").map {
    try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
  }.filter { schema == nil || $0["schema"] as? String == schema }
}
