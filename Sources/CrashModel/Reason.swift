/// What went wrong, from a closed list (`docs/stack-hash.md`), or `trap:<text>` for a runtime check that the list does
/// not know.
public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public var rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  public var description: String { rawValue }
}
