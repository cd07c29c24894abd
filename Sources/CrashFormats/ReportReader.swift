public import CrashModel

/// Reads `crash-report/1`.
///
/// Every field of a wrong type is an error that names the place; keys that the format does not know are skipped, so that
/// later versions can add some; values of an enumeration that it does not know are left out and noted in the report.
/// To be used by one thread at a time; keeps its memory from one document to the next.
///
/// ```swift
/// guard let reader = ReportReader() else { return }
/// let report = try reader.report(from: bytes)
/// ```
public final class ReportReader {
  /// Bytes that should be readable behind a document, so that it need not be copied.
  public static let padding = JSONParser.padding

  private let parser: JSONParser
  private let detail: Detail

  /// How much of a report is wanted.
  package enum Detail: Sendable {
    case all
    /// What says which crash it was: no breadcrumbs, tags, or threads that did not crash.
    case crash
  }

  /// What a JSON document is.
  public enum Document: Sendable {
    case report(CrashReport)
    /// An object of another kind, with its `schema` if it names one.
    case other(schema: String?)
  }

  /// - Returns: nil without memory.
  public convenience init?() { self.init(detail: .all) }

  /// - Parameter detail: what is not part of it is not read, and an error in it no error.
  package init?(detail: Detail) {
    guard let parser = JSONParser() else { return nil }
    self.parser = parser
    self.detail = detail
  }

  /// Reads a report.
  public func report(from bytes: [UInt8]) throws(ReportError) -> CrashReport {
    // Closures given to the standard library do not carry typed errors out of it.
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(ReportError) in try document(in: buffer, count: buffer.count) }
    }
    switch try result.get() {
    case .report(let report): return report
    case .other(let schema?):
      throw ReportError(
        "expected \(Printable.quoted(CrashReport.schema)), found \(Printable.quoted(schema))", path: "schema")
    case .other(nil): throw ReportError("missing; expected \(Printable.quoted(CrashReport.schema))", path: "schema")
    }
  }

  /// Reads what stands in the first `count` bytes; those behind may hold anything and save a copy (see `padding`).
  ///
  /// - Throws: for a report with an error in it, and for a report of a version that is not known; not for an object of
  ///   another schema.
  public func document(in bytes: UnsafeRawBufferPointer, count: Int) throws(ReportError) -> Document {
    guard let document = try document(in: bytes, count: count, take: { _ in false }) else {
      return .other(schema: nil)
    }
    return document
  }

  /// The same for whoever may need no `CrashReport`.
  ///
  /// - Parameter take: gets a report before it is one; whether it needs nothing else of it.
  /// - Returns: nil for a report that was taken.
  func document(
    in bytes: UnsafeRawBufferPointer, count: Int, take: (ParsedReport) -> Bool
  ) throws(ReportError) -> Document? {
    try parser.withDocument(bytes, count: count) { root throws(ReportError) -> Document? in
      guard root.isObject else { throw root.expected("an object") }
      guard let value = root.member("schema") else { return .other(schema: nil) }
      let schema: String
      do throws(ReportError) { schema = try value.string() } catch { throw error.inside(key: "schema") }
      if schema == CrashReport.schema {
        if take(ParsedReport(root: root, detail: detail)) { return nil }
        var decoder = ReportDecoder(detail: detail)
        return .report(try decoder.report(root))
      }
      if schema.hasPrefix("crash-report/") {
        throw ReportError(
          "\(Printable.quoted(schema)) is a version that this program does not read; it reads "
            + Printable.quoted(CrashReport.schema), path: "schema")
      }
      return .other(schema: schema)
    }
  }
}

/// A report that was parsed, and of which nothing was made yet. Valid where it is handed out.
package struct ParsedReport {
  let root: JSONValue
  let detail: ReportReader.Detail

  /// - Returns: nil where it cannot be read.
  package func report() -> CrashReport? {
    var decoder = ReportDecoder(detail: detail)
    return try? decoder.report(root)
  }
}
