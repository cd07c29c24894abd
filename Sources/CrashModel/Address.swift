/// An address in the crashed process's memory.
///
/// Not an offset in a file and not an address as the ELF file numbers it: `ImageOffset` and `Image.virtualAddress(of:)`
/// lead there, so that the three cannot be mixed up.
public struct Address: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
  public var rawValue: UInt64

  public init(rawValue: UInt64) { self.rawValue = rawValue }

  public static func < (left: Address, right: Address) -> Bool { left.rawValue < right.rawValue }

  /// `0x` and sixteen lower-case hex digits, the form of the Swift runtime's logs.
  public var description: String { "0x" + Hex.padded(rawValue) }
}

/// The distance of an address from the load address of the image that it lies in, in bytes.
///
/// The same in every run of a build, whatever the address space layout was.
public struct ImageOffset: RawRepresentable, Hashable, Comparable, Sendable {
  public var rawValue: UInt64

  public init(rawValue: UInt64) { self.rawValue = rawValue }

  public static func < (left: ImageOffset, right: ImageOffset) -> Bool { left.rawValue < right.rawValue }
}
