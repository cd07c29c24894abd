internal import CrashModel

/// Why a file cannot be used as the source of names.
public enum DebugFileError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file could not be opened; `code` is an `errno`.
  case cannotOpen(path: String, code: Int32)
  /// A directory, a FIFO, a device or a socket.
  case notRegular(path: String)
  case empty(path: String)
  /// Not an ELF file at all.
  case notELF(path: String)
  /// What should be the core of a process and is something else.
  case notCore(path: String, detail: String)
  /// An ELF file of another word size, byte order or machine.
  case unsupportedArchitecture(path: String, detail: String)
  /// An ELF file whose parts lie outside of it, or whose headers contradict each other.
  case damaged(path: String, detail: String)
  /// Reading it ended the process that did so, or took more than it may: `Symbolicator.init(isolating:)`.
  case endedReader(path: String, detail: String)

  /// The path of the file.
  public var path: String {
    switch self {
    case .cannotOpen(let path, _), .notRegular(let path), .empty(let path), .notELF(let path),
      .notCore(let path, _), .unsupportedArchitecture(let path, _), .damaged(let path, _), .endedReader(let path, _):
      path
    }
  }

  /// What is wrong, without the path.
  public var reason: String {
    switch self {
    case .cannotOpen(_, let code): errnoText(code)
    case .notRegular: "is not a regular file"
    case .empty: "is empty"
    case .notELF: "is not an ELF file"
    case .notCore(_, let detail): "is not the core of a process: \(detail)"
    case .unsupportedArchitecture(_, let detail):
      "is an ELF file for \(detail); only 64-bit x86-64 and aarch64 are read"
    case .damaged(_, let detail): "is a damaged ELF file: \(detail)"
    case .endedReader(_, let detail): "\(detail); it is not used"
    }
  }

  public var description: String { "\(path): \(reason)" }
}
