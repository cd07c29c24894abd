import CrashModel
import Foundation
import Glibc
import TestSupport
import Testing

/// A store as those use it that it is for.
@Suite(.enabled(if: access("/usr/bin/gcc", X_OK) == 0, "gcc is not installed")) struct ServedStoreTests {
  private struct Fixture {
    let program: BuiltProgram
    let store: Store
    let debug: String
    let bare: String

    /// - Parameter splits: the debug file and the stripped program, instead of the program as it was linked.
    init(splits: Bool) throws {
      program = try BuiltProgram()
      store = Store(path: program.folder.path + "/store")
      debug = try program.objcopy("program.debug", "--only-keep-debug")
      bare = try program.objcopy("bare", "--strip-all")
      let outcome =
        splits ? try store.run("add", debug, bare) : try store.run("add", program.path)
      #expect(outcome.status == .exited(0))
    }

    var wanted: (debuginfo: [UInt8]?, executable: [UInt8]?) {
      store.builtInOneFile(program.buildID)
        ? (contents(of: program.path), contents(of: program.path)) : (contents(of: debug), contents(of: bare))
    }

    /// The file that the client of elfutils downloads; nil where it finds none.
    func find(_ what: String, _ id: String, url: String, cache: String) throws -> [UInt8]? {
      let outcome = try ChildProcess(
        ["/usr/bin/debuginfod-find", what, id],
        environment: ["DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": cache]
      ).run()
      guard outcome.status == .exited(0) else { return nil }
      return contents(of: outcome.text.trimmingCharacters(in: .newlines))
    }
  }

  /// The crash of a program that was stripped since is named from the store.
  @Test(arguments: [false, true]) func symbolicatesFromIt(splits: Bool) throws {
    let fixture = try Fixture(splits: splits)
    let place = fixture.program.folder.path + "/installed"
    try FileManager.default.copyItem(atPath: fixture.bare, toPath: place)
    let report = try fixture.program.report(place: place).json()
    let without = try SymbolicateTool.run("-", input: report)
    #expect(without.status == .exited(1) && !without.text.contains(" inner in "))
    let outcome = try SymbolicateTool.run("--debug-dir", fixture.store.path, "-", input: report)
    #expect(outcome.text.contains(" inner in installed at ") && outcome.text.contains("program.c:1"), "\(outcome.text)")
    #expect(outcome.text.contains(" outer in installed at "))
    let checked = try SymbolicateTool.run(
      "check", "--for", try fixture.program.folder.file("crash.json", report), fixture.store.path)
    #expect(checked.status == .exited(0), "\(checked.text)")
  }

  static let hasClient = access("/usr/bin/debuginfod-find", X_OK) == 0

  /// A web server that knows nothing but files.
  @Test(.enabled(if: hasClient, "debuginfod-find is not installed"), arguments: [false, true])
  func staticWebServer(splits: Bool) throws {
    let fixture = try Fixture(splits: splits)
    let script = """
      import functools, http.server
      handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=\(pythonLiteral(fixture.store.path)))
      server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
      print(server.server_address[1], flush=True)
      server.serve_forever()
      """
    let server = try ChildProcess(["/usr/bin/env", "python3", "-c", script]).start()
    let port = server.readLine()
    let cache = fixture.program.folder.path + "/cache"
    let url = "http://127.0.0.1:\(port)"
    let found = try (
      fixture.find("debuginfo", fixture.program.buildID, url: url, cache: cache),
      fixture.find("executable", fixture.program.buildID, url: url, cache: cache),
      fixture.find("debuginfo", "0123456789", url: url, cache: cache)
    )
    kill(server.processID, SIGTERM)
    let log = try server.finish().errorText
    #expect(found.0 != nil && found.0 == fixture.wanted.debuginfo, "\(log)")
    #expect(found.1 != nil && found.1 == fixture.wanted.executable, "\(log)")
    #expect(found.2 == nil)
    #expect(log.contains("GET /buildid/\(fixture.program.buildID)/debuginfo HTTP/1.1\" 200"), "\(log)")
  }

  /// The server of elfutils, which looks into the files and needs no names.
  @Test(
    .enabled(if: hasClient && access("/usr/bin/debuginfod", X_OK) == 0, "debuginfod is not installed"),
    arguments: [false, true])
  func debuginfodServer(splits: Bool) throws {
    let fixture = try Fixture(splits: splits)
    // It takes no port 0; of those that nobody has, another process may take one meanwhile, and then the next is tried.
    for _ in 0..<20 {
      let port = try Self.freePort()
      let server = try ChildProcess(
        [
          "/bin/sh", "-c", "exec debuginfod -v -F -d :memory: -p \"$1\" \"$2\" 2>&1", "sh", String(port),
          fixture.store.path,
        ], environment: ["DEBUGINFOD_URLS": ""]
      ).start()
      var line = server.readLine()
      while !line.isEmpty, !line.contains("fts traversed") { line = server.readLine() }
      var found: ([UInt8]?, [UInt8]?) = (nil, nil)
      // It has seen the names, and looks into the files now. Each try has a cache of its own, as the client remembers failures.
      if !line.isEmpty {
        for attempt in 0..<200 where found.0 == nil || found.1 == nil {
          let cache = fixture.program.folder.path + "/cache\(attempt)"
          let url = "http://127.0.0.1:\(port)"
          found = try (
            fixture.find("debuginfo", fixture.program.buildID, url: url, cache: cache),
            fixture.find("executable", fixture.program.buildID, url: url, cache: cache)
          )
        }
      }
      kill(server.processID, SIGTERM)
      let log = try server.finish().text
      if line.isEmpty { continue }
      #expect(found.0 != nil && found.0 == fixture.wanted.debuginfo, "\(log)")
      #expect(found.1 != nil && found.1 == fixture.wanted.executable, "\(log)")
      return
    }
    Issue.record("debuginfod did not start on any of 20 ports")
  }

  private static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard result else { throw ChildProcess.LaunchFailure(description: "no port: \(String(cString: strerror(errno)))") }
    return UInt16(bigEndian: address.sin_port)
  }
}

/// As a literal of Python.
private func pythonLiteral(_ text: String) -> String {
  "\"" + text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"") + "\""
}

extension Store {
  fileprivate func builtInOneFile(_ id: String) -> Bool {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: file(id, ".debug"))) != nil
  }
}
