private import Glibc

enum RealPath {
  /// The absolute path after all symbolic links; nil where there is no such file.
  static func of(_ path: String) -> String? {
    guard let real = realpath(path, nil) else { return nil }
    defer { free(real) }
    return String(cString: real)
  }
}
