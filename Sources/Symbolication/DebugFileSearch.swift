public import CrashModel
private import Glibc

/// Finds the files with an image's names on this machine, and on debuginfod servers if asked to.
///
/// The places, in this order, until one has debug information and one has a full symbol table:
///
/// 1. the files that were given;
/// 2. in each directory that was given: `.build-id/ab/cdef….debug`, `ab/cdef….debug`, the image's own path below it, its
///    name and its name with `.debug`, and at last any ELF file below it with the build id;
/// 3. the image's own path;
/// 4. the file that the image's `.gnu_debuglink` names: beside it, in `.debug/`, and in `/usr/lib/debug/<its directory>`;
/// 5. `/usr/lib/debug/.build-id/ab/cdef….debug`;
/// 6. the servers that were given.
///
/// With a `sysroot`, 3 to 5 lie below it, and symbolic links in it are followed as in a process whose root it is.
///
/// What a debug file refers to is looked for in the same places: the file that it shares entries with (`.gnu_debugaltlink`)
/// by its build id and at the link's path, split units (`.dwo`, `.dwp`) by their ids, where the compiler left them, beside
/// the file, and in the files and directories that were given.
///
/// A file counts only if its build id is the image's. One with another build id is never used, and the result names it.
/// No server is asked unless `servers` is given: libdw's own search would ask one wherever `DEBUGINFOD_URLS` is set, so it is
/// not used. Not thread-safe.
///
/// ```swift
/// let search = DebugFileSearch(directories: ["/srv/debug"], servers: .fromEnvironment())
/// let found = search.files(for: image)
/// for refusal in found.refusals { print(refusal) }
/// ```
public final class DebugFileSearch {
  /// Of a process that reads for another one; to be set before anything is asked.
  var watch: ReadingWatch? {
    didSet { directories.watch = watch }
  }
  private let givenPaths: [FilePath]
  private lazy var files: [GivenFile] = givenPaths.map { Self.examine($0, watch: watch) }
  private let directories: DebugDirectories
  private let systemDirectory: FilePath?
  private let usesImagePaths: Bool
  private let root: FileSystemRoot
  private let servers: DebuginfodClient?
  private lazy var companions = CompanionSearch(
    givenFiles: files.compactMap { file in file.buildID.map { (file.path, $0) } },
    givenSplitFiles: GivenSplitFiles(files.filter { $0.role == .split }.map(\.path)),
    directories: directories, systemDirectory: systemDirectory, root: root, servers: servers)

  private struct GivenFile {
    var path: FilePath
    var buildID: BuildID?
    var error: DebugFileError?
    var role = Role.debugFile

    enum Role {
      /// Of an image.
      case debugFile
      /// Of debug files: what they share, or their split units.
      case supplementary, split
    }
  }

  /// - Parameters:
  ///   - files: debug files, executables or libraries; each is used for the image with its build id. Files with split units
  ///     (`.dwo`, `.dwp`), and what `dwz -m` made of several files, as well.
  ///   - directories: looked through as the type's documentation says.
  ///   - systemDirectory: `/usr/lib/debug`, or nil to leave it out.
  ///   - usesImagePaths: whether to look where the process had the image: right where it ran on this machine, and
  ///     harmless elsewhere, because of the build id.
  ///   - sysroot: a directory with the file system that the process had, as that of a container; nil for `/`.
  ///   - servers: asked last, for what no file here has; nil to ask none.
  public convenience init(
    files: [String] = [], directories: [String] = [], systemDirectory: String? = "/usr/lib/debug",
    usesImagePaths: Bool = true, sysroot: String? = nil, servers: DebuginfodClient? = nil
  ) {
    self.init(
      files: files.map { FilePath($0) }, directories: directories.map { FilePath($0) },
      systemDirectory: systemDirectory.map { FilePath($0) }, usesImagePaths: usesImagePaths,
      sysroot: sysroot.map { FilePath($0) }, servers: servers)
  }

  package init(
    files: [FilePath], directories: [FilePath], systemDirectory: FilePath? = FilePath("/usr/lib/debug"),
    usesImagePaths: Bool = true, sysroot: FilePath? = nil, servers: DebuginfodClient? = nil
  ) {
    self.directories = DebugDirectories(directories)
    self.systemDirectory = systemDirectory
    self.usesImagePaths = usesImagePaths
    self.servers = servers
    root = FileSystemRoot(directory: sysroot)
    givenPaths = files
  }

