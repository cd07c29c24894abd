private import CCrashSupport
public import CrashModel
private import Glibc

/// Records the crashes of this process, and turns those of earlier runs into reports.
///
/// ```swift
/// var configuration = CrashReporter.Configuration(service: "orderd", directory: "/var/lib/orderd/crashes")
/// configuration.release = "1.4.0"
/// try CrashReporter.start(configuration)
/// ```
///
/// Every call may be made from any thread, also before `start`; none traps, and none but `flush` waits for disk or
/// network. `start` makes and opens files, and is the only one that throws.
public enum CrashReporter {
  /// How to start. A value; changing it later changes nothing.
  public struct Configuration: Sendable {
    /// Name of the service, at most 128 bytes. Stack hashes of different services never meet.
    public var service: String
    /// Absolute path of the spool. Made with mode 0700 where it is missing; its parent must exist.
    public var directory: String
    /// Version of the service, at most 128 bytes; nil for unknown.
    public var release: String?
    /// At most 64 bytes.
    public var environment = "production"
    /// How much the spool may hold.
    public var limits = SpoolLimits()
    /// Redacts messages, tags and breadcrumbs when a report is made. The base rules come before, whatever stands here.
    public var redactor = Redactor()
    /// Told what happens to crash reporting itself, on any thread; at most ten times a minute for each code. nil: one line
    /// to standard error.
    public var diagnostics: (@Sendable (Diagnostic) -> Void)?

    public init(service: String, directory: String) {
      self.service = service
      self.directory = directory
    }
  }

  /// Why nothing was started. The process runs on without crash capture.
  public struct StartError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: String, Hashable, Sendable, CaseIterable {
      /// A value of the configuration cannot be used.
      case invalidConfiguration = "invalid_configuration"
      /// The process has rights that the user who started it does not have (setuid).
      case privileged
      /// The spool cannot be made, or is not safe to use.
      case spoolUnusable = "spool_unusable"
      /// The record or the handlers cannot be set up.
      case captureUnavailable = "capture_unavailable"
    }

    public var code: Code
    /// What stood in the way, for people.
    public var message: String
    /// `errno` of the system call that failed; nil where none did.
    public var cause: Int32?

