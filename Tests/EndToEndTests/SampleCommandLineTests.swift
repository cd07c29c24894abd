import Foundation
import TestSupport
import Testing

/// What somebody meets who runs the sample service by hand.
@Suite struct SampleCommandLineTests {
  private let service = Sample.service("debug-dynamic")

  @Test(arguments: ["--help", "-h"]) func helpListsTheWaysToCrash(_ option: String) throws {
    let outcome = try ChildProcess([service, option]).run()
    #expect(outcome.status == .exited(0) && outcome.errors.isEmpty)
    #expect(outcome.text.hasPrefix("Usage: orderd "))
    for bug in Sample.bugs { #expect(outcome.text.contains("  \(bug.request) "), "\(bug.request)") }
    #expect(outcome.text.contains("  WAIT "))
  }

  @Test(arguments: [
    (["--sqool", "x"], "no such option: --sqool"), (["POST /nothing"], "no such request: POST /nothing"),
    (["--spool"], "--spool needs a value"), (["POST /mail", "--release"], "--release needs a value"),
  ]) func mistakesAreUsageErrors(_ arguments: [String], _ message: String) throws {
    let outcome = try ChildProcess([service] + arguments).run()
    #expect(outcome.status == .exited(64) && outcome.output.isEmpty)
    #expect(outcome.errorText == "orderd: \(message)\ntry 'orderd --help'\n")
  }

  /// Without `--spool` there are crash reports too: where systemd says, else where it was started.
  @Test func aSpoolIsThereByDefault() throws {
    let run = try TemporaryDirectory("sample")
    for (name, environment) in [("here", [:]), ("state", ["STATE_DIRECTORY": "\(run.path)/state:\(run.path)/other"])] {
      #expect(mkdir("\(run.path)/\(name)", 0o700) == 0)
      let place = name == "state" ? run.path : "\(run.path)/\(name)"
      let outcome = try ChildProcess([service], environment: environment, directory: place).run()
      #expect(outcome.status == .exited(0) && outcome.errors.isEmpty, "\(outcome.errorText)")
      #expect(run.names(in: "\(name)/crashes").contains("new"), "\(name)")
    }
    let relative = try ChildProcess([service, "--spool", "mine"], directory: "\(run.path)/here").run()
    #expect(relative.errors.isEmpty && run.names(in: "here/mine").contains("new"))
  }
}