  /// Whether files were given one by one. To say anything of them they have to be read.
  var hasGivenFiles: Bool { !givenPaths.isEmpty }

  /// Where it looks: two that look in the same places have the same.
  var places: MessageWriter {
    var writer = MessageWriter()
    writer.list(givenPaths) { $0.blob($1.bytes) }
    writer.list(directories.paths) { $0.blob($1.bytes) }
    writer.optional(systemDirectory) { $0.blob($1.bytes) }
    writer.flag(usesImagePaths)
    writer.optional(root.directory) { $0.blob($1.bytes) }
    writer.optional(servers?.urls) { $0.text($1) }
    return writer
  }

  private static func examine(_ path: FilePath, watch: ReadingWatch?) -> GivenFile {
    do throws(DebugFileError) {
      let handle = try ELFHandle(path: path, watch: watch)
      var file = GivenFile(path: path, buildID: handle.buildID)
      if let sections = ELFSections(handle.elf) {
        if SplitFile.isSplit(sections) {
          file.role = .split
        } else if SupplementaryFile.isSupplementary(sections) {
          file.role = .supplementary
        }
      }
      return file
    } catch {
      return GivenFile(path: path, buildID: nil, error: error)
    }
  }

  /// Given files that cannot be read, which is worth telling whoever gave them.
  public var unreadableFiles: [DebugFileError] { files.compactMap(\.error) }

  /// Given directories (the sysroot too) that do not exist or cannot be read, which is worth telling as well.
  public var unreadableDirectories: [DebugFileError] {
    (directories.paths + [root.directory].compactMap { $0 }).compactMap { directory in
      DirectoryListing(of: directory, limit: 1).failure.map { .cannotOpen(path: directory.description, code: $0) }
    }
  }

  /// Given files that can be read, with their build ids: what is none of any image's was given in vain. Those that only
  /// other debug files refer to are left out.
  public var givenFiles: [(path: String, buildID: BuildID?)] {
    files.filter { $0.error == nil && $0.role == .debugFile }.map { ($0.path.description, $0.buildID) }
  }

  /// What was found for one image.
  ///
  /// Opens files and may walk a given directory, once for all images. Never fails: what cannot be used is in the result.
  public func files(for image: Image) -> FoundDebugFiles {
    var found = DebugFileCandidates(image: image, companions: companions(of: image), watch: watch)
    searchGivenFiles(&found)
    for directory in directories.paths where !found.isComplete { search(directory, &found) }
    // An image without a build id could be any build; only the file that the process itself mapped comes into question.
    if !found.isComplete, usesImagePaths { searchImagePath(&found) }
    if !found.isComplete { searchDebugLink(&found) }
    if !found.isComplete, let systemDirectory, let id = image.buildID {
      for path in BuildIDPath.all(of: id, below: systemDirectory.appending(".build-id")) {
        considerInRoot(path, &found)
      }
    }
    // Not the kernel's own image, which has a build id and no file.
    if !found.isComplete, let servers, let id = image.buildID, image.path.hasPrefix("/") {
      ask(servers, id, &found)
    }
    return found.result
  }

  /// The file that an image's code was loaded from, or one with the same code: what a stack is walked by. Debug files that
  /// were split from it have its sections without their contents.
  func fileWithCode(for image: Image) -> DebugFile? {
    guard let id = image.buildID else { return nil }
    let found = self.files(for: image)
    for file in [found.symbols, found.debugInformation] {
      if let file, file.buildID == id, file.hasUnwindInformation { return file }
    }
    var paths = files.filter { $0.buildID == id && $0.error == nil }.map(\.path)
    if usesImagePaths, image.path.hasPrefix("/") {
      var path = image.path
      if path.hasSuffix(Self.deletedSuffix) { path.removeLast(Self.deletedSuffix.count) }
      paths += [root.resolve(FilePath(path))].compactMap { $0 }
    }
    for path in paths { if let file = fileWithCode(path, id) { return file } }
    for directory in directories.paths {
      for path in directories.index(of: directory).byBuildID[id] ?? [] {
        if let file = fileWithCode(path, id) { return file }
      }
    }
    if image.path.hasPrefix("/"), case .found(let path)? = servers?.executable(id) { return fileWithCode(path, id) }
    return nil
  }

  private func fileWithCode(_ path: FilePath, _ id: BuildID) -> DebugFile? {
    guard let file = try? DebugFile(path: path, watch: watch), file.buildID == id, file.hasUnwindInformation else {
      return nil
    }
    return file
  }

