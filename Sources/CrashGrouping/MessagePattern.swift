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
