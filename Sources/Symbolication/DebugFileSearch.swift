public import CrashModel
private import Glibc

/// Finds the files with an image's names on this machine.
///
/// The places, in this order, until one has debug information and one has a full symbol table:
///
/// 1. the files that were given;
/// 2. in each directory that was given: `.build-id/ab/cdef….debug`, `ab/cdef….debug`, the image's own path below it, its
///    name and its name with `.debug`, and at last any ELF file below it with the build id;
/// 3. the image's own path;
/// 4. the file that the image's `.gnu_debuglink` names: beside it, in `.debug/`, and in `/usr/lib/debug/<its directory>`;
/// 5. `/usr/lib/debug/.build-id/ab/cdef….debug`.
///
/// A file counts only if its build id is the image's. One with another build id is never used, and the result names it.
/// The network is never asked: libdw's own search would ask a debuginfod server wherever `DEBUGINFOD_URLS` is set, so it
/// is not used. Not thread-safe.
///
/// ```swift
/// let search = DebugFileSearch(directories: ["/srv/debug"])
/// let found = search.files(for: image)
/// for refusal in found.refusals { print(refusal) }
/// ```
public final class DebugFileSearch {
  /// Of a process that reads for another one; to be set before anything is asked.
  var watch: ReadingWatch?
  private let givenPaths: [FilePath]
  private lazy var files: [GivenFile] = givenPaths.map { path in
    do throws(DebugFileError) {
      return GivenFile(path: path, buildID: try ELFHandle(path: path, watch: watch).buildID, error: nil)
    } catch {
      return GivenFile(path: path, buildID: nil, error: error)
    }
  }
  private let directories: [FilePath]
  private let systemDirectory: FilePath?
  private let usesImagePaths: Bool
  private var indexes: [FilePath: DebugDirectoryIndex] = [:]

  private struct GivenFile {
    var path: FilePath
    var buildID: BuildID?
    var error: DebugFileError?
  }

  /// - Parameters:
  ///   - files: debug files, executables or libraries; each is used for the image with its build id.
  ///   - directories: looked through as the type's documentation says.
  ///   - systemDirectory: `/usr/lib/debug`, or nil to leave it out.
  ///   - usesImagePaths: whether to look where the process had the image: right where it ran on this machine, and
  ///     harmless elsewhere, because of the build id.
  public convenience init(
    files: [String] = [], directories: [String] = [], systemDirectory: String? = "/usr/lib/debug",
    usesImagePaths: Bool = true
  ) {
    self.init(
      files: files.map { FilePath($0) }, directories: directories.map { FilePath($0) },
      systemDirectory: systemDirectory.map { FilePath($0) }, usesImagePaths: usesImagePaths)
  }

  package init(
    files: [FilePath], directories: [FilePath], systemDirectory: FilePath? = FilePath("/usr/lib/debug"),
    usesImagePaths: Bool = true
  ) {
    self.directories = directories
    self.systemDirectory = systemDirectory
    self.usesImagePaths = usesImagePaths
    givenPaths = files
  }

  /// Given files that cannot be read, which is worth telling whoever gave them.
  public var unreadableFiles: [DebugFileError] { files.compactMap(\.error) }

  /// Given directories that do not exist or cannot be read, which is worth telling as well.
  public var unreadableDirectories: [DebugFileError] {
    directories.compactMap { directory in
      DirectoryListing(of: directory, limit: 1).failure.map { .cannotOpen(path: directory.description, code: $0) }
    }
  }

  /// Given files that can be read, with their build ids: what is none of any image's was given in vain.
  public var givenFiles: [(path: String, buildID: BuildID?)] {
    files.filter { $0.error == nil }.map { ($0.path.description, $0.buildID) }
  }

  /// What was found for one image.
  ///
  /// Opens files and may walk a given directory, once for all images. Never fails: what cannot be used is in the result.
  public func files(for image: Image) -> FoundDebugFiles {
    var found = Candidates(image: image, watch: watch)
    searchGivenFiles(&found)
    for directory in directories where !found.isComplete { search(directory, &found) }
    // An image without a build id could be any build; only the file that the process itself mapped comes into question.
    if !found.isComplete, usesImagePaths { searchImagePath(&found) }
    if !found.isComplete { searchDebugLink(&found) }
    if !found.isComplete, let systemDirectory, let id = image.buildID {
      for path in Self.buildIDPaths(of: id, below: systemDirectory.appending(".build-id")) { found.consider(path) }
    }
    return found.result
  }

