internal import CrashModel

/// Finds files with names and reads them: in this process, or in another one.
protocol ImageReader: AnyObject {
  /// As in `DebugFileSearch`.
  var givenFiles: [(path: String, buildID: BuildID?)] { get }
  var unreadableFiles: [DebugFileError] { get }
  var unreadableDirectories: [DebugFileError] { get }

  /// Called several times a second while another process reads.
  var whileWaiting: (() -> Void)? { get set }

  /// A file as an image that is loaded at 0.
  func image(ofFile path: FilePath) throws(DebugFileError) -> Image

  /// - Parameter file: to be used, too, where the search finds nothing or less.
  func answers(for image: Image, file: FilePath?) -> any ImageAnswers

  /// What the core of a process says of its end, as a `crash-report/1` document without names of functions.
  func report(ofCore path: FilePath) throws(DebugFileError) -> [UInt8]
}

extension ImageReader {
  /// Who reads by itself does not wait.
  var whileWaiting: (() -> Void)? {
    get { nil }
    set {}
  }
}

/// What the files of one image say.
protocol ImageAnswers: AnyObject {
  /// What was found, as it is known by now: reading a file may show that it cannot be used.
  var findings: ImageFindings { get }

  /// - Parameter addresses: sorted, without repetitions, as the files number them.
  /// - Returns: for each address the functions at it, with the linker's names.
  func functions(at addresses: [UInt64], nearestLines: Bool) -> RawAnswers

  /// The table of the files; nil where they have nothing for one, or too much.
  func table(key: [UInt8]) -> (any WritableAddressTable)?

  /// The files need not stay open: a table answers from now on. They are opened again where one is needed after all.
  func close()
}

/// Functions at addresses, before names are made readable.
struct RawAnswers: Equatable {
  /// One for each address.
  var functions: [[SymbolicatedFunction]]
  /// Processor time that it took, in microseconds.
  var time: Int
  /// What a table costs beyond the estimate of the findings, in microseconds: split units, whose number is known once the
  /// list of units was read. Reading that for the findings would be most of the work where a table is there already.
  var splitCost = 0
  /// What they lack because a file that the debug file refers to was not found, in words.
  var companionProblems: [String] = []
}

/// What was found for one image.
struct ImageFindings: Equatable {
  var status: ImageSummary.Status
  /// The file that the names come from.
  var file: String?
  var isUnverified = false
  var refusals: [FoundDebugFiles.Refusal] = []
  /// As in `DebugFile`; nil without a file.
  var firstVirtualAddress: UInt64?
  /// What a table would be made from; nil for nothing.
  var tableIdentity: AddressTableIdentity?
  /// What building it will take, in microseconds, by estimate.
  var tableCost = 0
  /// The files that answer, where no other one could say more: with the image's build id, debug information and full symbol
  /// table. Empty otherwise. As long as they are the same, to search again would find the same.
  var conclusiveFiles: [FileVersion] = []
}

/// Reads in this process.
final class LocalImageReader: ImageReader {
  private let search: DebugFileSearch

  init(_ search: DebugFileSearch) { self.search = search }

  var givenFiles: [(path: String, buildID: BuildID?)] { search.givenFiles }
  var unreadableFiles: [DebugFileError] { search.unreadableFiles }
  var unreadableDirectories: [DebugFileError] { search.unreadableDirectories }

  func image(ofFile path: FilePath) throws(DebugFileError) -> Image {
    let file = try DebugFile(path: path, watch: search.watch)
    // The search takes an image's path for one of another process, and so only if it is absolute.
    return Image(
      path: RealPath.of(file.location)?.description ?? path.description, buildID: file.buildID,
      address: Address(rawValue: 0), size: 0)
  }

  func answers(for image: Image, file: FilePath?) -> any ImageAnswers { localAnswers(for: image, file: file) }

  func report(ofCore path: FilePath) throws(DebugFileError) -> [UInt8] {
    try CoreFile(path: path, watch: search.watch).report(with: search).json()
  }

  func localAnswers(for image: Image, file path: FilePath?) -> LocalImageAnswers {
    var files = search.files(for: image)
    if let path, files.debugInformation == nil || files.symbols == nil,
      let file = try? DebugFile(path: path, watch: search.watch)
    {
      search.adopt(file)
      if files.debugInformation == nil, file.hasDebugInformation { files.debugInformation = file }
      if files.symbols == nil, file.symbolCompleteness > .none { files.symbols = file }
    }
    return LocalImageAnswers(files)
  }
}

/// The files of one image, open in this process.
final class LocalImageAnswers: ImageAnswers {
  let files: FoundDebugFiles

  init(_ files: FoundDebugFiles) { self.files = files }

  private(set) lazy var findings: ImageFindings = {
    let file = files.debugInformation ?? files.symbols
    return ImageFindings(
      status: files.status, file: file?.path, isUnverified: files.isUnverified, refusals: files.refusals,
      firstVirtualAddress: (files.symbols ?? files.debugInformation)?.firstVirtualAddress,
      tableIdentity: file == nil ? nil : AddressTableIdentity(files), tableCost: tableCost,
      conclusiveFiles: conclusiveFiles)
  }()

  private var conclusiveFiles: [FileVersion] {
    guard let debugInformation = files.debugInformation, let symbols = files.symbols, symbols.hasSymbolTable,
      !files.isUnverified, files.refusals.isEmpty
    else { return [] }
    let versions = [debugInformation, symbols].map { FileVersion($0) }
    return versions.contains(nil) ? [] : versions.compactMap { $0 }
  }

  /// Two Swift programs with 8 and 42 MB of debug information took 0.06 to 0.08 s for each MB. Symbols have no chains and
  /// no lines.
  private var tableCost: Int {
    let debugInformation = files.debugInformation?.debugInformationSize ?? 0
    let symbols = files.symbols?.sections.bytes(".symtab", ".dynsym").count ?? 0
    return debugInformation / 14 + symbols / 80
  }

  /// The size of a split unit is seen when it is opened; C++ units have about 128 KiB.
  private var splitCost: Int { ((files.debugInformation?.units?.skeletonCount ?? 0) << 17) / 14 }

  func functions(at addresses: [UInt64], nearestLines: Bool) -> RawAnswers {
    let start = ProcessorTime.ofThread()
    let functions = files.functions(at: addresses, nearestLines: nearestLines)
    return RawAnswers(
      functions: functions, time: ProcessorTime.ofThread() - start,
      splitCost: splitCost, companionProblems: files.debugInformation?.companionProblems ?? [])
  }

  func table(key: [UInt8]) -> (any WritableAddressTable)? { AddressTableBuilder.table(for: files, key: key) }

  /// Kept: it costs less to hold them than to find them again.
  func close() {}
}
