/// The bytes of a table's file, wherever they are.
protocol WritableAddressTable {
  var size: Int { get }

  /// Hands out the bytes, one piece after the other.
  func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows
}

/// A table that another process built.
struct ReceivedAddressTable: WritableAddressTable {
  let bytes: [UInt8]

  var size: Int { bytes.count }

  func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows { try bytes.withUnsafeBytes(body) }
}
