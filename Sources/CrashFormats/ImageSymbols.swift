/// Whether an image of a report gave its frames their names, in the words that the text output uses.
///
/// A value of this module's own, so that writing reports needs no symbolication.
public struct ImageSymbols: Hashable, Sendable {
  /// Index in `CrashReport.images`.
  public var imageIndex: Int
  /// `debug information`, `symbols only`, `exported symbols only`, `not found`.
  public var status: String
  /// What is missing, where was looked and what to do; nil where nothing is.
  public var problem: String?

  public init(imageIndex: Int, status: String, problem: String? = nil) {
    self.imageIndex = imageIndex
    self.status = status
    self.problem = problem
  }
}
