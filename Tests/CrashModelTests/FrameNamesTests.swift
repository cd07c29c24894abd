import Testing

@testable import CrashModel

@Suite struct FrameNamesTests {
  private let captured = CapturedFrame(kind: .programCounter, address: Address(rawValue: 1))

  /// Frames share their names and are values all the same.
  @Test func copiesDoNotChangeTogether() {
    let first = SymbolicatedFrame(
      captured: captured, status: .resolved, function: "work()", rawFunction: "$s1a4workyyF", file: "/a.swift", line: 3)
    var second = first
    #expect(second.names === first.names)
    second.function = "other()"
    #expect(first.function == "work()")
    #expect(second.function == "other()")
    #expect(second.rawFunction == "$s1a4workyyF")
    #expect(second.file == "/a.swift")
    second.rawFunction = nil
    second.file = "/b.swift"
    #expect([first.rawFunction, first.file] == ["$s1a4workyyF", "/a.swift"])
    #expect([second.function, second.rawFunction, second.file] == ["other()", nil, "/b.swift"])
  }

  @Test func equalByWhatTheySay() {
    func frame(_ function: String?, _ raw: String?, _ file: String?) -> SymbolicatedFrame {
      SymbolicatedFrame(captured: captured, status: .resolved, function: function, rawFunction: raw, file: file)
    }
    let frames = [
      frame("a", "b", "c"), frame("x", "b", "c"), frame("a", "x", "c"), frame("a", "b", "x"), frame(nil, "b", "c"),
      frame("a", nil, "c"), frame("a", "b", nil), frame(nil, nil, nil),
    ]
    #expect(Set(frames).count == frames.count)
    for (index, one) in frames.enumerated() {
      let again = frame(one.function, one.rawFunction, one.file)
      #expect(again == one)
      #expect(frames.firstIndex(of: again) == index)
      #expect(again.hashValue == one.hashValue)
    }
  }

  /// What was found out about a frame's names is not what is said of those that it gets later.
  @Test func otherNamesAreClassifiedAnew() {
    var report = CrashReport(id: "r")
    report.process = ProcessInfo(executable: "/srv/orderd")
    report.images = [Image(path: "/srv/orderd", buildID: nil, address: Address(rawValue: 0), size: 100)]
    var frame = SymbolicatedFrame(
      captured: CapturedFrame(kind: .programCounter, address: Address(rawValue: 1), imageIndex: 0), status: .resolved,
      function: "Store.load(id:)", rawFunction: "$s6orderd5StoreC4load2idS2i_tF", file: "/x/Sources/orderd/Store.swift",
      line: 3, hasDebugInformation: true)
    let hasher = StackHasher()
    func analyze() -> StackAnalysis {
      report.threads = [ThreadInfo(crashed: true, frames: [.symbolicated(frame)])]
      report.crashedThreadIndex = 0
      return hasher.analyze(report)
    }
    #expect(analyze().frames.map(\.frameClass.kind) == [.app])
    #expect(analyze().blame?.function == "orderd.Store.load(id:)")
    frame.rawFunction = "swift_retain"
    frame.function = "swift_retain"
    #expect(analyze().frames.map(\.frameClass.kind) == [.runtime])
    frame.function = "Swift runtime failure: arithmetic overflow"
    frame.rawFunction = nil
    #expect(analyze().frames.map(\.frameClass.kind) == [.trap])
    #expect(analyze().reason == .overflow)
  }
}
