public import CrashModel

/// The files that a search chose, and what it passed over.
public struct FoundDebugFiles {
  /// Has DWARF; nil where none was found.
  public var debugInformation: DebugFile?
  /// Has a symbol table, the full one where there is one; nil where none was found.
  public var symbols: DebugFile?
  /// The right file, where it has no names at all.
  var nameless: String?
  /// Files that were there and not used, or used for less than expected.
  public var refusals: [Refusal]
  /// Where was looked, in order; for a message.
  public var searched: [String]
  /// The image has no build id, so that nothing proves that the file is the one that ran.
  public var isUnverified: Bool

  /// A file that was found and not used.
  public struct Refusal: Hashable, Sendable, CustomStringConvertible {
    public var path: String
    public var reason: Reason

    public enum Reason: Hashable, Sendable {
      /// It is another build.
      case buildID(expected: BuildID, found: BuildID?)
      /// Its checksum is not the one of the image's `.gnu_debuglink`.
      case checksum(expected: UInt32, found: UInt32)
      case unreadable(DebugFileError)
      /// The file is the right one, but its debug information cannot be read: why.
      case debugInformation(String)
      /// The file is the right one, but the symbols that it has compressed (`.gnu_debugdata`) cannot be read: why.
      case symbols(String)
    }

    public var description: String {
      switch reason {
      case .buildID(let expected, let found):
        "\(path): has build id \(found?.description ?? "none"), the image has \(expected); not used"
      case .checksum(let expected, let found):
        "\(path): has checksum \(Hex.prefixed(UInt64(found))), the link says \(Hex.prefixed(UInt64(expected))); not used"
      case .unreadable(let error): error.description
      case .debugInformation(let text), .symbols(let text): "\(path): \(text)"
      }
    }
  }
}
