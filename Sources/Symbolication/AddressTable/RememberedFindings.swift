internal import CrashModel

/// What a search found for an image that has a table, as a file beside that: `docs/address-table.md`.
///
/// Without it the debug file would be opened and its sections looked at before the table could be asked: a process, and for
/// a compressed file a second of work, for an answer of microseconds. Only a search that could not have found anything
/// better is remembered, and only as long as the files that it found are the same.
enum RememberedFindings {
  private static let magic = Array("findings".utf8)
  /// Changes with every change of `ImageFindings` as a message.
  private static let version: UInt8 = 1

  /// 32 bytes that say what was searched for, and where.
  static func key(path: String, buildID: BuildID, places: MessageWriter) -> [UInt8] {
    var writer = MessageWriter()
    writer.text(path)
    writer.buildID(buildID)
    writer.append(places)
    return AddressTableIdentity.key(of: writer.bytes)
  }

  static func bytes(_ findings: ImageFindings, key: [UInt8]) -> [UInt8] {
    var writer = MessageWriter()
    for byte in magic + [version] { writer.byte(byte) }
    writer.blob(key)
    writer.findings(findings)
    let checksum = writer.bytes.withUnsafeBytes { AddressTableLayout.checksum($0) }
    return writer.bytes + withUnsafeBytes(of: checksum.littleEndian) { Array($0) }
  }

  /// - Returns: nil for bytes that `bytes(_:key:)` did not make of this key, in this version.
  static func findings(_ bytes: UnsafeRawBufferPointer, key: [UInt8]) -> ImageFindings? {
    guard bytes.count > magic.count + 9 else { return nil }
    let body = UnsafeRawBufferPointer(rebasing: bytes.dropLast(8))
    let checksum = bytes.loadUnaligned(fromByteOffset: body.count, as: UInt64.self)
    guard AddressTableLayout.checksum(body) == UInt64(littleEndian: checksum), body.starts(with: magic + [version])
    else { return nil }
    var reader = MessageReader(UnsafeRawBufferPointer(rebasing: body.dropFirst(magic.count + 1)))
    guard reader.blob().elementsEqual(key) else { return nil }
    let findings = reader.findings()
    return reader.isWhole ? findings : nil
  }
}
