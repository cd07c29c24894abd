/// Why a document is not a `crash-report/1`, and where in it.
public struct ReportError: Error, Hashable, CustomStringConvertible {
  /// `threads[0].frames[3].address`; empty where the document as a whole is meant.
  public private(set) var path: String
  /// `expected a hex string, found a number`.
  public let problem: String

  public init(_ problem: String, path: String = "") {
    self.problem = problem
    self.path = path
  }

  public var description: String { path.isEmpty ? problem : "\(path): \(problem)" }

  /// The same error as seen from the array that holds the place.
  func inside(index: Int) -> ReportError { inside("[\(index)]") }

  /// The same error as seen from the object that holds the place.
  func inside(key: String) -> ReportError {
    let isPlain =
      !key.isEmpty && key.utf8.count <= 64
      && key.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
    return inside(isPlain ? key : "[" + Printable.quoted(String(key.prefix(64))) + "]")
  }

  private func inside(_ container: String) -> ReportError {
    let separator = path.isEmpty || path.utf8.first == UInt8(ascii: "[") ? "" : "."
    return ReportError(problem, path: container + separator + path)
  }
}
