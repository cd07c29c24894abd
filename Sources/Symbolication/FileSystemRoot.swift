internal import CrashModel
private import Glibc

/// What an image's absolute paths are relative to: `/`, or a directory that holds the file system of a container.
struct FileSystemRoot {
  /// As many links as the kernel follows in one path.
  private static let maximumLinks = 40

  /// Nil for `/`.
  let directory: FilePath?

  /// Where the file lies that a process in this file system knows by `path`.
  ///
  /// Symbolic links are followed here and not by the kernel: in a container's files the target of an absolute one begins at
  /// the container's root, and `..` above that stays there. The result has no links left; what does not exist is taken by
  /// its name.
  ///
  /// - Returns: nil where the links lead in a circle.
  func resolve(_ path: FilePath) -> FilePath? {
    guard let directory else { return path }
    var resolved: [[UInt8]] = []
    var pending: [[UInt8]] = Self.components(path.bytes).reversed()
    var links = 0
    while let component = pending.popLast() {
      if component == [UInt8(ascii: "."), UInt8(ascii: ".")] {
        _ = resolved.popLast()
        continue
      }
      let candidate = Self.join(directory, resolved + [component])
      guard let target = Self.target(of: candidate) else {
        resolved.append(component)
        continue
      }
      links += 1
      guard links <= Self.maximumLinks else { return nil }
      if target.first == UInt8(ascii: "/") { resolved.removeAll() }
      pending += Self.components(target).reversed()
    }
    return Self.join(directory, resolved)
  }

  /// The path by which a process in this file system knows a file; nil for one outside of it.
  func path(of file: FilePath) -> FilePath? {
    guard let directory else { return file.bytes.first == UInt8(ascii: "/") ? file : nil }
    var prefix = directory.bytes
    while prefix.last == UInt8(ascii: "/") { prefix.removeLast() }
    guard file.bytes.starts(with: prefix), file.bytes.count > prefix.count,
      file.bytes[prefix.count] == UInt8(ascii: "/")
    else { return nil }
    return FilePath(bytes: file.bytes[prefix.count...])
  }

  private static func components(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.split(separator: UInt8(ascii: "/")).map { Array($0) }.filter { $0 != [UInt8(ascii: ".")] }
  }

  private static func join(_ directory: FilePath, _ components: [[UInt8]]) -> FilePath {
    components.reduce(directory) { $0.appending($1) }
  }

  /// What a symbolic link says; nil for anything else.
  private static func target(of path: FilePath) -> [UInt8]? {
    guard !path.hasNUL else { return nil }
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = path.withCString { readlink($0, &buffer, buffer.count) }
    return count > 0 ? buffer[..<count].map { UInt8(bitPattern: $0) } : nil
  }
}
