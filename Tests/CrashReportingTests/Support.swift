import CrashModel
import CrashReporting
import Foundation
import Glibc
import RecordForge
import TestSupport

/// A spool in a temporary directory, and what tests do with it.
final class SpoolFixture: Sendable {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory("spool")
    path = directory.path + "/spool"
    _ = try Spool(path: path)
  }

  func put(_ forge: RecordForge) throws { try put(forge.bytes(), name: forge.fileName) }

  func put(_ bytes: [UInt8], name: String) throws { try write(bytes, to: "\(path)/records/\(name)") }

  /// What the next start does; returns what it reported.
  @discardableResult
  func process(
    limits: SpoolLimits = SpoolLimits(), clock: SpoolClock = .now(), machine: MachineState = .current()
  ) throws -> [Diagnostic] {
    let collected = Collected()
    NextStart.run(spool: try Spool(path: path), limits: limits, clock: clock, machine: machine) { collected.add($0) }
    return collected.diagnostics
  }

  func names(_ folder: String) -> [String] { directory.names(in: "spool/" + folder) }

  func reportBytes() -> [Int] { names("new").map { contents(of: "\(path)/new/\($0)")?.count ?? 0 } }

  func remove(_ name: String) { unlink("\(path)/\(name)") }

  /// The stored reports, by the time of the crash.
  func reports() throws -> [[String: Any]] {
    try names("new").map { name in
      let bytes = contents(of: "\(path)/new/\(name)") ?? []
      return try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] ?? [:]
    }
  }
}

// `@unchecked`: the array is reached under the lock only.
private final class Collected: @unchecked Sendable {
  private let lock = NSLock()
  private var list: [Diagnostic] = []

  func add(_ diagnostic: Diagnostic) { lock.withLock { list.append(diagnostic) } }
  var diagnostics: [Diagnostic] { lock.withLock { list } }
}

/// A record of a crash of which `bug` decides the stack hash.
func forge(_ number: UInt64, bug: UInt64 = 0, at seconds: Int64 = 1_790_000_000) -> RecordForge {
  var forge = RecordForge(number: number)
  forge.crashTime = seconds * 1_000_000_000 + Int64(number % 1_000) * 1_000_000
  forge.images = [
    .init(path: "/opt/orderd/bin/orderd", address: 0x5555_0000_0000, size: 0x10_0000, buildID: Array(1...20))
  ]
  forge.frames = [0x5555_0000_1000 + bug * 16, 0x5555_0000_9000]
  return forge
}

func runner() -> String { builtProduct("SpoolRunner") }
