private import CCrashSupport

// What the program says about itself. Stored in the record at once, base rules applied; kept before `start` too.
extension CrashReporter {
  /// Sets the host program's own opaque id of the user, at most 128 bytes; nil forgets it.
  ///
  /// An id that holds an e-mail address or a run of seven or more digits is refused and logged: it would say who it is.
  ///
  /// ```swift
  /// CrashReporter.setUser(id: "usr_7c1e")
  /// ```
  public static func setUser(id: String?) {
    guard let id else {
      _ = crash_support_set_user(nil, 0)
      return
    }
    if withBytes(of: id, { crash_support_set_user($0, $1) }) != 0 {
      refuse("a user id was refused: it is longer than 128 bytes, or holds an e-mail address or a number")
    }
  }

  /// Sets a tag; a nil value removes it. At most 50 tags; keys up to 56 bytes, values up to 192.
  ///
  /// ```swift
  /// CrashReporter.setTag("region", "eu-west")
  /// ```
  public static func setTag(_ key: String, _ value: String?) {
    let result = withBytes(of: key) { key, keyLength in
      guard let value else { return crash_support_set_tag(key, keyLength, nil, 0) }
      return withBytes(of: value) { crash_support_set_tag(key, keyLength, $0, $1) }
    }
    if result != 0 { refuse("a tag was refused: its key is empty or longer than 56 bytes, or there are 50 already") }
  }

  /// Sets what the program is doing: a route, a job. At most 256 bytes; nil forgets it.
  ///
  /// ```swift
  /// CrashReporter.setOperation("POST /checkout")
  /// ```
  public static func setOperation(_ operation: String?) {
    guard let operation else { return crash_support_set_operation(nil, 0) }
    withBytes(of: operation) { crash_support_set_operation($0, $1) }
  }

  /// Adds to the last 128 things that the program did. Message up to 192 bytes, category up to 40.
  ///
  /// ```swift
  /// CrashReporter.addBreadcrumb("cache miss", category: "db")
  /// ```
  public static func addBreadcrumb(_ message: String, category: String? = nil) {
    withBytes(of: message) { message, length in
      guard let category else { return crash_support_add_breadcrumb(nil, 0, message, length) }
      withBytes(of: category) { crash_support_add_breadcrumb($0, $1, message, length) }
    }
  }

  private static func refuse(_ message: String) { DiagnosticSink.shared.send(Diagnostic(.invalidInput, message)) }

  /// The text's own bytes, without a copy for native strings, and never a null pointer: that would mean "forget".
  @discardableResult
  private static func withBytes<Result>(of text: String, _ body: (UnsafePointer<CChar>, Int) -> Result) -> Result {
    var text = text
    return text.withUTF8 { buffer in
      guard let base = buffer.baseAddress else {
        var empty: CChar = 0
        return body(&empty, 0)
      }
      return base.withMemoryRebound(to: CChar.self, capacity: buffer.count) { body($0, buffer.count) }
    }
  }
}
