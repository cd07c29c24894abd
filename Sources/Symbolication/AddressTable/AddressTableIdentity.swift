internal import CrashModel
private import Glibc

/// What a table was made from: the build, and the very files.
struct AddressTableIdentity: Hashable {
  /// 32 bytes.
  let key: [UInt8]
  /// Of the file, without its suffix.
  let name: String

  /// As another process found it.
  init(key: [UInt8], name: String) {
    self.key = key
    self.name = name
  }

  /// - Returns: nil where a file cannot be looked at.
  init?(_ files: FoundDebugFiles) {
    var text: [UInt8] = []
    for file in [files.debugInformation, files.symbols] {
      guard let file else {
        text.append(0)
        continue
      }
      var status = stat()
      guard fstat(file.handle.descriptor, &status) == 0 else { return nil }
      text += [1] + (file.buildID?.bytes ?? [])
      // A debug file may be replaced by a better one of the same build: its time tells.
      for value in [
        Int64(status.st_size), Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec), Int64(status.st_ino),
      ] {
        withUnsafeBytes(of: value.littleEndian) { text += $0 }
      }
    }
    key = Self.key(of: text)
    let buildID = (files.debugInformation ?? files.symbols)?.buildID
    name = (buildID.map { $0.description } ?? "none") + "-" + Hex.string(key.prefix(8))
  }
  /// 32 bytes that tell these bytes from others.
  static func key(of bytes: [UInt8]) -> [UInt8] {
    var key: [UInt8] = []
    for salt in UInt8(0)..<4 {
      let sum = (bytes + [salt]).withUnsafeBytes { AddressTableLayout.checksum($0) }
      withUnsafeBytes(of: sum.littleEndian) { key += $0 }
    }
    return key
  }
}
