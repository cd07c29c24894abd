internal import CrashModel

/// Asks another reader only for what no earlier process found out: where a table answers for an image and the search for its
/// files ended as well as one can, its end is remembered in the cache of tables, and no file is opened.
final class RememberingImageReader: ImageReader {
  private let reader: any ImageReader
  /// Like the reader's own; it is asked for nothing for which it would open a file.
  private let search: DebugFileSearch
  private let cache: AddressTableCache
  private lazy var places = search.places

  init(_ reader: any ImageReader, search: DebugFileSearch, cache: AddressTableCache) {
    self.reader = reader
    self.search = search
    self.cache = cache
  }

  var givenFiles: [(path: String, buildID: BuildID?)] { search.hasGivenFiles ? reader.givenFiles : [] }
  var unreadableFiles: [DebugFileError] { search.hasGivenFiles ? reader.unreadableFiles : [] }
  var unreadableDirectories: [DebugFileError] { search.unreadableDirectories }

  var whileWaiting: (() -> Void)? {
    get { reader.whileWaiting }
    set { reader.whileWaiting = newValue }
  }

  func image(ofFile path: FilePath) throws(DebugFileError) -> Image { try reader.image(ofFile: path) }

  func report(ofCore path: FilePath) throws(DebugFileError) -> [UInt8] { try reader.report(ofCore: path) }

  func answers(for image: Image, file: FilePath?) -> any ImageAnswers {
    // Without a build id nothing proves that a file is the right one, and what is given by name is to be looked at.
    guard let buildID = image.buildID, file == nil else { return reader.answers(for: image, file: file) }
    let key = RememberedFindings.key(path: image.path, buildID: buildID, places: places)
    return RememberedImageAnswers(cache: cache, key: key) { [reader] in reader.answers(for: image, file: nil) }
  }
}

private final class RememberedImageAnswers: ImageAnswers {
  private let cache: AddressTableCache
  private let key: [UInt8]
  private let makeAnswers: () -> any ImageAnswers
  private var remembered: ImageFindings?
  /// Nil until a file has to be opened.
  private var answers: (any ImageAnswers)?

  init(cache: AddressTableCache, key: [UInt8], makeAnswers: @escaping () -> any ImageAnswers) {
    self.cache = cache
    self.key = key
    self.makeAnswers = makeAnswers
    remembered = cache.findings(key: key)
  }

  private var opened: any ImageAnswers {
    if let answers { return answers }
    let made = makeAnswers()
    answers = made
    return made
  }

  /// What the files themselves show, once they are open, is more than what was remembered.
  var findings: ImageFindings { answers == nil ? remembered ?? opened.findings : opened.findings }

  func functions(at addresses: [UInt64], nearestLines: Bool) -> RawAnswers {
    opened.functions(at: addresses, nearestLines: nearestLines)
  }

  func table(key: [UInt8]) -> (any WritableAddressTable)? { opened.table(key: key) }

  /// There is a table: the moment to remember what led to it.
  func close() {
    guard let answers else { return }
    let findings = answers.findings
    if !findings.conclusiveFiles.isEmpty, findings != remembered {
      cache.store(findings, key: key)
      remembered = findings
    }
    answers.close()
  }
}
