internal import CrashModel
private import Glibc

enum RealPath {
  /// The absolute path after all symbolic links; nil where there is no such file.
  static func of(_ path: FilePath) -> FilePath? {
    guard !path.hasNUL, let real = path.withCString({ realpath($0, nil) }) else { return nil }
    defer { free(real) }
    return FilePath(bytes: UnsafeRawBufferPointer(start: real, count: strlen(real)))
  }
}
