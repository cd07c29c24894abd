import CrashModel
import Testing

/// The hash of a hang: what every sample had decides, not what the thread happened to do.
@Suite struct HangHashTests {
  private func frame(_ function: String, inlined: Bool = false) -> Frame {
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: .returnAddress, trust: .cfi, address: Address(rawValue: 0x1000), imageIndex: 0),
      status: .resolved)
    frame.function = function
    frame.rawFunction = function
    frame.inlined = inlined
    frame.hasDebugInformation = true
    return .symbolicated(frame)
  }

  private func hash(_ functions: [Frame], staying: Int?) -> StackAnalysis {
    var report = CrashReport(id: "1", kind: .hang, fatal: false)
    report.service = "orderd"
    report.images = [Image(path: "/opt/orderd", buildID: nil, address: Address(rawValue: 0), size: 0x10_000)]
    report.process = ProcessInfo(executable: "/opt/orderd")
    var thread = ThreadInfo(id: 1, crashed: true, frames: functions)
    thread.stayingFrames = staying
    report.threads = [thread]
    report.crashedThreadIndex = 0
    return StackHasher().analyze(report)
  }

  @Test func framesThatMoveDoNotCount() {
    let one = hash([frame("step_one"), frame("loop"), frame("serve")], staying: 2)
    let other = hash([frame("deeper"), frame("step_two"), frame("loop"), frame("serve")], staying: 2)
    #expect(one.hash == other.hash)
    #expect(one.blame?.function == "loop")
    #expect(hash([frame("step_one"), frame("loop"), frame("serve")], staying: 3).hash != one.hash)
    #expect(hash([frame("step_one"), frame("loop")], staying: nil).blame?.function == "step_one")
  }

  @Test func whatIsInlinedIntoTheInnermostOneGoesToo() {
    let inlined = hash([frame("step", inlined: true), frame("loop"), frame("serve")], staying: 2)
    #expect(inlined.blame?.function == "loop")
    let outer = hash([frame("step"), frame("inner", inlined: true), frame("loop"), frame("serve")], staying: 3)
    #expect(outer.blame?.function == "step")
  }

  @Test func moreThanThereIsIsAllOfIt() {
    #expect(hash([frame("loop")], staying: 99).blame?.function == "loop")
    #expect(hash([frame("loop")], staying: 0).blame == nil)
  }
}
