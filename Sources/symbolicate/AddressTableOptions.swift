internal import CrashModel
private import Glibc
internal import Symbolication

extension Options {
  /// When debug information is made into a table, and where that is kept.
  var addressTables: AddressTables { AddressTables(use: tables, cache: cache) }

  private var cache: AddressTableCache? {
    guard usesCache else { return nil }
    if let cacheDirectory { return AddressTableCache(directory: cacheDirectory) }
    guard let value = getenv("SYMBOLICATE_CACHE_DIR") else { return .standard }
    // Set to nothing it means none, as for other tools that keep a cache; a relative path would be another one each time.
    let bytes = UnsafeRawBufferPointer(start: value, count: strlen(value))
    return bytes.first == UInt8(ascii: "/") ? AddressTableCache(directory: FilePath(bytes: bytes)) : nil
  }
}