  private func searchGivenFiles(_ found: inout Candidates) {
    guard let id = found.image.buildID else { return }
    for file in files {
      if file.buildID == id {
        found.consider(file.path)
      } else if file.error == nil, found.isNamedLikeImage(file.path) {
        // A file given for another image is no mistake; one of the same name is.
        found.refuse(file.path, .buildID(expected: id, found: file.buildID))
      }
    }
    if !files.isEmpty { found.searched.append("the \(files.count) given file\(files.count == 1 ? "" : "s")") }
  }

  private func search(_ directory: FilePath, _ found: inout Candidates) {
    guard let id = found.image.buildID else { return }
    for path in Self.buildIDPaths(of: id, below: directory.appending(".build-id")) {
      found.consider(path, isListed: false)
    }
    for path in Self.buildIDPaths(of: id, below: directory) { found.consider(path, isListed: false) }
    if found.image.path.hasPrefix("/") {
      found.consider(directory.appending(String(found.image.path.dropFirst())), isListed: false)
    }
    let name = found.image.name
    if !name.isEmpty {
      found.consider(directory.appending(name), isListed: false)
      found.consider(directory.appending(name + ".debug"), isListed: false)
    }
    found.searched.append("\(directory) and what is below it")
    if found.isComplete { return }
    let index = indexes[directory] ?? DebugDirectoryIndex(directory, watch: watch)
    indexes[directory] = index
    if let path = index.byBuildID[id] {
      found.consider(path, isListed: false)
    } else {
      for path in (index.byName[Array(name.utf8)] ?? []) + (index.byName[Array((name + ".debug").utf8)] ?? []) {
        found.consider(path, isListed: false)
      }
    }
    if index.isCut {
      found.searched.append(
        "\(directory) has more than \(DebugDirectoryIndex.maximumEntries) entries; the rest was left out")
    }
    found.searched += index.unreadable
  }

  private func searchImagePath(_ found: inout Candidates) {
    // The kernel's own image and anonymous ones have a name, but no file.
    guard found.image.path.hasPrefix("/") else { return }
    var path = found.image.path
    // What the kernel appends to the path of a file that was replaced while the process ran.
    let deleted = " (deleted)"
    if path.hasSuffix(deleted) { path.removeLast(deleted.count) }
    found.consider(FilePath(path), check: found.image.buildID == nil ? .nothing : .buildID)
  }

  private func searchDebugLink(_ found: inout Candidates) {
    guard let origin = found.linkOrigin, let link = origin.debugLink else { return }
    // The name comes from a file that anyone may have made.
    guard !link.name.contains("/"), !link.name.isEmpty else { return }
    let check: Candidates.Check = found.image.buildID == nil ? .checksum(link.checksum) : .buildID
    for directory in Self.directories(of: origin.location) {
      found.consider(directory.appending(link.name), check: check)
      found.consider(directory.appending(".debug/" + link.name), check: check)
      if let systemDirectory {
        let below = FilePath(bytes: systemDirectory.bytes + directory.bytes)
        found.consider(below.appending(link.name), check: check)
      }
    }
  }

  /// The directory of a path, and the one that it stands for after all symbolic links.
  private static func directories(of path: FilePath) -> [FilePath] {
    var result = [path.directory]
    if let real = RealPath.of(path), real.directory != result[0] { result.append(real.directory) }
    return result
  }

  private static func buildIDPaths(of id: BuildID, below directory: FilePath) -> [FilePath] {
    guard id.bytes.count > 1 else { return [] }
    let text = id.description
    let name = "\(text.prefix(2))/\(text.dropFirst(2))"
    // Without the suffix the tree names the program itself, which is worth having for its symbols.
    return [directory.appending(name + ".debug"), directory.appending(name)]
  }
}

/// The files that a search chose, and what it passed over.
public struct FoundDebugFiles {
  /// Has DWARF; nil where none was found.
  public var debugInformation: DebugFile?
  /// Has a symbol table, the full one where there is one; nil where none was found.
  public var symbols: DebugFile?
  /// The right file, where it has no names at all.
  var nameless: String?
  /// Files that were there and not used, or used for less than expected.
  public var refusals: [Refusal]
  /// Where was looked, in order; for a message.
  public var searched: [String]
  /// The image has no build id, so that nothing proves that the file is the one that ran.
  public var isUnverified: Bool

