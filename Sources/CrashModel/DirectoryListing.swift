private import Glibc

/// The names in a directory, as bytes and sorted, so that what follows does not depend on the file system.
package struct DirectoryListing {
  /// Without `.` and `..`.
  package private(set) var names: [[UInt8]] = []
  /// There were more than were asked for.
  package private(set) var isCut = false
  /// The `errno` of what failed; names that were read before it are there nevertheless.
  package private(set) var failure: CInt?

  package init(of directory: FilePath, limit: Int = .max) {
    guard !directory.hasNUL, let stream = directory.withCString({ opendir($0) }) else {
      failure = directory.hasNUL ? ENOENT : errno
      return
    }
    defer { closedir(stream) }
    while true {
      // The end and an error look the same but for this.
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { failure = errno }
        break
      }
      // By the pointer: the field is declared with 256 bytes, of which the entry may have fewer.
      let name = UnsafeRawPointer(entry).advanced(by: MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
      let length = strlen(name.assumingMemoryBound(to: CChar.self))
      let bytes = [UInt8](UnsafeRawBufferPointer(start: name, count: length))
      guard bytes != [UInt8(ascii: ".")], bytes != [UInt8(ascii: "."), UInt8(ascii: ".")] else { continue }
      guard names.count < limit else {
        isCut = true
        break
      }
      names.append(bytes)
    }
    names.sort { $0.lexicographicallyPrecedes($1) }
  }
}
