/// An ELF file mapped in the process.
public struct Image: Hashable, Sendable {
  /// Path as the process knew it; empty for an image without one (the kernel's vdso has the name `linux-vdso.so.1`).
  public var path: String
  /// The linker's build id; nil where the file has none.
  public var buildID: BuildID?
  /// Address of the first loaded page.
  public var address: Address
  /// Up to the end of the last segment, in bytes.
  public var size: UInt64
  /// The address that the ELF file itself gives its first loaded page: 0 for position-independent files.
  public var firstVirtualAddress: UInt64
  /// Not loaded any more at the crash: its code was unmapped, and another image may lie at the same place.
  public var isUnloaded: Bool

  public init(
    path: String, buildID: BuildID?, address: Address, size: UInt64, firstVirtualAddress: UInt64 = 0,
    isUnloaded: Bool = false
  ) {
    self.path = path
    self.buildID = buildID
    self.address = address
    self.size = size
    self.firstVirtualAddress = firstVirtualAddress
    self.isUnloaded = isUnloaded
  }

  /// The last component of the path.
  public var name: String { Self.name(ofPath: path) }

  static func name(ofPath path: String) -> String {
    path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[path.utf8.index(after: $0)...]) } ?? path
  }

  /// Where the image was loaded is known. Of an image that a log only names, address and size are 0: no frame in it can be
  /// looked up.
  public var isPlaced: Bool { size > 0 || address.rawValue > 0 }

  public func contains(_ address: Address) -> Bool {
    address >= self.address && address.rawValue - self.address.rawValue < size
  }

  /// The distance of `address` from the load address.
  public func offset(of address: Address) -> ImageOffset {
    ImageOffset(rawValue: address.rawValue &- self.address.rawValue)
  }

  /// The address by which the ELF file, its symbols and its debug information know `offset`.
  public func virtualAddress(of offset: ImageOffset) -> UInt64 { offset.rawValue &+ firstVirtualAddress }
}

/// The identifier that the linker gives each build of a file: equal ids mean equal code.
public struct BuildID: Hashable, Sendable, CustomStringConvertible {
  public let bytes: [UInt8]

  /// - Returns: nil for no bytes at all, which no linker writes.
  public init?(bytes: some Collection<UInt8>) {
    guard !bytes.isEmpty else { return nil }
    self.bytes = Array(bytes)
  }

  /// - Parameter text: an even number of hex digits, in either case.
  public init?(_ text: some StringProtocol) {
    guard let bytes = Hex.bytes(text), !bytes.isEmpty else { return nil }
    self.bytes = bytes
  }

  /// The same of the bytes of a text.
  package init?(hexDigits text: UnsafeRawBufferPointer) {
    guard let bytes = Hex.bytes(text), !bytes.isEmpty else { return nil }
    self.bytes = bytes
  }

  /// Lower-case hex, as `file`, `readelf -n` and debuginfod print it.
  public var description: String { Hex.string(bytes) }
}
