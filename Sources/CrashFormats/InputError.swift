/// Why a file gave no crash: what was wrong and what to do, as one sentence without the file's name.
public struct InputError: Error, Hashable, Sendable, CustomStringConvertible {
  public enum Code: Hashable, Sendable {
    /// It cannot be opened or read.
    case unreadable
    /// A FIFO, a device, a socket.
    case notAFile
    case empty
    /// Its content is none of the formats that are known.
    case unknownFormat
    /// Of a known format, and damaged or of another version.
    case damaged
    case tooLarge
  }

  public var code: Code
  public var description: String

  public init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }
}
