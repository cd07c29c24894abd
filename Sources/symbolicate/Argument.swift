internal import CrashModel

/// A word of the command line, as bytes: names of files need not be UTF-8.
struct Argument: Sendable {
  var bytes: ArraySlice<UInt8>

  init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// The words behind the program's name. Not `CommandLine.arguments`, which repairs what is not UTF-8.
  static func ofProcess() -> [Argument] {
    (1..<max(1, Int(CommandLine.argc))).compactMap { index in
      CommandLine.unsafeArgv[index].map { word in
        var bytes: [UInt8] = []
        var next = UnsafePointer(word)
        while next.pointee != 0 {
          bytes.append(UInt8(bitPattern: next.pointee))
          next += 1
        }
        return Argument(bytes: bytes[...])
      }
    }
  }

  /// To be compared and to be shown.
  var text: String { path.description }
  var path: FilePath { FilePath(bytes: bytes) }

  func hasPrefix(_ prefix: String) -> Bool { bytes.starts(with: prefix.utf8) }
}
