public import CrashModel

/// What a table adds reports up by: finer than groups, which are made of cells when all reports are known.
///
/// Whether two lines of one function are two bugs can be said only once both were seen in the same build, and which line
/// of one build is which of another only by looking at all builds together. So a table keeps a group for each line of each
/// build, of which nearly every bug has one.
public struct GroupCell: Hashable, Sendable {
  /// The reports of one stack hash.
  public struct Bug: Hashable, Sendable {
    public var scope: String
    public var hash: StackHash

    public init(scope: String, hash: StackHash) {
      self.scope = scope
      self.hash = hash
    }

    // The digits tell nearly everything, and the first of them enough: they are a digest's.
    public func hash(into hasher: inout Hasher) { hasher.combine(hash.digits) }
  }

  public var bug: Bug
  public var build: BuildKey?
  public var siteLine: Int?

  public init(bug: Bug, build: BuildKey? = nil, siteLine: Int? = nil) {
    self.bug = bug
    self.build = build
    self.siteLine = siteLine
  }
}
