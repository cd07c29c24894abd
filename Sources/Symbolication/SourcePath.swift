/// Paths of source files, as compilers record them: in pieces, relative, with `..` inside.
enum SourcePath {
  /// Joins the pieces and takes `.`, `..` and doubled slashes out.
  ///
  /// A name in angle brackets (`<compiler-generated>`, `<stdin>`) is no path and stays as it is: other tools prefix it
  /// with the directory of the compilation and so invent a file.
  static func join(compilationDirectory: String?, directory: String?, name: String) -> String {
    if isPlaceholder(name) { return name }
    var path = name
    if !path.hasPrefix("/"), let directory, !directory.isEmpty { path = directory + "/" + path }
    if !path.hasPrefix("/"), let compilationDirectory, !compilationDirectory.isEmpty {
      path = compilationDirectory + "/" + path
    }
    return normalized(path)
  }

  static func isPlaceholder(_ name: String) -> Bool { name.hasPrefix("<") && name.hasSuffix(">") }

  /// The path without `.`, `..` and doubled slashes, by text alone: the directories are the compiler's, not ours, so that
  /// no symbolic link can be asked.
  static func normalized(_ path: String) -> String {
    guard needsWork(path) else { return path }
    let isAbsolute = path.hasPrefix("/")
    var components: [Substring.UTF8View] = []
    for component in path.utf8.split(separator: UInt8(ascii: "/")) {
      if component.elementsEqual(".".utf8) { continue }
      if component.elementsEqual("..".utf8) {
        if let last = components.last, !last.elementsEqual("..".utf8) {
          components.removeLast()
          continue
        }
        if isAbsolute { continue }
      }
      components.append(component)
    }
    return (isAbsolute ? "/" : "") + components.map { String(Substring($0)) }.joined(separator: "/")
  }

  private static func needsWork(_ path: String) -> Bool {
    var previous: UInt8 = 0
    for byte in path.utf8 {
      if previous == UInt8(ascii: "/"), byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".") { return true }
      previous = byte
    }
    return path.hasPrefix("./") || path.hasPrefix("../") || path.count > 1 && path.hasSuffix("/")
  }
}
