import Foundation
import TestSupport
import Testing

/// The tests' own tool: a program that does not end fails its test and is ended, with everything that it started.
@Suite struct ChildProcessTests {
  @Test func aProgramThatHangsIsEndedAndDescribed() throws {
    let run = try TemporaryDirectory("hang")
    // A child of its own that holds the pipes, and one that is behind closed pipes.
    for script in [
      "sleep 1000 & echo $! >child; wait", "sleep 1000 & echo $! >child; exit 0",
      "exec >&- 2>&-; sleep 1000 & echo $! >child; wait",
    ] {
      var child = ChildProcess(["/bin/sh", "-c", script], directory: run.path)
      child.limit = 0.5
      let hang = #expect(throws: ChildProcess.Hang.self) { try child.run() }
      let text = try #require(hang).description
      #expect(text.hasPrefix("hung: /bin/sh -c "))
      #expect(text.contains("\"sleep\" state S, waits in "), "\(text)")
      #expect(text.contains("SigBlk 0000000000000000"))
      let bytes = try #require(contents(of: "\(run.path)/child"))
      let pid = try #require(pid_t(String(decoding: bytes.dropLast(), as: UTF8.self)))
      #expect(comesToItsEnd(pid))
    }
  }

  /// Gone, or a zombie that nobody waits for in a container without an init. It was told to end, and does so by itself.
  private func comesToItsEnd(_ pid: pid_t) -> Bool {
    for _ in 0..<1_000_000 {
      guard let line = contents(of: "/proc/\(pid)/stat") else { return true }
      if String(decoding: line, as: UTF8.self).contains(") Z ") { return true }
      sched_yield()
    }
    return false
  }

  @Test func aLineThatNeverComesIsNotWaitedForForEver() throws {
    var child = ChildProcess(["/bin/sh", "-c", "printf half; sleep 1000"])
    child.limit = 0.5
    let running = try child.start()
    #expect(running.readLine() == "half")
    #expect(throws: ChildProcess.Hang.self) { try running.finish() }
  }

  @Test func aProgramThatEndsInTimeIsNotTouched() throws {
    var child = ChildProcess(["/bin/sh", "-c", "cat; echo to stderr >&2; kill -USR1 $$"])
    child.input = Array("some input".utf8)
    let outcome = try child.run()
    #expect(outcome.status == .signaled(SIGUSR1))
    #expect(outcome.text == "some input" && outcome.errorText == "to stderr\n")
  }
}
