public import CrashModel
private import Glibc

/// Lines of source code around the places that frames name.
///
/// A path in a report is the compiler's, of another machine perhaps, and the report may come from anybody. So only regular
/// files are read whose name is that of source code, up to 16 MiB, and never by way of `..`; whatever else a report names
/// (`/etc/shadow`, a device) is refused. Whether the file is still what was compiled, nobody knows.
///
/// To be used by one thread at a time; keeps the files that it read last.
///
/// ```swift
/// let source = SourceReader(contextLines: 3, roots: ["/home/me/src/orderd"])
/// print(TextReportWriter().text(of: report, source: source), terminator: "")
/// ```
public final class SourceReader {
  /// Lines before and behind the one that is named, each.
  public let contextLines: Int
  private let roots: [FilePath]
  private var files: [String: File] = [:]
  private var order: [String] = []
  /// Why files gave no lines: a sentence for each, once.
  public private(set) var problems: [String] = []

  static let sizeLimit = 16 << 20
  private static let openLimit = 32
  private static let problemLimit = 100
  /// That show source code.
  static let framesOfThread = 10
  /// Cells of a terminal; a line of generated code can have a million.
  private static let widthLimit = 400

  /// Lines of a file around one of them.
  public struct Window: Hashable, Sendable {
    /// Number of the first line, from 1.
    public var firstLine: Int
    /// Without line ends; text that is not UTF-8 is repaired.
    public var lines: [String]
    /// The line that the frame names.
    public var line: Int
  }

  private enum File {
    case lines(bytes: [UInt8], starts: [Int])
    case missing
  }

  /// - Parameters:
  ///   - contextLines: lines before and behind; below 0 counts as 0, above 100 as 100.
  ///   - roots: directories that hold the sources. The compiler's path is looked for below each, first whole, then without
  ///     its first component, without its first two, and so on. Without roots the path is taken as it is.
  public convenience init(contextLines: Int, roots: [String] = []) {
    self.init(contextLines: contextLines, rootPaths: roots.map { FilePath($0) })
  }

  package init(contextLines: Int, rootPaths: [FilePath]) {
    self.contextLines = min(max(contextLines, 0), 100)
    roots = rootPaths
  }

  /// The lines around a frame's place; nil where it has none, or the file gives none (`problems` says why).
  public func window(for frame: SymbolicatedFrame) -> Window? {
    guard let path = frame.file, let line = frame.line, line > 0 else { return nil }
    return window(path: path, line: line)
  }

  /// Gives the frames of the application the lines around their places: of each thread the first ten that have some, as
  /// in the text. Lines that a frame came with are replaced where the file gives some here, and stay otherwise.
  public func addLines(to report: inout CrashReport) {
    for thread in report.threads.indices {
      var count = 0
      for index in report.threads[thread].frames.indices where count < Self.framesOfThread {
        guard case .symbolicated(var frame) = report.threads[thread].frames[index], frame.inApp != false,
          let window = window(for: frame)
        else { continue }
        frame.source = SourceLines(firstLine: window.firstLine, lines: window.lines)
        report.threads[thread].frames[index] = .symbolicated(frame)
        count += 1
      }
    }
  }

  /// The lines around a frame's place: from its file, or else those that the report came with.
  static func window(for frame: SymbolicatedFrame, from source: SourceReader?) -> Window? {
    if let window = source?.window(for: frame) { return window }
    guard let kept = frame.source, let line = frame.line, line >= kept.firstLine,
      line - kept.firstLine < kept.lines.count
    else { return nil }
    return Window(
      firstLine: kept.firstLine, lines: kept.lines.map { Printable.truncated($0, toWidth: widthLimit) }, line: line)
  }

  func window(path: String, line: Int) -> Window? {
    guard case .lines(let bytes, let starts) = file(path) else { return nil }
    guard line <= starts.count else {
      note("\(path): has \(starts.count) lines, and line \(line) was wanted; it is not the file that was compiled")
      return nil
    }
    let first = max(1, line - contextLines)
    let last = min(starts.count, line + contextLines)
    let lines = (first...last).map { number -> String in
      let start = starts[number - 1]
      var end = number < starts.count ? starts[number] - 1 : bytes.count
      if end > start, bytes[end - 1] == UInt8(ascii: "\n") { end -= 1 }
      if end > start, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
      // Four bytes a cell at most, but for marks that pile up on one.
      let text = String(decoding: bytes[start..<min(end, start + 4 * Self.widthLimit)], as: UTF8.self)
      return Printable.truncated(text, toWidth: Self.widthLimit)
    }
    return Window(firstLine: first, lines: lines, line: line)
  }

