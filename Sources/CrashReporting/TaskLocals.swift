private import CCrashSupport
private import Glibc

extension CrashReporter {
  /// Puts the value that a task local has in the crashing task into the report (`task.locals`), redacted and cut at 192
  /// bytes: a request's id.
  ///
  /// At most 8 task locals, with names up to 60 bytes. May be called from any thread, before `start` too; a second call
  /// for the same task local changes nothing.
  ///
  /// ```swift
  /// enum Request { @TaskLocal static var id: String? }
  /// CrashReporter.includeTaskLocal("request_id", Request.$id)
  /// ```
  ///
  /// - Parameter local: must live for ever, as those of `@TaskLocal` do.
  /// - Returns: false where there is no room, or the name is empty or too long.
  @discardableResult
  public static func includeTaskLocal(_ name: String, _ local: TaskLocal<String?>) -> Bool { include(name, local) }

  /// The same for a task local that always has a value.
  @discardableResult
  public static func includeTaskLocal(_ name: String, _ local: TaskLocal<String>) -> Bool { include(name, local) }

  // The object's address is the key under which the runtime looks for a value.
  private static func include(_ name: String, _ local: AnyObject) -> Bool {
    var name = name
    return name.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { text in
        crash_support_register_task_local(
          text.baseAddress, text.count, Unmanaged.passUnretained(local).toOpaque()) == 0
      }
    }
  }
}
