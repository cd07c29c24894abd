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

  public struct ClassifiedFrame: Sendable {
    public var frame: SymbolicatedFrame
    public var frameClass: FrameClass
    public var isBlamed = false
  }

  /// The frames with `inApp` decided, in the order in which they came.
  public var decidedFrames: [SymbolicatedFrame] {
    frames.map { entry in
      var frame = entry.frame
      frame.inApp = entry.frameClass.kind == .app
      return frame
    }
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
