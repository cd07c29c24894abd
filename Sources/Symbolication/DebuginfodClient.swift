internal import CrashModel
private import Glibc

/// Asks debuginfod servers for files by build id, through elfutils' own client library and its cache.
///
/// The library is opened when the first file is asked for, not linked: it brings libcurl and all that belongs to it, and most
/// runs never ask a server. What it downloads is kept in its cache (`$DEBUGINFOD_CACHE_PATH`, else
/// `~/.cache/debuginfod_client`) and found there the next time; its other settings are read from the environment as well
/// (`man debuginfod_find_debuginfo`).
///
/// Each file is asked for once. A server that sends nothing for 30 seconds (`DEBUGINFOD_TIMEOUT`, if less) or a file that
/// takes longer than 5 minutes is given up; after that, and where no server can be reached, no other file is asked for.
/// Not thread-safe.
///
/// ```swift
/// let servers = DebuginfodClient.fromEnvironment()    // nil unless DEBUGINFOD_URLS is set
/// let search = DebugFileSearch(servers: servers)
/// ```
public final class DebuginfodClient {
  /// What came of a request.
  enum Outcome {
    /// In the client's cache. Nobody has looked yet whether it is the right file.
    case found(FilePath)
    /// Whom was asked and why there is nothing, in words.
    case failed(String)
  }

  private enum Kind: String {
    case debugInformation = "debug information"
    case executable
  }

  private struct Request: Hashable {
    var kind: Kind
    var id: BuildID
  }

  /// The servers, separated by spaces.
  public let urls: String
  private let stallLimit: Int
  private let totalLimit: Int
  private var answers: [Request: Outcome] = [:]
  private var client: Library.Client?
  /// Why no server is asked any more.
  private var givenUp: String?

  /// A client of the servers in `DEBUGINFOD_URLS`; nil where that is not set or empty.
  public static func fromEnvironment() -> DebuginfodClient? {
    guard let value = getenv("DEBUGINFOD_URLS") else { return nil }
    let urls = String(cString: value)
    return urls.allSatisfy { $0 == " " } ? nil : DebuginfodClient(urls)
  }

  /// A client of these servers.
  ///
  /// The library reads the environment only, so this sets `DEBUGINFOD_URLS` of the whole process: call it before other
  /// threads read the environment.
  ///
  /// - Parameter urls: at least one, as `https://debuginfod.example`.
  public convenience init(urls: [String]) {
    let text = urls.joined(separator: " ")
    setenv("DEBUGINFOD_URLS", text, 1)
    self.init(text)
  }

  private init(_ urls: String) {
    self.urls = urls
    let configured = getenv("DEBUGINFOD_TIMEOUT").flatMap { Int(String(cString: $0)) } ?? 0
    stallLimit = configured > 0 ? min(configured, 30) : 30
    totalLimit = 300
  }

  deinit {
    if let client { Library.shared?.end(client) }
  }

  /// The debug file with a build id.
  func debugInformation(_ id: BuildID) -> Outcome { answer(Request(kind: .debugInformation, id: id)) }

  /// The program or library with a build id.
  func executable(_ id: BuildID) -> Outcome { answer(Request(kind: .executable, id: id)) }

  private func answer(_ request: Request) -> Outcome {
    if let known = answers[request] { return known }
    let answer = ask(request)
    answers[request] = answer
    return answer
  }