  /// A file that was found and not used.
  public struct Refusal: Hashable, Sendable, CustomStringConvertible {
    public var path: String
    public var reason: Reason

    public enum Reason: Hashable, Sendable {
      /// It is another build.
      case buildID(expected: BuildID, found: BuildID?)
      /// Its checksum is not the one of the image's `.gnu_debuglink`.
      case checksum(expected: UInt32, found: UInt32)
      case unreadable(DebugFileError)
      /// The file is the right one, but its debug information cannot be read: why.
      case debugInformation(String)
    }

    public var description: String {
      switch reason {
      case .buildID(let expected, let found):
        "\(path): has build id \(found?.description ?? "none"), the image has \(expected); not used"
      case .checksum(let expected, let found):
        "\(path): has checksum \(Hex.prefixed(UInt64(found))), the link says \(Hex.prefixed(UInt64(expected))); not used"
      case .unreadable(let error): error.description
      case .debugInformation(let text): "\(path): \(text)"
      }
    }
  }
}

/// The state of one search.
private struct Candidates {
  /// What makes a file the right one.
  enum Check {
    case buildID
    case checksum(UInt32)
    case nothing
  }

  let image: Image
  private let watch: ReadingWatch?
  var searched: [String] = []
  private var refusals: [FoundDebugFiles.Refusal] = []
  private var debugInformation: DebugFile?
  private var symbols: DebugFile?
  private var nameless: String?
  private var seen: Set<FilePath> = []
  /// The file whose link leads to the debug file.
  private(set) var linkOrigin: DebugFile?
  private var isUnverified = false

  init(image: Image, watch: ReadingWatch?) {
    self.image = image
    self.watch = watch
  }

  var isComplete: Bool { debugInformation != nil && symbols?.hasSymbolTable == true }

  var result: FoundDebugFiles {
    FoundDebugFiles(
      debugInformation: debugInformation, symbols: symbols, nameless: nameless, refusals: refusals,
      searched: searched, isUnverified: isUnverified)
  }

  func isNamedLikeImage(_ path: FilePath) -> Bool {
    let name = path.lastComponent
    return !image.name.isEmpty
      && (name.elementsEqual(image.name.utf8) || name.elementsEqual((image.name + ".debug").utf8))
  }

  mutating func refuse(_ path: FilePath, _ reason: FoundDebugFiles.Refusal.Reason) {
    refusals.append(.init(path: path.description, reason: reason))
  }

  /// Takes the file if it is the right one and has something that is still missing.
  ///
  /// - Parameter isListed: whether to name the path among the places that were looked at.
  mutating func consider(_ path: FilePath, check: Check = .buildID, isListed: Bool = true) {
    guard !isComplete, seen.insert(path).inserted else { return }
    if isListed { searched.append(path.description) }
    let file: DebugFile
    do throws(DebugFileError) {
      file = try DebugFile(path: path, watch: watch)
    } catch {
      if case .cannotOpen(_, let code) = error, code == ENOENT || code == ENOTDIR { return }
      refuse(path, .unreadable(error))
      return
    }
    switch check {
    case .buildID:
      guard let expected = image.buildID else { return }
      guard file.buildID == expected else { return refuse(path, .buildID(expected: expected, found: file.buildID)) }
    case .checksum(let expected):
      let found = file.checksum
      guard found == expected else { return refuse(path, .checksum(expected: expected, found: found)) }
    case .nothing: isUnverified = true
    }
    if let problem = file.debugInformationProblem { refuse(path, .debugInformation(problem)) }
    if let problem = file.symbolsProblem {
      refuse(path, .unreadable(.endedReader(path: path.description, detail: problem + " (its symbols)")))
    }
    if debugInformation == nil, file.hasDebugInformation {
      if file.dwarf != nil {
        debugInformation = file
      } else {
        refuse(path, .debugInformation("its debug information cannot be read (\(DwarfHandle.lastError()))"))
      }
    }
    if file.hasSymbolTable ? symbols?.hasSymbolTable != true : symbols == nil && file.hasDynamicSymbols {
      symbols = file
    }
    if nameless == nil, !file.hasDebugInformation, !file.hasSymbolTable, !file.hasDynamicSymbols {
      nameless = path.description
    }
    if linkOrigin == nil, file.debugLink != nil { linkOrigin = file }
  }
}
