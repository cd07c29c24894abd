private import Glibc

/// A folder of a test's own, removed with everything in it when the test lets it go.
public final class TemporaryDirectory: Sendable {
  public let path: String

  public init(_ purpose: String = "test") throws {
    var template = Array("/tmp/swift-crash-\(purpose)-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw ChildProcess.LaunchFailure(description: "mkdtemp: \(String(cString: strerror(errno)))")
    }
    path = String(cString: made)
  }

  /// A folder with a fixed path, emptied first.
  public init(replacing path: String) throws {
    self.path = path
    remove()
    guard mkdir(path, 0o700) == 0 else {
      throw ChildProcess.LaunchFailure(description: "mkdir: \(String(cString: strerror(errno)))")
    }
  }

  deinit { remove() }

  private func remove() {
    // nftw would need a C callback with global state; `rm` walks as well, and refuses to follow links.
    _ = try? ChildProcess(["/bin/rm", "-rf", "--", path]).run()
  }

  /// Names in a folder below, sorted; empty where there is no such folder.
  public func names(in folder: String = "") -> [String] {
    guard let directory = opendir(folder.isEmpty ? path : "\(path)/\(folder)") else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}

/// The bytes of a file; nil where it cannot be read.
public func contents(of path: String) -> [UInt8]? {
  let file = open(path, O_RDONLY | O_CLOEXEC)
  guard file >= 0 else { return nil }
  defer { close(file) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = read(file, &buffer, buffer.count)
    guard count > 0 else { return count == 0 ? bytes : nil }
    bytes.append(contentsOf: buffer[..<count])
  }
}

/// Makes a file of these bytes.
public func write(_ bytes: [UInt8], to path: String) throws {
  let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
  guard file >= 0 else { throw ChildProcess.LaunchFailure(description: "\(path): \(String(cString: strerror(errno)))") }
  defer { close(file) }
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    guard count > 0 else {
      throw ChildProcess.LaunchFailure(description: "\(path): \(String(cString: strerror(errno)))")
    }
    rest = rest.dropFirst(count)
  }
}
