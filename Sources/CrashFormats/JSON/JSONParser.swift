internal import CJSONReader

/// Parses JSON documents, one at a time, into values that point into the parser's memory.
///
/// To be used by one thread at a time; worth keeping for many documents, as it keeps its memory.
package final class JSONParser {
  /// Bytes that should be readable behind a document, so that it need not be copied.
  package static let padding = Int(CJSONREADER_PADDING)
  static let maximumDepth = Int(CJSONREADER_MAX_DEPTH)
  static let maximumLength = Int(CJSONREADER_MAX_LENGTH)

  private let reader: OpaquePointer

  /// - Returns: nil without memory.
  package init?() {
    guard let reader = CJSONReader_make() else { return nil }
    self.reader = reader
  }

  deinit { CJSONReader_free(reader) }

  /// Parses `count` bytes of `bytes` and hands the root value to `body`.
  ///
  /// The bytes behind the first `count` are padding: they may hold anything. The value and everything taken from it end
  /// with `body`.
  package func withDocument<Result>(
    _ bytes: UnsafeRawBufferPointer, count: Int, _ body: (JSONValue) throws(ReportError) -> Result
  ) throws(ReportError) -> Result {
    var document = CJSONReader_document()
    let result = CJSONReader_parse(
      reader, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), count, bytes.count, &document)
    guard result == CJSONREADER_OK else {
      throw ReportError(Self.describe(result, in: UnsafeRawBufferPointer(rebasing: bytes.prefix(count))))
    }
    let tape = JSONTape(
      words: UnsafeBufferPointer(start: document.tape, count: document.tape_count),
      strings: UnsafeRawBufferPointer(start: document.strings, count: document.string_capacity))
    // The caller's values point into `reader`.
    return try withExtendedLifetime(self) { () throws(ReportError) -> Result in
      try body(JSONValue(tape: tape, index: 1))
    }
  }

  /// What is wrong, and where. The library names the kind of error and no place, so a slow second look finds it.
  private static func describe(_ result: CJSONReader_result, in bytes: UnsafeRawBufferPointer) -> String {
    switch result {
    case CJSONREADER_EMPTY: return "no JSON: nothing but white space"
    case CJSONREADER_TOO_LONG:
      return "JSON document of \(bytes.count) bytes; at most \(maximumLength) are read"
    case CJSONREADER_OUT_OF_MEMORY: return "no memory for a JSON document of \(bytes.count) bytes"
    default: break
    }
    guard let fault = JSONFault.first(in: bytes) else {
      return result == CJSONREADER_UTF8 ? "not JSON: the text is not UTF-8" : "not JSON"
    }
    return "not JSON: \(fault.what) at byte \(fault.offset)"
  }
}
