internal import CrashModel

/// Reads in a process of its own; this one never opens a debug file.
final class IsolatedImageReader: ImageReader {
  private let process: ReaderProcess
  private var lastNumber: UInt32 = 0
  private var lastFailure: ReaderProcess.Failure?
  private lazy var given = askForGiven()

  private typealias Given = (
    files: [ReaderReply.GivenFile], unreadableFiles: [DebugFileError], unreadableDirectories: [DebugFileError]
  )

  init(limits: ReaderLimits, makeSearch: @escaping () -> DebugFileSearch) {
    process = ReaderProcess(limits: limits, makeSearch: makeSearch)
  }

  var whileWaiting: (() -> Void)? {
    get { process.whileWaiting }
    set { process.whileWaiting = newValue }
  }

  var givenFiles: [(path: String, buildID: BuildID?)] { given.files.map { ($0.path, $0.buildID) } }
  var unreadableFiles: [DebugFileError] { given.unreadableFiles }
  var unreadableDirectories: [DebugFileError] { given.unreadableDirectories }

  private func askForGiven() -> Given {
    guard case .success(.given(let files, let unreadableFiles, let unreadableDirectories)) = ask({ .given }) else {
      return ([], [], [])
    }
    return (files, unreadableFiles, unreadableDirectories)
  }

  func image(ofFile path: FilePath) throws(DebugFileError) -> Image {
    switch ask({ .image(path: path) }) {
    case .success(.image(let path, let buildID)):
      return Image(path: path, buildID: buildID, address: Address(rawValue: 0), size: 0)
    case .success(.failure(let error)): throw error
    case .success: throw .endedReader(path: path.description, detail: "reading it gave an answer to another question")
    case .failure(let failure): throw .endedReader(path: path.description, detail: failure.text)
    }
  }

  func answers(for image: Image, file: FilePath?) -> any ImageAnswers {
    lastNumber &+= 1
    return IsolatedImageAnswers(self, number: lastNumber, image: image, file: file)
  }

  func report(ofCore path: FilePath) throws(DebugFileError) -> [UInt8] {
    switch ask({ .core(path: path) }) {
    case .success(.report(let document)): return document
    case .success(.failure(let error)): throw error
    case .success: throw .endedReader(path: path.description, detail: "reading it gave an answer to another question")
    case .failure(let failure): throw .endedReader(path: path.description, detail: failure.text)
    }
  }

  // MARK: For the images

  var generation: Int { process.generation }

  /// Asks until there is an answer. Each time that there is none, one thing less is read.
  ///
  /// - Parameter request: what to ask now; nil to give up, as what it was about is gone.
  func ask(_ request: () -> ReaderRequest?) -> Result<ReaderReply, ReaderProcess.Failure> {
    while true {
      guard let request = request() else { return .failure(.unusable("it cannot be found again")) }
      do throws(ReaderProcess.Failure) {
        return .success(try process.ask(request))
      } catch {
        if case .unusable = error { return .failure(error) }
      }
    }
  }

  func tell(_ request: ReaderRequest) { process.tell(request) }
}

/// The files of one image, open in another process, for as long as that lives.
private final class IsolatedImageAnswers: ImageAnswers {
  private let reader: IsolatedImageReader
  private let number: UInt32
  private let image: Image
  private let file: FilePath?
  /// The process that has the files open; nil for none.
  private var generation: Int?
  private var known: ImageFindings?
  /// Why there will be no answer any more.
  private var failure: ReaderProcess.Failure?

  init(_ reader: IsolatedImageReader, number: UInt32, image: Image, file: FilePath?) {
    self.reader = reader
    self.number = number
    self.image = image
    self.file = file
  }

  deinit { close() }

  var findings: ImageFindings {
    if let known { return known }
    find()
    return known ?? ImageFindings(status: .notFound(places: []))
  }

  private func find() {
    let result = failure.map { .failure($0) } ?? reader.ask { request }
    switch result {
    case .success(.findings(let findings)):
      known = findings
      generation = reader.generation
    case .success: fail(.unusable("reading its files gave an answer to another question"))
    case .failure(let failure): fail(failure)
    }
  }

  private var request: ReaderRequest { .find(number: number, path: image.path, buildID: image.buildID, file: file) }

  private func fail(_ failure: ReaderProcess.Failure) {
    self.failure = failure
    generation = nil
    let path = file?.description ?? image.path
    let error = DebugFileError.endedReader(path: path, detail: failure.text)
    known = ImageFindings(
      status: .unreadable(path: path, reason: error.reason), refusals: [.init(path: path, reason: .unreadable(error))])
  }

  /// Asks about the files; they are opened again where the process that had them open is gone.
  private func ask(_ request: ReaderRequest) -> ReaderReply? {
    let result = reader.ask {
      if generation != reader.generation { find() }
      return generation == nil ? nil : request
    }
    switch result {
    case .success(let reply): return reply
    case .failure(let error):
      // Where it was found out while the files were opened again, that is known already.
      if failure == nil { fail(error) }
      return nil
    }
  }

  func functions(at addresses: [UInt64], nearestLines: Bool) -> RawAnswers {
    let start = ProcessorTime.ofThread()
    if case .functions(var answers)? = ask(
      .functions(number: number, addresses: addresses, nearestLines: nearestLines)),
      answers.functions.count == addresses.count
    {
      // To ask costs, too, here and about as much there; a table saves it.
      let asking = 2 * (ProcessorTime.ofThread() - start)
      answers.time = answers.time.addingReportingOverflow(asking).partialValue
      return answers
    }
    return RawAnswers(functions: Array(repeating: [], count: addresses.count), time: 0)
  }

  func table(key: [UInt8]) -> (any WritableAddressTable)? {
    guard case .table(let bytes?)? = ask(.table(number: number, key: key)) else { return nil }
    return ReceivedAddressTable(bytes: bytes)
  }

  func close() {
    guard generation != nil, generation == reader.generation else { return }
    generation = nil
    reader.tell(.close(number: number))
  }
}