    public var description: String { "crash reporting did not start: \(message) [\(code.rawValue)]" }
  }

  /// Prepares the record, installs the handlers, and begins to turn records of earlier runs into reports, which goes on
  /// on a thread of its own.
  ///
  /// Once per process: a second call changes nothing and is logged. A child made by `fork` may start anew.
  public static func start(_ configuration: Configuration) throws(StartError) {
    guard !isStarted else { return logSecondStart() }
    try check(configuration)
    guard crash_support_is_privileged() == 0 else {
      throw StartError(
        code: .privileged, message: "the process runs with rights that its user does not have", cause: EPERM)
    }
    let root = try prepareSpool(configuration.directory)
    guard try startCapture(configuration, root) else { return logSecondStart() }
    DiagnosticSink.shared.setHandler(configuration.diagnostics)
    ActiveRun.current = ActiveRun(
      directory: configuration.directory, limits: configuration.limits, redactor: configuration.redactor)
    processBackgroundWork(root, configuration)
  }

  /// Gives the signals back to their former handlers and removes this run's record.
  public static func stop() {
    ActiveRun.current = nil
    crash_support_stop()
  }

  /// Waits until the records of earlier runs have been worked on and captured errors are stored, at most for `timeout`.
  ///
  /// For programs that may end right after their start (and for tests): without it their end would put the work off to
  /// the next start. Blocks the calling thread.
  ///
  /// - Returns: whether all is done; true where nothing was started.
  @discardableResult
  public static func flush(timeout: Duration = .seconds(1)) -> Bool { BackgroundWork.shared.wait(timeout: timeout) }

  /// UUIDv7 of this run, in the usual form; nil where nothing was started.
  public static var runID: String? { runIDBytes.map { UUIDText.string($0) } }

  static var isStarted: Bool { crash_support_run_id(nil) == 0 }

  static var runIDBytes: [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    return crash_support_run_id(&bytes) == 0 ? bytes : nil
  }

  private static func logSecondStart() {
    DiagnosticSink.shared.send(Diagnostic(.alreadyStarted, "start was called again; nothing was changed"))
  }

  private static func check(_ configuration: Configuration) throws(StartError) {
    // Relative paths would lead elsewhere as soon as the daemon changes its working directory.
    guard configuration.directory.utf8.first == UInt8(ascii: "/") else {
      throw refusal("the directory must be an absolute path, not \"\(configuration.directory)\"")
    }
    try check(configuration.service, "service", limit: 128)
    if let release = configuration.release { try check(release, "release", limit: 128) }
    try check(configuration.environment, "environment", limit: 64)
    try check(configuration.directory, "directory", limit: Int(PATH_MAX) - 64)
  }

  private static func check(_ text: String, _ name: StaticString, limit: Int) throws(StartError) {
    guard !text.isEmpty, text.utf8.count <= limit, !text.utf8.contains(0) else {
      throw refusal("\(name) must have 1 to \(limit) bytes and no NUL")
    }
  }

  private static func refusal(_ message: String) -> StartError {
    StartError(code: .invalidConfiguration, message: message, cause: nil)
  }

  /// As much of the spool as a record needs. The other folders are opened on the thread that works with them.
  private static func prepareSpool(_ path: String) throws(StartError) -> SpoolRoot {
    do throws(SystemError) {
      let root = try SpoolRoot(path: path)
      try root.make(recordsFolder)
      return root
    } catch { throw StartError(code: .spoolUnusable, message: error.description, cause: error.number) }
  }

  private static let recordsFolder = "records"

  /// - Returns: false where it was started by somebody else meanwhile.
  private static func startCapture(
    _ configuration: Configuration, _ root: borrowing SpoolRoot
  ) throws(StartError) -> Bool {
    var failure = crash_support_error()
    let result = (configuration.directory + "/" + recordsFolder).withCString { directory in
      configuration.service.withCString { service in
        withOptionalCString(configuration.release) { release in
          configuration.environment.withCString { environment in
            var values = crash_support_configuration(
              size: MemoryLayout<crash_support_configuration>.size, directory: directory, service: service,
              release: release, environment: environment)
            return crash_support_start(&values, &failure)
          }
        }
      }
    }
    guard result == CRASH_SUPPORT_FAILED else { return result == CRASH_SUPPORT_STARTED }
    // The folder was opened and checked in there; where it was at fault, this says so with its path.
    do throws(SystemError) {
      _ = try root.folder(recordsFolder)
    } catch { throw StartError(code: .spoolUnusable, message: error.description, cause: error.number) }
    let what = failure.what.map { String(cString: $0) } ?? "unknown step"
    throw StartError(
      code: .captureUnavailable, message: SystemError(number: failure.number, what).description,
      cause: failure.number)
  }

  private static func withOptionalCString<Result>(
    _ text: String?, _ body: (UnsafePointer<CChar>?) -> Result
  ) -> Result {
    guard let text else { return body(nil) }
    return text.withCString(body)
  }

  private static func processBackgroundWork(_ root: consuming SpoolRoot, _ configuration: Configuration) {
    let work = SpoolWork(root: root)
    BackgroundWork.shared.begin()
    let started = BackgroundThread.run {
      defer { BackgroundWork.shared.end() }
      // First, as this run's own crash may come at any time.
      crash_support_describe_process()
      guard let root = work.take() else { return }
      do throws(SystemError) {
        NextStart.run(
          spool: try Spool(root: root), limits: configuration.limits,
          builder: ReportBuilder(redactor: configuration.redactor, maximumBytes: configuration.limits.reportBytes),
          ownRunID: runIDBytes, report: { DiagnosticSink.shared.send($0) })
      } catch { reportWaiting(error.description) }
    }
    if !started {
      BackgroundWork.shared.end()
      reportWaiting("no thread could be made")
    }
  }

  private static func reportWaiting(_ reason: String) {
    DiagnosticSink.shared.send(Diagnostic(.spoolUnavailable, "earlier crashes wait for the next start: \(reason)"))
  }
}

/// Carries the opened spool to the thread that works on it: a closure cannot own a noncopyable value.
// `@unchecked`: filled before the thread is made, emptied once by that thread, touched by nobody else.
private final class SpoolWork: @unchecked Sendable {
  private var root: SpoolRoot?

  init(root: consuming SpoolRoot) { self.root = consume root }

  func take() -> SpoolRoot? { root.take() }
}
