import Dispatch
import Glibc

/// Answers requests that come over a socket: a line that names one, answered by a line with a status, as HTTP has them.
///
/// Written as many a service is, with threads that wait in calls which a signal interrupts. Whatever such a call returns but
/// what was asked for is an answer with the status 500, EINTR too: nothing here expects it.
final class Server: Sendable {
  private let service: OrderService
  private let listener: Int32
  /// On the loopback interface; the kernel chose it.
  let port: UInt16

  struct Failure: Error {
    var call: String
    var number: Int32
    var text: String { "\(call): \(String(cString: strerror(number)))" }
  }

  init(_ service: OrderService) throws(Failure) {
    self.service = service
    listener = try Self.check("socket", socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let (bound, named) = withUnsafeMutableBytes(of: &address) { bytes in
      guard let address = bytes.bindMemory(to: sockaddr.self).baseAddress else { return (Int32(-1), Int32(-1)) }
      return (bind(listener, address, length), getsockname(listener, address, &length))
    }
    try Self.check("bind", bound)
    try Self.check("getsockname", named)
    try Self.check("listen", listen(listener, 128))
    port = UInt16(bigEndian: address.sin_port)
  }

  /// Serves on so many threads of its own, for as long as the process lives.
  func start(threads: Int) {
    for _ in 0..<threads { DispatchQueue(label: "requests").async { self.serve() } }
  }

  private func serve() {
    while true {
      var problem: Failure?
      do throws(Failure) {
        var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard try Self.check("poll", poll(&entry, 1, 100)) > 0 else { continue }
      } catch { problem = error }
      let connection = accept(listener, nil, nil)
      guard connection >= 0 else {
        complain("orderd: \(Failure(call: "accept", number: errno).text)")
        continue
      }
      answer(on: connection, problem)
      close(connection)
    }
  }

  private func answer(on connection: Int32, _ problem: Failure?) {
    var line: String
    do throws(Failure) {
      if let problem { throw problem }
      var limit = timeval(tv_sec: 30, tv_usec: 0)
      let size = socklen_t(MemoryLayout<timeval>.size)
      try Self.check("setsockopt", setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, size))
      let request = try readLine(from: connection)
      line = Request(rawValue: request).map { "200 \(wait(for: $0))" } ?? "404 no such request: \(request)"
    } catch { line = "500 \(error.text)" }
    line += "\n"
    let count = line.utf8.count
    let sent = line.withCString { send(connection, $0, count, Int32(MSG_NOSIGNAL)) }
    if sent != count { complain("orderd: \(Failure(call: "send", number: errno).text)") }
  }

  private func readLine(from connection: Int32) throws(Failure) -> String {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while line.count < 200 {
      guard try Self.check("recv", recv(connection, &byte, 1, 0)) == 1, byte != UInt8(ascii: "\n") else { break }
      line.append(byte)
    }
    return String(decoding: line, as: UTF8.self)
  }

  /// The thread is not one of those that run tasks, and so may wait for one.
  private func wait(for request: Request) -> String {
    let answer = Answer()
    Task {
      answer.text = await service.answer(request)
      answer.isThere.signal()
    }
    answer.isThere.wait()
    return answer.text
  }

  // `@unchecked`: written before the semaphore is raised and read behind that.
  private final class Answer: @unchecked Sendable {
    let isThere = DispatchSemaphore(value: 0)
    var text = ""
  }

  @discardableResult
  private static func check<Number: BinaryInteger>(_ call: String, _ result: Number) throws(Failure) -> Number {
    if result < 0 { throw Failure(call: call, number: errno) }
    return result
  }
}
