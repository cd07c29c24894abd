internal import CrashModel
private import Glibc

/// The state of one search.
struct DebugFileCandidates {
  /// What makes a file the right one.
  enum Check {
    case buildID
    case checksum(UInt32)
    case nothing
  }

  let image: Image
  private let companions: CompanionSearch
  var searched: [String] = []
  private var refusals: [FoundDebugFiles.Refusal] = []
  private var debugInformation: DebugFile?
  private var symbols: DebugFile?
  private var nameless: String?
  private var seen: Set<FilePath> = []
  /// The file whose link leads to the debug file.
  private(set) var linkOrigin: DebugFile?
  private var isUnverified = false

  init(image: Image, companions: CompanionSearch) {
    self.image = image
    self.companions = companions
  }

  var isComplete: Bool { debugInformation != nil && hasFullSymbols }

  var hasDebugInformation: Bool { debugInformation != nil }

  private var hasFullSymbols: Bool { symbols?.hasSymbolTable == true }

  /// Whether a file with the image's own code was found.
  var hasSymbols: Bool { symbols != nil }

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
      file = try DebugFile(path: path)
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
    file.companions = companions
    if let problem = file.debugInformationProblem { refuse(path, .debugInformation(problem)) }
    if debugInformation == nil, file.hasDebugInformation {
      if file.dwarf != nil {
        debugInformation = file
      } else {
        refuse(path, .debugInformation(file.dwarfProblem ?? "its debug information cannot be read"))
      }
    }
    if !hasFullSymbols, file.symbolCompleteness > symbols?.symbolCompleteness ?? .none { symbols = file }
    if let problem = file.miniDebugInformationProblem { refuse(path, .symbols(problem)) }
    if nameless == nil, !file.hasDebugInformation, file.symbolCompleteness == .none { nameless = path.description }
    if linkOrigin == nil, file.debugLink != nil { linkOrigin = file }
  }
}
