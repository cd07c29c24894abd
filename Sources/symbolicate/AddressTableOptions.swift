internal import CrashModel
private import Glibc
internal import Symbolication

extension Options {
  /// When debug information is made into a table, and where that is kept.
  var addressTables: AddressTables {
    guard usesCache else { return AddressTables(cache: nil) }
    if let cacheDirectory { return AddressTables(cache: AddressTableCache(directory: cacheDirectory)) }
    guard let value = getenv("SYMBOLICATE_CACHE_DIR") else { return AddressTables(cache: .standard) }
    // Set to nothing it means none, as for other tools that keep a cache; a relative path would be another one each time.
    let bytes = UnsafeRawBufferPointer(start: value, count: strlen(value))
    guard bytes.first == UInt8(ascii: "/") else { return AddressTables(cache: nil) }
    return AddressTables(cache: AddressTableCache(directory: FilePath(bytes: bytes)))
  }
}
