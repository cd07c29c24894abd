private import Glibc

enum SystemError {
  /// The system's own words for an `errno`, as part of a sentence.
  static func text(_ code: Int32) -> String {
    switch code {
    case ENOENT: "no such file"
    case EACCES, EPERM: "permission denied"
    // Safe on any thread since glibc 2.32: the text is thread-local or constant.
    default: strerror(code).map { String(cString: $0) } ?? "error \(code)"
    }
  }
}
