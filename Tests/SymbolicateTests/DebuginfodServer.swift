import Foundation
import Glibc
import TestSupport

/// Debian's `debuginfod`, which serves one directory on this machine, for as long as the object lives.
final class DebuginfodServer {
  let url: String
  private let port: UInt16
  private let running: ChildProcess.Running
  private let log: String

  static let path: String? = ["/usr/bin/debuginfod", "/usr/local/bin/debuginfod"].first { path in
    access(path, X_OK) == 0
  }

  /// - Parameters:
  ///   - directory: with the files to serve.
  ///   - buildID: of one of them; the server counts as ready when it has it, as a file of this kind.
  ///   - log: where it notes what it was asked.
  init(serving directory: String, until buildID: String, kind: String = "debuginfo", log: String) throws {
    guard let path = Self.path else { throw ChildProcess.LaunchFailure(description: "debuginfod is not installed") }
    self.log = log
    // Between here and the server's start another process may take the port; then the next one is tried.
    for _ in 0..<5 {
      let (port, socket) = try Loopback.listen()
      close(socket)
      let command = "exec \"$0\" -F -v -p \"$1\" -d :memory: \"$2\" > \"$3\" 2>&1"
      let running = try ChildProcess(
        ["/bin/sh", "-c", command, path, "\(port)", directory, log], environment: ["HOME": directory + "/no-home"]
      ).start()
      if Self.waits(for: running, port: port, path: "/buildid/\(buildID)/\(kind)") {
        (self.port, self.running) = (port, running)
        url = "http://127.0.0.1:\(port)"
        return
      }
      kill(running.processID, SIGKILL)
      _ = try? running.finish()
    }
    throw ChildProcess.LaunchFailure(description: "debuginfod did not get ready: \(Self.text(log))")
  }

  deinit {
    kill(running.processID, SIGTERM)
    _ = try? running.finish()
  }

  /// How often it was asked for a file with this build id.
  func requests(for buildID: String) -> Int {
    Self.text(log).split(separator: "\n").count {
      $0.contains("UA:elfutils") && $0.contains("GET /buildid/\(buildID)/")
    }
  }

  /// How often anyone but this object asked for a file.
  var requests: Int {
    Self.text(log).split(separator: "\n").count { $0.contains("UA:elfutils") && $0.contains("GET /buildid/") }
  }

  private static func text(_ log: String) -> String { String(decoding: contents(of: log) ?? [], as: UTF8.self) }

  /// Asks until the server has scanned its directory; false when it has ended.
  private static func waits(for running: ChildProcess.Running, port: UInt16, path: String) -> Bool {
    while true {
      // One that has ended is a zombie until it is waited for, and still takes this signal.
      let state = String(decoding: contents(of: "/proc/\(running.processID)/stat") ?? [], as: UTF8.self)
      guard let behind = state.lastIndex(of: ")"), !state[behind...].hasPrefix(") Z") else { return false }
      if Loopback.get(path, port: port)?.hasPrefix("HTTP/1.1 200") == true { return true }
      // Not to synchronise, which the question does; only to leave the processor to the server.
      usleep(20_000)
    }
  }
}

/// Sockets on this machine.
enum Loopback {
  /// A listening socket, and its port.
  static func listen() throws -> (port: UInt16, socket: Int32) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = address(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port: UInt16? = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard bind(descriptor, address, length) == 0, Glibc.listen(descriptor, 8) == 0,
          getsockname(descriptor, address, &length) == 0
        else { return nil }
        return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
      }
    }
    guard let port else {
      throw ChildProcess.LaunchFailure(description: "no port: \(String(cString: strerror(errno)))")
    }
    return (port, descriptor)
  }

  /// The beginning of the answer to a request; nil where nobody answers.
  static func get(_ path: String, port: UInt16) -> String? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = address(port: port)
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    let request = Array("GET \(path) HTTP/1.0\r\n\r\n".utf8)
    guard connected, send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
      return nil
    }
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_WAITALL))
    return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
  }

  private static func address(port: UInt16) -> sockaddr_in {
    sockaddr_in(
      sin_family: sa_family_t(AF_INET), sin_port: port.bigEndian,
      sin_addr: in_addr(s_addr: UInt32(0x7f00_0001).bigEndian), sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
  }
}
