private import Glibc

/// A file that nobody else can open and that goes with its descriptor, for more bytes than memory should hold.
enum UnnamedFile {
  /// `$TMPDIR`, else the place for large temporary files (file-hierarchy(7)).
  static var folder: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp" }

  /// - Returns: a descriptor; -1 with `errno` where none can be made.
  static func make() -> CInt {
    var template = Array((folder + "/symbolicate-XXXXXX").utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { return -1 }
    unlink(template)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    return descriptor
  }
}
