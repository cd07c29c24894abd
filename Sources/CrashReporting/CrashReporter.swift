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
    /// Lets `kill -QUIT` ask for a snapshot of all threads, instead of ending the process. Where the service handles
    /// SIGQUIT itself this changes nothing.
    public var snapshotsOnQuit = false
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
    guard let root = try startCapture(configuration) else { return logSecondStart() }
    ActiveRun.begin(
      ActiveRun(directory: configuration.directory, limits: configuration.limits, redactor: configuration.redactor),
      diagnostics: configuration.diagnostics)
    // Here and not later: between, a SIGQUIT would still end the process.
    let catchesQuit = configuration.snapshotsOnQuit && crash_support_catch_quit() == 0
    if configuration.snapshotsOnQuit && !catchesQuit { Snapshots.fail("the service handles SIGQUIT itself") }
    processBackgroundWork(root, configuration, catchesQuit: catchesQuit)
  }

  /// Gives the signals back to their former handlers and removes this run's record.
  public static func stop() {
    ActiveRun.end()
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

  private static let recordsFolder: StaticString = "records"

  /// - Returns: the spool's directory, opened and not checked by this function; nil where it was started by somebody else
  ///   meanwhile.
  private static func startCapture(_ configuration: Configuration) throws(StartError) -> Descriptor? {
    var failure = crash_support_error()
    var (result, root) = startCapture(configuration, &failure)
    if result == CRASH_SUPPORT_FAILED {
      // The spool is opened and checked in there. Whether it is what stood in the way, and its path, comes out here; and
      // it is made, at the first start of all.
      try prepareSpool(configuration.directory)
      (result, root) = startCapture(configuration, &failure)
    }
    if let root, result == CRASH_SUPPORT_STARTED { return Descriptor(raw: root) }
    guard result == CRASH_SUPPORT_FAILED else { return nil }
    let what = failure.what.map { String(cString: $0) } ?? "unknown step"
    throw StartError(
      code: .captureUnavailable, message: SystemError(number: failure.number, what).description,
      cause: failure.number)
  }

  private static func startCapture(
    _ configuration: Configuration, _ failure: inout crash_support_error
  ) -> (crash_support_start_result, root: Int32?) {
    configuration.directory.withCString { directory in
      // Here, and not on the thread that works in it: the host may change its root directory next, or its rights. And not
      // through `SpoolRoot`, whose strings are 0.03 ms of a service's start.
      let root = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard root >= 0 else {
        failure = crash_support_error(number: errno, what: nil)
        return (CRASH_SUPPORT_FAILED, nil)
      }
      let result = configuration.service.withCString { service in
        withOptionalCString(configuration.release) { release in
          configuration.environment.withCString { environment in
            recordsFolder.withUTF8Buffer { folder in
              folder.withMemoryRebound(to: CChar.self) { folder in
                var values = crash_support_configuration(
                  size: MemoryLayout<crash_support_configuration>.size, directory: directory,
                  folder: folder.baseAddress, service: service, release: release, environment: environment)
                return crash_support_start(&values, &failure)
              }
            }
          }
        }
      }
      if result == CRASH_SUPPORT_STARTED { return (result, root) }
      close(root)
      return (result, nil)
    }
  }

  private static func prepareSpool(_ path: String) throws(StartError) {
    do throws(SystemError) {
      _ = try SpoolRoot(path: path).folder("\(recordsFolder)")
    } catch { throw StartError(code: .spoolUnusable, message: error.description, cause: error.number) }
  }

  private static func withOptionalCString<Result>(
    _ text: String?, _ body: (UnsafePointer<CChar>?) -> Result
  ) -> Result {
    guard let text else { return body(nil) }
    return text.withCString(body)
  }

  private static func processBackgroundWork(
    _ root: consuming Descriptor, _ configuration: Configuration, catchesQuit: Bool
  ) {
    // A closure cannot own a noncopyable value.
    let raw = root.take()
    BackgroundWork.shared.begin()
    let started = BackgroundThread.run {
      let root = Descriptor(raw: raw)
      defer { BackgroundWork.shared.end() }
      // First, as this run's own crash may come at any time.
      crash_support_describe_process()
      if catchesQuit { Snapshots.serveQuit() }
      ErrorQueue.prepare()
      do throws(SystemError) {
        NextStart.run(
          spool: try Spool(root: SpoolRoot(path: configuration.directory, descriptor: root)),
          limits: configuration.limits,
          builder: ReportBuilder(redactor: configuration.redactor, maximumBytes: configuration.limits.reportBytes),
          ownRunID: runIDBytes, report: { DiagnosticSink.shared.send($0) })
      } catch { reportWaiting(error.description) }
    }
    if !started {
      close(raw)
      BackgroundWork.shared.end()
      reportWaiting("no thread could be made")
    }
  }

  private static func reportWaiting(_ reason: String) {
    DiagnosticSink.shared.send(Diagnostic(.spoolUnavailable, "earlier crashes wait for the next start: \(reason)"))
  }
}
