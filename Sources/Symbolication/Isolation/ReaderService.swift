internal import CLibdw
internal import CrashModel
private import Glibc

/// What a reader does: answers until nobody asks any more.
enum ReaderService {
  /// Exit status where memory ran out in libdw.
  static let noMemoryCode: CInt = 77

  static func run(
    on channel: MessageChannel, watch: ReadingWatch, limits: ReaderLimits, makeSearch: () -> DebugFileSearch
  ) -> Never {
    leaveParent(limits: limits)
    watch.beginRequest()
    let search = makeSearch()
    search.watch = watch
    var service = Service(reader: LocalImageReader(search))
    while true {
      do throws(MessageChannel.Failure) {
        let message = try channel.receive()
        watch.beginRequest()
        guard let request = message.withUnsafeBytes({ ReaderRequest($0) }) else { break }
        if let reply = service.reply(to: request) { try channel.send(reply.bytes) }
      } catch {
        break
      }
    }
    // What the program does at its end, and what it has not written yet, is the other process's.
    _exit(0)
  }

  /// Keeps apart what two processes share after a fork.
  private static func leaveParent(limits: ReaderLimits) {
    // A reader that outlives its program must not hold its pipes open; nor is what it says at its death for anybody.
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    if null >= 0 { for descriptor: CInt in 0...2 { dup2(null, descriptor) } }
    // Whatever handlers there are, the runtime's backtracer among them, are for the program's own death.
    for number in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGPROF, SIGQUIT, SIGTERM] {
      signal(number, SIG_DFL)
    }
    var signals = sigset_t()
    sigemptyset(&signals)
    sigprocmask(SIG_SETMASK, &signals, nil)
    set(RLIMIT_CORE, 0)
    // Not RLIMIT_AS, which counts every mapped file: many are open at once, and each may have gigabytes.
    let (memory, isAll) = limits.memory.addingReportingOverflow(usedMemory())
    if !isAll { set(RLIMIT_DATA, memory) }
    // Where the machine itself has less than that, the kernel shall choose the reader and not the program.
    let score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)
    if score >= 0 {
      _ = write(score, "1000", 4)
      close(score)
    }
  }

  private static func set(_ resource: __rlimit_resource, _ value: UInt64) {
    var limit = rlimit(rlim_cur: rlim_t(value), rlim_max: rlim_t(value))
    _ = setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
  }

  /// What the program had allocated before the fork, in bytes: it counts as the reader's too.
  private static func usedMemory() -> UInt64 {
    let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return 1 << 30 }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = read(descriptor, &buffer, buffer.count)
    // The sixth field: data and stack, in pages.
    let fields = String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self).split(separator: " ")
    guard fields.count > 5, let pages = UInt64(fields[5]) else { return 1 << 30 }
    return pages &* UInt64(sysconf(CInt(_SC_PAGESIZE)))
  }
}

/// The state of a reader.
private struct Service {
  let reader: LocalImageReader
  private var answers: [UInt32: LocalImageAnswers] = [:]

  init(reader: LocalImageReader) { self.reader = reader }

  /// - Returns: nil where none is expected.
  mutating func reply(to request: ReaderRequest) -> ReaderReply? {
    switch request {
    case .given:
      return .given(
        files: reader.givenFiles.map { ReaderReply.GivenFile(path: $0.path, buildID: $0.buildID) },
        unreadableFiles: reader.unreadableFiles, unreadableDirectories: reader.unreadableDirectories)
    case .image(let path):
      do throws(DebugFileError) {
        let image = try reader.image(ofFile: path)
        return .image(path: image.path, buildID: image.buildID)
      } catch {
        return .failure(error)
      }
    case .core(let path):
      do throws(DebugFileError) {
        return .report(try reader.report(ofCore: path))
      } catch {
        return .failure(error)
      }
    case .find(let number, let path, let buildID, let file):
      let image = Image(path: path, buildID: buildID, address: Address(rawValue: 0), size: 0)
      let found = reader.localAnswers(for: image, file: file)
      answers[number] = found
      return .findings(found.findings)
    case .functions(let number, let addresses, let nearestLines):
      return .functions(
        answers[number]?.functions(at: addresses, nearestLines: nearestLines) ?? RawAnswers(functions: [], time: 0))
    case .table(let number, let key):
      guard let table = answers[number]?.table(key: key) else { return .table(nil) }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(table.size)
      table.forEachPiece { bytes += $0 }
      return .table(bytes)
    case .close(let number):
      answers[number] = nil
      return nil
    }
  }
}
