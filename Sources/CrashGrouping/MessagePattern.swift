private import Glibc

/// An extended regular expression (POSIX) that is looked for in messages.
///
/// glibc's, and not the standard library's: it needs no backtracking without back references, and a compiled expression may
/// be used by several threads at once, as POSIX demands of `regexec`.
///
/// Unchecked, as the compiled expression is a C structure behind a pointer; it is written by `init` and `deinit` only.
final class MessagePattern: @unchecked Sendable {
  /// Of longer messages only so much is looked at.
  private static let limit = 4096

  private let compiled: UnsafeMutablePointer<regex_t>

  /// What glibc says is wrong with an expression.
  struct Failure: Error { var reason: String }

  init(_ expression: String) throws(Failure) {
    if let reason = Self.excess(in: expression) { throw Failure(reason: reason) }
    let compiled = UnsafeMutablePointer<regex_t>.allocate(capacity: 1)
    let code = regcomp(compiled, expression, REG_EXTENDED | REG_NOSUB)
    guard code == 0 else {
      let reason = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
        _ = regerror(code, compiled, buffer.baseAddress, buffer.count)
        return buffer.baseAddress.map { String(cString: $0) } ?? ""
      }
      compiled.deallocate()
      throw Failure(reason: reason)
    }
    self.compiled = compiled
  }

  /// glibc writes a repetition out: `(a{1,200}){1,200}` is 40,000 states, and one more of these takes all the memory that
  /// there is.
  private static let repetitionLimit = 1_000

  // What glibc would need unbounded memory or time for; nil for nothing.
  private static func excess(in expression: String) -> String? {
    let bytes = Array(expression.utf8)
    var (sum, product) = (0, 1)
    var index = 0
    var previous: UInt8 = 0
    while index < bytes.count {
      let byte = bytes[index]
      if byte == UInt8(ascii: "\\"), index + 1 < bytes.count {
        // A back reference makes a search exponential.
        if bytes[index + 1] >= UInt8(ascii: "1"), bytes[index + 1] <= UInt8(ascii: "9") {
          return "back references are not taken"
        }
        previous = byte
        index += 2
        continue
      }
      if byte == UInt8(ascii: "{") {
        let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")) ?? bytes.count
        let bounds = bytes[(index + 1)..<end].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: true)
        let bound = bounds.compactMap { Int(String(decoding: $0, as: UTF8.self)) }.max() ?? 0
        // Of a group, or of what is repeated already: each of its states so many times. Too many for an Int are too many.
        if previous == UInt8(ascii: ")") || previous == UInt8(ascii: "}") {
          let (larger, overflow) = product.multipliedReportingOverflow(by: max(bound, 1))
          product = overflow ? .max : larger
        } else {
          sum = sum.addingClamped(bound)
        }
        previous = UInt8(ascii: "}")
        index = end + 1
        continue
      }
      previous = byte
      index += 1
    }
    let (states, overflow) = max(sum, 1).multipliedReportingOverflow(by: product)
    return overflow || states > repetitionLimit ? "more than \(repetitionLimit) repetitions" : nil
  }

  deinit {
    regfree(compiled)
    compiled.deallocate()
  }

  func isFound(in message: String) -> Bool {
    var text = Array(message.utf8.prefix(Self.limit))
    text.append(0)
    return text.withUnsafeBytes { bytes in
      bytes.bindMemory(to: CChar.self).baseAddress.map { regexec(compiled, $0, 0, nil, 0) == 0 } ?? false
    }
  }
}
