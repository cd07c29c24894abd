import Foundation
import Glibc
import TestSupport
import Testing

/// What the clients of the sample service see of the reporter: nothing.
@Suite struct ServingTests {
  /// `Tests/soak` asks for more.
  private let quits = ProcessInfo.processInfo.environment["SNAPSHOT_QUITS"].flatMap { Int($0) } ?? 20

  /// Asks one request after another, each in a connection of its own, until told to end.
  // `@unchecked`: everything but the port is reached under the lock.
  private final class Client: @unchecked Sendable {
    private let port: UInt16
    private let lock = NSLock()
    private var answers: [String: Int] = [:]
    private var isDone = false
    private let threads = DispatchGroup()

    init(port: UInt16, threads count: Int) {
      self.port = port
      for _ in 0..<count {
        threads.enter()
        Thread.detachNewThread {
          while !self.isOver {
            let answer = self.ask("GET /orders/1")
            self.lock.withLock { self.answers[answer, default: 0] += 1 }
          }
          self.threads.leave()
        }
      }
    }

    private var isOver: Bool { lock.withLock { isDone } }
    var count: Int { lock.withLock { answers.values.reduce(0, +) } }

    /// How often each answer came.
    func finish() -> [String: Int] {
      lock.withLock { isDone = true }
      threads.wait()
      return lock.withLock { answers }
    }

    /// This process takes no signals here: what fails is the service's doing.
    private func ask(_ request: String) -> String {
      let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(connection) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
      let connected = withUnsafeBytes(of: address) { bytes in
        connect(connection, bytes.bindMemory(to: sockaddr.self).baseAddress, socklen_t(bytes.count))
      }
      guard connected == 0 else { return "connect: \(String(cString: strerror(errno)))" }
      let line = Array((request + "\n").utf8)
      guard send(connection, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
        return "send: \(String(cString: strerror(errno)))"
      }
      var answer: [UInt8] = []
      var part = [UInt8](repeating: 0, count: 256)
      while true {
        let length = recv(connection, &part, part.count, 0)
        guard length >= 0 else { return "recv: \(String(cString: strerror(errno)))" }
        if length == 0 { return String(decoding: answer, as: UTF8.self) }
        answer += part[..<length]
      }
    }
  }

  /// Requests under load while SIGQUIT asks for one snapshot behind the other: the process serves on, and each request is
  /// answered as ever. The service answers with an error where one of its calls returns EINTR.
  @Test func noRequestFailsUnderSnapshots() throws {
    let run = try TemporaryDirectory("serving")
    let service = try ChildProcess([
      Sample.service("debug-dynamic"), "--spool", run.path + "/spool", "--release", "1.0.0", "--listen",
    ]).start()
    #expect(service.readLine() == "900")
    let words = service.readLine().split(separator: " ")
    try #require(words.count == 3 && words[0] == "listening", "\(words)")
    let client = Client(port: try #require(UInt16(words[1])), threads: 4)
    func snapshots() -> Set<String> { Set(run.names(in: "spool/new").filter { $0.hasSuffix(".json") }) }
    // All of them: the oldest ones go.
    var seen: Set<String> = []
    for _ in 0..<quits {
      let before = client.count
      #expect(kill(service.processID, SIGQUIT) == 0)
      for _ in 0..<3_000 where snapshots().isSubset(of: seen) || client.count < before + 8 { usleep(10_000) }
      seen.formUnion(snapshots())
    }
    let answers = client.finish()
    #expect(answers.keys.sorted() == ["200 900\n"], "\(answers)")
    #expect(answers.values.reduce(0, +) >= 8 * quits)
    #expect(seen.count == quits, "each SIGQUIT made a report")
    #expect(kill(service.processID, SIGTERM) == 0)
    let outcome = try service.finish()
    #expect(outcome.status == .signaled(SIGTERM))
    #expect(!outcome.errorText.contains("orderd: "), "\(outcome.errorText)")
    for name in snapshots() {
      let report = try JSONObject(contents(of: "\(run.path)/spool/new/\(name)") ?? [])
      #expect(report.string("kind") == "snapshot")
      let threads = report.fields["threads"] as? [[String: Any]] ?? []
      let serving = threads.filter { thread in
        (thread["frames"] as? [[String: Any]] ?? []).contains {
          ($0["function"] as? String)?.contains("Server.serve()") == true
        }
      }
      #expect(serving.count == 8, "\(threads.map { $0["status"] ?? "" })")
    }
  }
}