  private func ask(_ request: Request) -> Outcome {
    func failed(_ reason: String) -> Outcome { .failed("debuginfod \(urls) (\(reason))") }
    if let givenUp { return failed("not asked again: \(givenUp)") }
    guard let library = Library.shared else {
      givenUp = "libdebuginfod.so.1 is not installed"
      return failed("cannot be asked: libdebuginfod.so.1 is not installed")
    }
    guard let client = client ?? library.begin() else { return failed("its client library cannot be started") }
    self.client = client
    var deadline = Library.Deadline(stall: stallLimit, total: totalLimit)
    var path: UnsafeMutablePointer<CChar>?
    let result = withUnsafeMutablePointer(to: &deadline) { deadline in
      library.setUserData(client, UnsafeMutableRawPointer(deadline))
      library.setProgress(client, Library.progress)
      defer { library.setUserData(client, nil) }
      return request.id.bytes.withUnsafeBufferPointer { bytes in
        (request.kind == .executable ? library.findExecutable : library.findDebugInformation)(
          client, bytes.baseAddress, Int32(clamping: bytes.count), &path)
      }
    }
    defer { free(path) }
    if result >= 0 {
      close(result)
      if let path { return .found(FilePath(bytes: UnsafeRawBufferPointer(start: path, count: strlen(path)))) }
    }
    if deadline.hasPassed || result == -ETIME || result == -ETIMEDOUT {
      givenUp = "it did not answer in time"
      return failed("did not answer in time")
    }
    if result == -ENOENT { return failed("has no \(request.kind.rawValue) of build id \(request.id)") }
    let reason = errnoText(result < 0 ? -result : EIO)
    // Whom nobody listens for now, nobody will listen for at the next image.
    if [-ECONNREFUSED, -EHOSTUNREACH, -ENETUNREACH, -ECONNRESET, -ENOSYS].contains(result) { givenUp = reason }
    return failed(reason)
  }
}

/// The functions of `libdebuginfod.so.1`.
private struct Library: Sendable {
  typealias Client = OpaquePointer
  typealias Begin = @Sendable @convention(c) () -> Client?
  typealias End = @Sendable @convention(c) (Client?) -> Void
  /// Build id, its length, and where the path goes, which is then the caller's. Returns a descriptor, or `-errno`.
  typealias Find =
    @Sendable @convention(c) (
      Client?, UnsafePointer<UInt8>?, Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    ) -> Int32
  typealias Progress = @Sendable @convention(c) (Client?, Int, Int) -> Int32
  typealias SetProgress = @Sendable @convention(c) (Client?, Progress?) -> Void
  typealias SetUserData = @Sendable @convention(c) (Client?, UnsafeMutableRawPointer?) -> Void
  typealias UserData = @Sendable @convention(c) (Client?) -> UnsafeMutableRawPointer?

  static let shared = Library()

  let begin: Begin
  let end: End
  let findDebugInformation: Find
  let findExecutable: Find
  let setProgress: SetProgress
  let setUserData: SetUserData
  let userData: UserData

  /// How long one request may take, in seconds.
  struct Deadline {
    let stall: Int
    let total: Int
    private let start = Library.now()
    private var lastByte = Library.now()
    private var bytes = 0
    private(set) var hasPassed = false

    init(stall: Int, total: Int) {
      self.stall = stall
      self.total = total
    }

    mutating func note(_ bytes: Int) {
      let now = Library.now()
      if bytes != self.bytes {
        self.bytes = bytes
        lastByte = now
      }
      if now - lastByte >= stall || now - start >= total { hasPassed = true }
    }
  }

  private static func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec
  }

  /// The library calls it at least once a second; anything but 0 ends the request.
  static let progress: Progress = { client, bytes, _ in
    guard let deadline = Library.shared?.userData(client)?.assumingMemoryBound(to: Deadline.self) else { return 0 }
    deadline.pointee.note(bytes)
    return deadline.pointee.hasPassed ? 1 : 0
  }

  private init?() {
    guard let handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL),
      let begin = dlsym(handle, "debuginfod_begin"), let end = dlsym(handle, "debuginfod_end"),
      let findDebugInformation = dlsym(handle, "debuginfod_find_debuginfo"),
      let findExecutable = dlsym(handle, "debuginfod_find_executable"),
      let setProgress = dlsym(handle, "debuginfod_set_progressfn"),
      let setUserData = dlsym(handle, "debuginfod_set_user_data"),
      let userData = dlsym(handle, "debuginfod_get_user_data")
    else { return nil }
    // The types are those of elfutils/debuginfod.h, which the version in the library's name promises to keep.
    self.begin = unsafeBitCast(begin, to: Begin.self)
    self.end = unsafeBitCast(end, to: End.self)
    self.findDebugInformation = unsafeBitCast(findDebugInformation, to: Find.self)
    self.findExecutable = unsafeBitCast(findExecutable, to: Find.self)
    self.setProgress = unsafeBitCast(setProgress, to: SetProgress.self)
    self.setUserData = unsafeBitCast(setUserData, to: SetUserData.self)
    self.userData = unsafeBitCast(userData, to: UserData.self)
  }
}
