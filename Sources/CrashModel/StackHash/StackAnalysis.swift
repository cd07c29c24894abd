/// What the stack hash was made from, to be shown and to be checked.
public struct StackAnalysis: Sendable {
  public var reason: Reason
  public var hash: StackHash
  /// The function that is taken for the bug's place; nil where not even its image is known.
  public var blame: Blame?
  /// The crashed thread's frames as the algorithm saw them, innermost first.
  public var frames: [ClassifiedFrame]
  /// What was hashed; parts are separated by NUL.
  public var key = ""
  /// The group that the report's tag or a rule of the user's asked for, in the place of reason and function.
  public var group: String?
  /// A rule of the user's says that different lines of the blamed function are one bug.
  public var ignoresSite = false

  public struct ClassifiedFrame: Sendable {
    public var frame: SymbolicatedFrame
    public var frameClass: FrameClass
    public var isBlamed = false

    init(_ frame: SymbolicatedFrame, frameClass: FrameClass = .undecided) {
      self.frame = frame
      self.frameClass = frameClass
    }
  }

  /// Writes whose code each frame runs into the report that was analysed.
  public func decideOwnership(in report: inout CrashReport) {
    guard let thread = report.crashedThreadIndex, report.threads.indices.contains(thread) else { return }
    let positions = report.threads[thread].frames.indices.filter { report.threads[thread].frames[$0].captured != nil }
    // Both ends of a deep stack were analysed, in their order. What stands between them is most often a recursion: the
    // same frames again.
    let top = positions.count == frames.count ? frames.count : min(frames.count, StackHasher.topLimit)
    var same: [SymbolicatedFrame: FrameClass]?
    for (index, position) in positions.enumerated() {
      guard case .symbolicated(let frame) = report.threads[thread].frames[position] else { continue }
      let entry = index < top ? index : index - positions.count + frames.count
      let decided: FrameClass?
      if frames.indices.contains(entry), frames[entry].frame == frame {
        decided = frames[entry].frameClass
      } else {
        if same == nil {
          same = Dictionary(frames.map { ($0.frame, $0.frameClass) }, uniquingKeysWith: { first, _ in first })
        }
        decided = same?[frame]
      }
      if let decided { report.threads[thread].frames[position].setOwnership(decided.kind == .app) }
    }
  }
}

extension Frame {
  fileprivate mutating func setOwnership(_ inApp: Bool) {
    guard case .symbolicated(var frame) = self, frame.inApp != inApp else { return }
    frame.inApp = inApp
    self = .symbolicated(frame)
  }
}

/// The function that a group of crashes is named after.
public struct Blame: Hashable, Sendable {
  /// Module and canonical name; image and offset (`orderd+0x1a2b`) of code without a name.
  public var function: String
  public var file: String?
  public var line: Int?

  public init(function: String, file: String? = nil, line: Int? = nil) {
    self.function = function
    self.file = file
    self.line = line
  }
}
