import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// A terminal of a test's own: a tmux server with one pane. tmux is installed by `.ci/install-packages`.
private final class Terminal {
  let folder: TemporaryDirectory
  private let socket: String

  /// - Parameter script: run by a shell in the pane; what it was given as `$1`, `$2`… are the arguments.
  init(_ script: String, _ arguments: String..., environment: [String: String] = [:]) throws {
    folder = try TemporaryDirectory("terminal")
    socket = folder.path + "/socket"
    let ending = "\ntmux -S '\(socket)' wait-for -S ended; exec cat"
    let variables = environment.map { "\($0.key)=\($0.value)" }
    _ = try tmux(
      ["-f", "/dev/null", "new-session", "-d", "-x", "180", "-y", "60", "/usr/bin/env"] + variables
        + ["/bin/sh", "-c", script + ending, "-", SymbolicateTool.path] + arguments)
  }

  deinit { _ = try? tmux(["kill-server"]) }

  @discardableResult
  func tmux(_ arguments: [String]) throws -> String {
    // Whoever runs the tests may have wishes of his own.
    let environment = [
      "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": folder.path, "TERM": "xterm-256color", "NO_COLOR": "",
      "CLICOLOR_FORCE": "", "TMUX": "",
    ]
    var child = ChildProcess(["/usr/bin/env", "tmux", "-S", socket] + arguments, environment: environment)
    child.limit = 120
    let outcome = try child.run()
    guard outcome.status == .exited(0) else {
      throw ChildProcess.LaunchFailure(description: "tmux \(arguments): \(outcome.status) \(outcome.errorText)")
    }
    return outcome.text
  }

  /// Waits until the script has come to its end.
  func waitForEnd() throws { try tmux(["wait-for", "ended"]) }

  /// What stands on the screen and above it, with colors as SGR escapes where asked for.
  func screen(colors: Bool = false) throws -> String {
    try tmux(["capture-pane", "-p", "-J", "-S", "-"] + (colors ? ["-e"] : []))
  }
}

struct TerminalTests {
  private func shown(_ options: String, environment: [String: String] = [:]) throws -> (plain: String, colored: String)
  {
    let program = try BuiltProgram()
    var report = try program.report(place: program.path)
    // Two frames of a library, which has no file here.
    report.threads[0].frames.append(report.threads[0].frames[2])
    let path = try program.folder.file("crash.json", report.json())
    let terminal = try Terminal("\"$1\" --no-cache \(options) \"$2\"", path, environment: environment)
    try terminal.waitForEnd()
    return (try terminal.screen(), try terminal.screen(colors: true))
  }

  @Test func colorAndFolding() throws {
    let (plain, colored) = try shown("")
    #expect(plain.contains("Program crashed"))
    #expect(plain.contains("(2 runtime frames)") && plain.contains(" inner in program at "), "\(plain)")
    #expect(!plain.contains("in libother.so + "))
    #expect(colored.contains("\u{1b}[95minner"), "\(colored)")
  }

  @Test func flagsAndEnvironmentDecide() throws {
    let all = try shown("--frames all --color never")
    #expect(all.plain.contains("in libother.so + ") && !all.plain.contains("runtime frames"))
    #expect(!all.colored.contains("\u{1b}["))
    #expect(!(try shown("", environment: ["NO_COLOR": "1"]).colored.contains("\u{1b}[95m")))
    #expect(!(try shown("", environment: ["TERM": "dumb"]).colored.contains("\u{1b}[95m")))
    #expect(try shown("--color always", environment: ["NO_COLOR": "1"]).colored.contains("\u{1b}[95m"))
  }

