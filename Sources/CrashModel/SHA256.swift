private import CCrashFormat

/// SHA-256, for identifiers that are made from text.
package enum SHA256 {
  /// The 32 bytes of the digest.
  package static func digest(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    bytes.withUnsafeBytes { input in crash_sha256(input.baseAddress, input.count, &digest) }
    return digest
  }
}
