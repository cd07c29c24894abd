/// Lines of source code around the place that a frame names.
///
/// They were read when the frame got its names, from a file that need not be the one that was compiled.
///
/// ```swift
/// if let source = frame.source {
///   for (offset, text) in source.lines.enumerated() { print(source.firstLine + offset, text) }
/// }
/// ```
public struct SourceLines: Hashable, Sendable {
  /// Number of the first line, from 1.
  public var firstLine: Int
  /// Without line ends.
  public var lines: [String]

  public init(firstLine: Int, lines: [String]) {
    self.firstLine = firstLine
    self.lines = lines
  }
}