  /// From half a second on, as long as it works; nothing is left of it.
  @Test func progressComesAndGoes() throws {
    let folder = try TemporaryDirectory()
    let pipe = folder.path + "/reports"
    #expect(mkfifo(pipe, 0o600) == 0)
    // For both directions, so that opening it waits for nobody; without waiting for room, so that a tool that is gone is a
    // failure and no hang.
    let writer = open(pipe, O_RDWR | O_CLOEXEC | O_NONBLOCK)
    #expect(writer >= 0)
    let terminal = try Terminal("\"$1\" -f ndjson -o \"$2/out\" - <\"$2/reports\"; echo ended with $?", folder.path)
    let line = plainReport().json() + [10]
    var screen = ""
    var count = 0
    // A report for each look, however slow the machine is.
    while !screen.contains("symbolicate: reading"), count < 2_000 {
      let written = line.withUnsafeBytes { Glibc.write(writer, $0.baseAddress, $0.count) }
      try #require(written == line.count, "\(screen)")
      count += 1
      screen = try terminal.screen()
    }
    #expect(screen.contains(" report") && screen.contains(": standard input"), "\(screen)")
    close(writer)
    try terminal.waitForEnd()
    let end = try terminal.screen()
    #expect(end.hasPrefix("ended with 0\n"), "\(end)")
    #expect(!end.contains("symbolicate:"))
    let lines = String(decoding: try #require(contents(of: folder.path + "/out")), as: UTF8.self).split(separator: "\n")
    #expect(lines.count == count + 1)
  }

  /// Also while one report takes its time: a server that is asked for a file and never answers.
  @Test func progressWhileAServerIsAsked() throws {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(server) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        #expect(bind(server, $0, size) == 0 && listen(server, 8) == 0 && getsockname(server, $0, &size) == 0)
      }
    }
    let program = try BuiltProgram()
    let path = try program.folder.file("crash.json", try program.report(place: "/nowhere/program").json())
    let terminal = try Terminal(
      "\"$1\" --debuginfod http://127.0.0.1:$3 \"$2\"", path, String(UInt16(bigEndian: address.sin_port)),
      environment: ["SYMBOLICATE_CACHE_DIR": "", "HOME": program.folder.path, "XDG_CACHE_HOME": program.folder.path])
    var screen = ""
    var looks = 0
    while !screen.contains("symbolicate: reading debug files"), looks < 2_000 {
      screen = try terminal.screen()
      looks += 1
    }
    #expect(screen.contains("symbolicate: reading debug files, 1 report, "), "\(screen)")
  }

  /// `addr` reads addresses for as long as they come.
  @Test func progressOfAddresses() throws {
    let program = try BuiltProgram()
    let folder = try TemporaryDirectory()
    let pipe = folder.path + "/addresses"
    #expect(mkfifo(pipe, 0o600) == 0)
    let writer = open(pipe, O_RDWR | O_CLOEXEC | O_NONBLOCK)
    #expect(writer >= 0)
    let terminal = try Terminal(
      "\"$1\" addr -e \"$2\" <\"$3/addresses\" >\"$3/out\"; echo ended with $?", program.path, folder.path)
    let lines = Array(String(repeating: "0x1139\n", count: 9_000).utf8)
    var screen = ""
    var looks = 0
    var written = 0
    while !screen.contains("symbolicate: reading, "), looks < 2_000 {
      // As much as there is room for: more always lies ready.
      while true {
        let start = written % lines.count
        let count = lines.withUnsafeBytes { Glibc.write(writer, $0.baseAddress! + start, lines.count - start) }
        guard count > 0 else { break }
        written += count
      }
      looks += 1
      screen = try terminal.screen()
    }
    #expect(screen.contains(" addresses, "), "\(screen)")
    close(writer)
    try terminal.waitForEnd()
    let end = try terminal.screen()
    #expect(!end.contains("symbolicate: reading"), "\(end)")
  }

  /// `check` and `store add` of a directory say which file they are at. Of each program a copy, so that it is another file.
  @Test(arguments: ["check", "store add"]) func progressOfFiles(_ command: String) throws {
    let program = try BuiltProgram()
    let folder = try TemporaryDirectory()
    let bytes = try #require(contents(of: program.path))
    let words = command == "store add" ? "store add --store \"$2.store\"" : "check"
    // How many files take longer than half a second, and than two looks at the screen, is the machine's affair.
    var files = 0
    var screen = ""
    for enough in [1_500, 6_000, 24_000] where !screen.contains("symbolicate: reading, ") {
      for number in files..<enough { _ = try folder.file("program-\(number)", bytes) }
      files = enough
      let terminal = try Terminal("\"$1\" \(words) \"$2\" -o \"$2.out\"; echo ended with $?", folder.path)
      var looks = 0
      repeat {
        screen = try terminal.screen()
        looks += 1
      } while !screen.contains("symbolicate: reading, ") && !screen.contains("ended with") && looks < 5_000
      try terminal.waitForEnd()
      #expect(try terminal.screen().hasPrefix("ended with "))
      for rest in [".store", ".out"] { _ = try ChildProcess(["/bin/rm", "-rf", "--", folder.path + rest]).run() }
    }
    #expect(screen.contains(" files, ") && screen.contains("/program-"), "\(screen)")
  }

  /// A fast run draws nothing, and a pipe never gets anything of it.
  @Test func noProgressWhereNobodyLooks() throws {
    let outcome = try SymbolicateTool.run("-f", "ndjson", "-", input: plainReport().json())
    #expect(outcome.errors.isEmpty)
    let folder = try TemporaryDirectory()
    let path = try folder.file("crash.json", plainReport().json())
    let terminal = try Terminal("\"$1\" -f ndjson -o \"$2.out\" \"$2\"; echo done", path)
    try terminal.waitForEnd()
    #expect(try terminal.screen().hasPrefix("done\n"))
  }
}