  private func file(_ path: String) -> File {
    if let known = files[path] { return known }
    let read = read(path)
    if order.count >= Self.openLimit { files[order.removeFirst()] = nil }
    order.append(path)
    files[path] = read
    return read
  }

  private func read(_ path: String) -> File {
    let components = path.utf8.split(separator: UInt8(ascii: "/"))
    guard !path.utf8.contains(0), !components.contains(where: { $0.elementsEqual("..".utf8) }) else {
      note("\(path): source lines are not read by way of '..'")
      return .missing
    }
    guard Self.isSourceName(components.last.map(Array.init) ?? []) else {
      // The compiler's `<compiler-generated>` is no news.
      if !path.utf8.contains(UInt8(ascii: "<")) {
        note("\(path): is not named like source code, and is not read")
      }
      return .missing
    }
    var candidates: [FilePath] = []
    if roots.isEmpty {
      guard path.hasPrefix("/") else {
        note("\(path): no such file from here; name the directory of the sources with --source-root DIR")
        return .missing
      }
      candidates = [FilePath(path)]
    } else {
      // A path of a thousand components would be a thousand look-ups for each root.
      for start in 0..<min(components.count, 64) {
        for root in roots {
          candidates.append(components[start...].reduce(root) { $0.appending(Array($1)) })
        }
      }
    }
    for candidate in candidates {
      switch Self.contents(of: candidate) {
      case .success(let bytes):
        var starts = [0]
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") { starts.append(index + 1) }
        if starts.last == bytes.count { starts.removeLast() }
        return .lines(bytes: bytes, starts: starts)
      case .failure(.absent): continue
      case .failure(.refused(let why)):
        note("\(candidate): \(why)")
        return .missing
      }
    }
    let places = roots.isEmpty ? "" : " below \(roots.map(\.description).joined(separator: ", "))"
    note("\(path): not found\(places); name the directory of the sources with --source-root DIR")
    return .missing
  }

  private enum Failure: Error {
    case absent
    case refused(String)
  }

  private static func contents(of path: FilePath) -> Result<[UInt8], Failure> {
    // Not blocking, so that a pipe with a source file's name is not waited for.
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else {
      let number = errno
      return .failure(
        [ENOENT, ENOTDIR, ENAMETOOLONG].contains(number) ? .absent : .refused(errnoText(number)))
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      return .failure(.refused("is no regular file, and is not read"))
    }
    guard status.st_size <= sizeLimit else {
      return .failure(.refused("larger than \(sizeLimit >> 20) MiB, and not read"))
    }
    var bytes: [UInt8] = []
    let chunk = 1 << 16
    // The file may grow meanwhile.
    while bytes.count <= sizeLimit {
      let start = bytes.count
      bytes += repeatElement(0, count: chunk)
      let count = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress?.advanced(by: start), chunk) }
      bytes.removeLast(chunk - max(count, 0))
      if count == 0 { return .success(bytes) }
      if count < 0, errno != EINTR { return .failure(.refused(errnoText(errno))) }
    }
    return .failure(.refused("larger than \(sizeLimit >> 20) MiB, and not read"))
  }

  private static let sourceSuffixes: Set<String> = [
    "swift", "c", "cc", "cpp", "cxx", "c++", "m", "mm", "h", "hh", "hpp", "hxx", "inc", "ipp", "tcc", "def", "rs", "go",
    "s", "asm", "gyb", "y", "l",
  ]

  private static func isSourceName(_ name: [UInt8]) -> Bool {
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return false }
    return sourceSuffixes.contains(String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased())
  }

  private func note(_ problem: String) {
    guard problems.count < Self.problemLimit, !problems.contains(problem) else { return }
    problems.append(problem)
  }
}
