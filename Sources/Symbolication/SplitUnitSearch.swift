internal import CrashModel
private import Glibc

/// Finds the split units of one file.
///
/// First in the files that were given by name, and in packages: `FILE.dwp` beside the file and in the directories that were
/// given. Then in the `.dwo` file that the unit names: in the directory of the compilation, beside the file, in the
/// directories that were given. At last in any file of these names below those directories. A unit counts only if its id is
/// the skeleton's. Not thread-safe.
final class SplitUnitSearch {
  /// What the half in the program itself says of the other one.
  struct Skeleton {
    var id: UInt64
    /// As in the file; not more than bytes.
    var name: FilePath
    var compilationDirectory: FilePath?
  }

  /// Of files with one name in a directory that was given, this many are opened.
  private static let maximumNamesakes = 16

  private let file: FilePath
  private let search: CompanionSearch
  private lazy var packages = open(fixedPackages)
  private lazy var packagesBelow = open(indexedPackages)
  private var missing: Set<UInt64> = []
  /// The first one that was not found, and where it was looked for.
  private var firstMissing: (name: FilePath, searched: [String])?
  /// Packages that are there and cannot be read.
  private var problems: [String] = []

  init(of file: FilePath, in search: CompanionSearch) {
    self.file = file
    self.search = search
  }

  /// Why functions of units that were asked for have no debug information, in words; nil where nothing was missed.
  var problem: String? {
    guard let (name, searched) = firstMissing else { return nil }
    let units = missing.count == 1 ? "1 unit" : "\(missing.count) units"
    return
      (problems
      + [
        "the functions of \(units) lie in split debug files that were not found (\(name)); their frames have lines and "
          + "no inlined functions; looked in \(searched.joined(separator: ", "))"
      ]).joined(separator: "; ")
  }

  /// - Returns: nil where it is not found, which `problem` then tells.
  func unit(of skeleton: Skeleton) -> SplitUnit? {
    if missing.contains(skeleton.id) { return nil }
    // swiftc and `clang -gmodules` use the same attributes for compiled modules of their cache, which hold no code.
    if skeleton.name.hasSuffix(".pcm") { return nil }
    if let unit = search.givenSplitFiles.unit(skeleton.id) { return unit }
    for package in packages {
      if let unit = package.unit(skeleton.id) { return unit }
    }
    var searched: [String] = []
    var seen: Set<FilePath> = []
    func consider(_ path: FilePath) -> SplitUnit? {
      guard seen.insert(path).inserted else { return nil }
      do throws(DebugFileError) {
        if let unit = try SplitFile(path: path).unit(skeleton.id) { return unit }
        searched.append("\(path) (is of another compilation)")
      } catch {
        if case .cannotOpen(_, ENOENT) = error {
          searched.append(path.description)
        } else {
          searched.append("\(path) (\(error.reason))")
        }
      }
      return nil
    }
    for path in places(of: skeleton) {
      if let unit = consider(path) { return unit }
    }
    for package in packagesBelow {
      if let unit = package.unit(skeleton.id) { return unit }
    }
    for path in namesakes(of: skeleton) {
      if let unit = consider(path) { return unit }
    }
    searched += (packages + packagesBelow).map { "\($0.path) (has no such unit)" }
    missing.insert(skeleton.id)
    if firstMissing == nil { firstMissing = (skeleton.name, searched) }
    return nil
  }

  // MARK: Packages

  /// `app.dwp`; of `app.debug`, which was made from `app`, that one as well.
  private lazy var packageNames: [[UInt8]] = {
    var names: [[UInt8]] = []
    for path in [file, search.imagePath].compactMap({ $0 }) {
      let name = Array(path.lastComponent)
      for name in path.hasSuffix(".debug") ? [name, Array(name.dropLast(6))] : [name] {
        if !name.isEmpty, !names.contains(name) { names.append(name) }
      }
    }
    return names.map { $0 + Array(".dwp".utf8) }
  }()

  private var fixedPackages: [FilePath] {
    (search.neighbours(of: file) + search.directories.paths).flatMap { directory in
      packageNames.map { directory.appending($0) }
    }
  }

  private var indexedPackages: [FilePath] {
    search.directories.paths.flatMap { directory in
      let index = search.directories.index(of: directory)
      return packageNames.flatMap { (index.byName[$0] ?? []).prefix(Self.maximumNamesakes) }
    }.filter { !fixedPackages.contains($0) }
  }

  private func open(_ paths: [FilePath]) -> [SplitFile] {
    var found: [SplitFile] = []
    var seen: Set<FilePath> = []
    for path in paths where seen.insert(path).inserted {
      do throws(DebugFileError) {
        found.append(try SplitFile(path: path))
      } catch {
        if case .cannotOpen(_, ENOENT) = error { continue }
        problems.append(error.description)
      }
    }
    return found
  }

  // MARK: Single files

  private func places(of skeleton: Skeleton) -> [FilePath] {
    var places: [FilePath] = []
    let name = skeleton.name
    let base = Array(name.lastComponent)
    let isAbsolute = name.bytes.first == UInt8(ascii: "/")
    let whole = wholeName(of: skeleton)
    if whole.bytes.first == UInt8(ascii: "/"), let path = search.root.resolve(whole) { places.append(path) }
    for directory in search.neighbours(of: file) {
      if !isAbsolute { places.append(directory.appending(name.bytes)) }
      places.append(directory.appending(base))
    }
    for directory in search.directories.paths {
      places.append(directory.appending(whole.bytes.drop { $0 == UInt8(ascii: "/") }))
      if !isAbsolute { places.append(directory.appending(name.bytes)) }
      places.append(directory.appending(base))
    }
    return places
  }

  private func wholeName(of skeleton: Skeleton) -> FilePath {
    if skeleton.name.bytes.first == UInt8(ascii: "/") { return skeleton.name }
    return skeleton.compilationDirectory?.appending(skeleton.name.bytes) ?? skeleton.name
  }

  /// Files of the same name anywhere below the directories that were given, the likeliest first: a build has many of one
  /// name in different directories, and a tree that was moved keeps the ends of their paths.
  private func namesakes(of skeleton: Skeleton) -> [FilePath] {
    let base = Array(skeleton.name.lastComponent)
    let wanted = wholeName(of: skeleton).bytes.reversed()
    func likeness(_ path: FilePath) -> Int { zip(path.bytes.reversed(), wanted).prefix { $0 == $1 }.count }
    var found: [(path: FilePath, likeness: Int)] = []
    for directory in search.directories.paths {
      found += (search.directories.index(of: directory).byName[base] ?? []).map { ($0, likeness($0)) }
    }
    found.sort { ($1.likeness, $0.path) < ($0.likeness, $1.path) }
    return found.prefix(Self.maximumNamesakes).map(\.path)
  }
}
