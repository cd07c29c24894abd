import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// A debug file that ends whatever reads it ends no run of the tool.
@Suite(.enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed")) struct HostileDebugFileTests {
  /// Units of 16 bytes of code that share one line program, so that it is run for each of them.
  private static let units = 400

  private static let slow = """
      .text
      .globl main
      .type main, @function
    main:
    .Lbegin:
      ret
      .fill \(units * 16 - 1), 1, 0x90
      .size main, .-main
      .section .debug_abbrev, "", @progbits
    .Labbrev:
      .uleb128 1, 0x11
      .byte 0
      .uleb128 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0
      .byte 0
      .section .debug_info, "", @progbits
      .set .Lat, .Lbegin
      .rept \(units)
      .long 28
      .value 4
      .long .Labbrev
      .byte 8
      .uleb128 1
      .long .Lline
      .quad .Lat, 16
      .set .Lat, .Lat + 16
      .endr
      .section .debug_line, "", @progbits
    .Lline:
      .long .Lline_end - .Lline_start
    .Lline_start:
      .value 4
      .long .Lprogram - .Lheader
    .Lheader:
      .byte 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0
      .string "a.c"
      .byte 0, 0, 0, 0
    .Lprogram:
      .byte 0, 9, 2
      .quad .Lbegin
      .fill 20000000, 1, 6
      .byte 0, 1, 1
    .Lline_end:
      .section .note.GNU-stack, "", @progbits

    """

  private func compile(_ folder: TemporaryDirectory, _ name: String, _ source: String, as suffix: String) throws
    -> String
  {
    let path = try folder.file(name + suffix, Array(source.utf8))
    let outcome = try ChildProcess(["/usr/bin/gcc", "-g", "-O1", path, "-o", folder.path + "/" + name]).run()
    try #require(outcome.status == .exited(0), "\(outcome.errorText)")
    return folder.path + "/" + name
  }

  private func main(of file: String) throws -> UInt64 {
    let names = try ChildProcess(["/usr/bin/env", "nm", file]).run().text.split(separator: "\n")
    return try #require(names.first { $0.hasSuffix(" T main") }.flatMap { Hex.value($0.prefix(16)) })
  }

  /// The reader is killed in the midst of it, as a fault in libdw would do.
  @Test func oneFileEndsItsReaderAndNothingElse() throws {
    let folder = try TemporaryDirectory("hostile")
    let slow = try compile(folder, "slow", Self.slow, as: ".s")
    let good = try compile(folder, "good", "int main(void) { return 0; }\n", as: ".c")
    var report = plainReport()
    let (first, second): (UInt64, UInt64) = (0x5555_0000_0000, 0x6666_0000_0000)
    report.images = [
      Image(path: slow, buildID: nil, address: Address(rawValue: first), size: 1 << 30),
      Image(path: good, buildID: nil, address: Address(rawValue: second), size: 1 << 30),
    ]
    let slowMain = try main(of: slow)
    var addresses = (0..<Self.units).map { first + slowMain + UInt64($0) * 16 }
    addresses.insert(second + (try main(of: good)), at: 0)
    report.threads = [
      ThreadInfo(
        id: 1, crashed: true,
        frames: addresses.map {
          .captured(CapturedFrame(kind: .programCounter, address: Address(rawValue: $0), imageIndex: nil))
        })
    ]
    let input = try folder.file("crash.json", report.json())
    // Its processor time, in hundredths of a second, says that it reads.
    let script = """
      "$1" --format json --no-cache "$2" > "$3" 2> "$4" &
      tool=$!
      while kill -0 $tool 2>/dev/null; do
        reader=$(cat /proc/$tool/task/$tool/children 2>/dev/null)
        reader=${reader%% *}
        [ -n "$reader" ] || continue
        set -- $(sed 's/.*) //' /proc/$reader/stat 2>/dev/null)
        [ "${12:-0}" -ge 20 ] && kill -SEGV $reader && break
      done
      wait $tool
      """
    let outcome = try ChildProcess([
      "/bin/sh", "-c", script, "sh", SymbolicateTool.path, input, folder.path + "/out", folder.path + "/errors",
    ]).run()
    #expect(outcome.status == .exited(1))
    let errors = try String(contentsOfFile: folder.path + "/errors", encoding: .utf8)
    #expect(errors.contains("\(slow): reading it ended in SIGSEGV"), "\(errors)")
    let output = try String(contentsOfFile: folder.path + "/out", encoding: .utf8)
    // The other file's lines, and of this one what is left: its symbols.
    #expect(output.contains("good.c"))
    #expect(output.components(separatedBy: "\"function\":\"main\"").count - 1 == Self.units + 1)
    #expect(!output.contains("a.c"))
  }
}