  /// Gives a file that was not found here, but opened by name, what it needs to find those that it refers to.
  func adopt(_ file: DebugFile) { file.companions = companions }

  private func companions(of image: Image) -> CompanionSearch {
    var companions = companions
    if usesImagePaths, image.path.hasPrefix("/") { companions.imagePath = FilePath(image.path) }
    return companions
  }

  /// Considers a file by the path that the process would know it by.
  private func considerInRoot(
    _ path: FilePath, check: DebugFileCandidates.Check = .buildID, _ found: inout DebugFileCandidates
  ) {
    if let path = root.resolve(path) {
      found.consider(path, check: check)
    } else {
      found.refuse(path, .unreadable(.cannotOpen(path: path.description, code: ELOOP)))
    }
  }

  private func ask(_ servers: DebuginfodClient, _ id: BuildID, _ found: inout DebugFileCandidates) {
    func take(_ outcome: DebuginfodClient.Outcome) {
      switch outcome {
      case .found(let path): found.consider(path)
      case .failed(let reason): found.searched.append(reason)
      }
    }
    take(servers.debugInformation(id))
    // A program that was never stripped has its symbols itself, and is all there is where it was built without `-g`.
    if !found.hasSymbols { take(servers.executable(id)) }
  }

  private func searchGivenFiles(_ found: inout DebugFileCandidates) {
    guard let id = found.image.buildID else {
      // Logs of other tools name images without build and folder: whoever gives a file of the name means it for this one.
      guard !found.image.path.contains("/") else { return }
      for file in files where file.error == nil && file.role == .debugFile && found.isNamedLikeImage(file.path) {
        found.consider(file.path, check: .nothing)
      }
      return
    }
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

  private func search(_ directory: FilePath, _ found: inout DebugFileCandidates) {
    guard let id = found.image.buildID else { return }
    for path in BuildIDPath.all(of: id, below: directory.appending(".build-id")) {
      found.consider(path, isListed: false)
    }
    for path in BuildIDPath.all(of: id, below: directory) { found.consider(path, isListed: false) }
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
    let index = directories.index(of: directory)
    if let paths = index.byBuildID[id] {
      for path in paths { found.consider(path, isListed: false) }
    } else {
      // Only to say which other builds are there; of a name that is all over a tree, a few do.
      for path in ((index.byName[Array(name.utf8)] ?? []) + (index.byName[Array((name + ".debug").utf8)] ?? []))
        .prefix(16)
      {
        found.consider(path, isListed: false)
      }
    }
    if index.isCut {
      found.searched.append(
        "\(directory) has more than \(DebugDirectoryIndex.maximumEntries) entries; the rest was left out")
    }
    found.searched += index.unreadable
  }

  /// What the kernel appends to the path of a file that was replaced while the process ran.
  private static let deletedSuffix = " (deleted)"

  private func searchImagePath(_ found: inout DebugFileCandidates) {
    // The kernel's own image and anonymous ones have a name, but no file.
    guard found.image.path.hasPrefix("/") else { return }
    var path = found.image.path
    if path.hasSuffix(Self.deletedSuffix) { path.removeLast(Self.deletedSuffix.count) }
    considerInRoot(FilePath(path), check: found.image.buildID == nil ? .nothing : .buildID, &found)
  }

  private func searchDebugLink(_ found: inout DebugFileCandidates) {
    guard let origin = found.linkOrigin, let link = origin.debugLink else { return }
    // The name comes from a file that anyone may have made.
    guard !link.name.contains("/"), !link.name.isEmpty else { return }
    let check: DebugFileCandidates.Check = found.image.buildID == nil ? .checksum(link.checksum) : .buildID
    for directory in Self.directories(of: origin.location) {
      // By the path that the process knew the directory by, if the file is one of its file system.
      let inside = root.path(of: directory)
      for name in [link.name, ".debug/" + link.name] {
        if let inside {
          considerInRoot(inside.appending(name), check: check, &found)
        } else {
          found.consider(directory.appending(name), check: check)
        }
      }
      if let systemDirectory, let inside {
        let below = FilePath(bytes: systemDirectory.bytes + inside.bytes)
        considerInRoot(below.appending(link.name), check: check, &found)
      }
    }
  }

  /// The directory of a path, and the one that it stands for after all symbolic links.
  private static func directories(of path: FilePath) -> [FilePath] {
    var result = [path.directory]
    if let real = RealPath.of(path), real.directory != result[0] { result.append(real.directory) }
    return result
  }
}
