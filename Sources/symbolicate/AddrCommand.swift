internal import CrashModel
private import Glibc
internal import Symbolication

/// `symbolicate addr [-e FILE] [ADDRESS…]`: names addresses as `addr2line` does, from arguments or as a filter.
///
/// Lines are answered in the blocks in which they come: what lies ready is read at once, looked up by file and address, and
/// written in the order of the lines. When nothing more lies ready, what was answered is written out, so that a program that
/// asks and waits for its answer gets it.
struct AddrCommand {
  private struct Query {
    var address: UInt64
    /// -1 for none.
    var image: Int32
    var problem: AddrLine.Problem
  }

  private let options: Options
  private let diagnostics: Diagnostics
  private let output: Output
  private let progress: Progress?
  private var images: AskedImages
  private var writer: AddrWriter
  private let buffer = ByteBuffer(capacity: 512 << 10)
  /// Answers of a block in the order in which they were looked up, and for each query where its own lies.
  private let unordered = ByteBuffer(capacity: 512 << 10)
  private var places: [Range<Int>] = []
  private var order = QueryOrder()
  /// The queries of the block in this order, so that they lie behind each other when they are looked up.
  private var sorted: [Query] = []
  private var chain = AddressChain()
  /// Of the block's files, by their index; nil for one without a table.
  private var readers: [AddressTableReader?] = []
  private let nearestLines: Bool
  private let readAhead = ReadAhead()
  /// Of one block.
  private var queries: [Query] = []
  /// The lines that could not be understood, by the index of their query.
  private var inputs: [Int: String] = [:]
  private var lines = 0
  private var badLines = 0
  /// Addresses that were looked for in a file.
  private var lookups = 0

  /// Queries of a block at most.
  private static let blockSize = 32 << 10
  private static let toldBadLines = 10
  private static let bufferSize = 256 << 10

  init(options: Options, diagnostics: Diagnostics, output: Output) {
    let progress = Progress(verbosity: options.verbosity, counting: .address)
    (diagnostics.progress, output.progress, self.progress) = (progress, progress, progress)
    self.options = options
    self.diagnostics = diagnostics
    self.output = output
    nearestLines = options.format != .text || options.addr.nearestLines
    images = AskedImages(options: options, diagnostics: diagnostics, progress: progress)
    writer = AddrWriter(options: options)
  }

  static func check(_ options: Options) throws(UsageError) {
    if options.executables.count > 1 {
      throw UsageError(message: "--exe names one file; for several, write IMAGE ADDRESS on each line of standard input")
    }
  }

  mutating func run() throws(Output.Failure) -> ExitStatus {
    defer { progress?.erase() }
    // Before the first address is there: a wrong name is told at once.
    if let executable = options.executables.first { executable.bytes.withUnsafeBytes { _ = images.add($0) } }
    var isReadToItsEnd = true
    if options.operands.isEmpty || options.operands == [FilePath("-")] {
      isReadToItsEnd = try readInput()
    } else {
      for operand in options.operands {
        try operand.bytes.withUnsafeBufferPointer { bytes throws(Output.Failure) in
          try add(AddrInput.Line(bytes: UnsafeRawBufferPointer(bytes)))
        }
      }
      try answer()
    }
    images.tellNameless()
    if badLines > Self.toldBadLines {
      diagnostics.error(place, "\(badLines - Self.toldBadLines) more lines without an address")
    }
    writer.end(buffer)
    try flush()
    if lookups == 0, lines > 0 || !isReadToItsEnd { return .nothing }
    return images.hasProblem || badLines > 0 || !isReadToItsEnd ? .incomplete : .complete
  }

  /// - Returns: false where the input could not be read to its end.
  private mutating func readInput() throws(Output.Failure) -> Bool {
    let input = AddrInput(descriptor: STDIN_FILENO)
    while true {
      let hasMore: Bool
      do throws(AddrInput.Failure) { hasMore = try input.read() } catch {
        try answer()
        diagnostics.error("standard input", "cannot be read: \(errnoText(error.code))")
        return false
      }
      while let line = input.nextLine() { try add(line) }
      let isReady = input.isReady
      if !isReady || !hasMore { try answer() }
      if !hasMore { return true }
      if !isReady {
        try flush()
        try output.flush()
        // Whoever is to type the next address wants the line for himself.
        progress?.erase()
      }
    }
  }

  // MARK: Questions

  @inline(__always)
  private mutating func add(_ bytes: AddrInput.Line) throws(Output.Failure) {
    let namesImage = options.executables.isEmpty
    var line = bytes.isTooLong ? AddrLine(problem: .tooLong) : AddrLine(bytes.bytes, namesImage: namesImage)
    lines &+= 1
    var image: Int32 = namesImage ? -1 : 0
    if namesImage, !line.image.isEmpty {
      if line.image.count >= Int(PATH_MAX) {
        line.problem = .tooLong
      } else if let known = images.index(of: line.image) {
        image = known
      } else {
        if images.isFull {
          try answer()
          images.removeAll()
        }
        image = images.add(line.image)
      }
    }
    // The lines lie in the input's buffer, which is not touched by answers.
    if queries.count >= Self.blockSize { try answer() }
    if line.problem != .none { note(line.problem, bytes.bytes) }
    queries.append(Query(address: line.address, image: image, problem: line.problem))
  }

  @inline(never)
  private mutating func note(_ problem: AddrLine.Problem, _ bytes: UnsafeRawBufferPointer) {
    badLines += 1
    let input = Self.shortened(FilePath(bytes: bytes.prefix(1_024)))
    inputs[queries.count] = input
    guard badLines <= Self.toldBadLines else { return }
    diagnostics.error("\(place) \(lines)", "'\(input)': \(Self.reason(for: problem))")
  }

  private var place: String { options.operands.isEmpty ? "standard input, line" : "argument" }

  private static func reason(for problem: AddrLine.Problem) -> String {
    switch problem {
    case .none: ""
    case .noAddress: "no hexadecimal address of at most 64 bits"
    case .noImage: "no file; name it with --exe FILE or write IMAGE ADDRESS"
    case .dataAddress: "only addresses of code are answered"
    case .tooLong: "too long"
    }
  }

  /// A name for a message: an input line may be of any length.
  static func shortened(_ path: FilePath) -> String {
    path.bytes.count <= 256 ? path.description : FilePath(bytes: path.bytes.prefix(256)).description + "…"
  }

  // MARK: Answers

  /// Answers the block and forgets it.
  private mutating func answer() throws(Output.Failure) {
    guard !queries.isEmpty else { return }
    let isSorted = queries.count >= QueryOrder.minimum
    order.begin()
    if isSorted { sort() }
    sorted.removeAll(keepingCapacity: true)
    for position in queries.indices { sorted.append(queries[order[position]]) }
    let (start, before) = (buffer.count, writer)
    repeat {
      // What a damaged table said in this block is not believed.
      buffer.removeAll(behind: start)
      writer = before
      prepare()
      readers = images.all.map { $0.lookup?.reader }
      if isSorted { lookUpSorted() } else { lookUpInOrder() }
    } while repairTables()
    for query in queries where query.problem == .none && query.image >= 0 {
      if images.all[Int(query.image)].lookup != nil { lookups &+= 1 }
    }
    if isSorted {
      for place in places {
        writer.separate(buffer)
        buffer.append(UnsafeRawBufferPointer(rebasing: unordered.bytes[place]))
        if buffer.count >= Self.bufferSize { try flush() }
      }
    }
    if buffer.count >= Self.bufferSize { try flush() }
    progress?.step(count: queries.count)
    queries.removeAll(keepingCapacity: true)
    if !inputs.isEmpty { inputs = [:] }
    for image in images.all { image.lookup?.trimDisplayNames() }
  }

  private mutating func lookUpInOrder() {
    readAhead(0..<queries.count)
    for (index, query) in queries.enumerated() {
      writer.separate(buffer)
      answer(query, index, to: buffer)
    }
  }

  private mutating func lookUpSorted() {
    unordered.removeAll()
    places = Array(repeating: 0..<0, count: queries.count)
    for start in stride(from: 0, to: queries.count, by: ReadAhead.size) {
      let part = start..<min(start + ReadAhead.size, queries.count)
      readAhead(part)
      for position in part {
        let before = unordered.count
        answer(sorted[position], order[position], to: unordered)
        places[order[position]] = before..<unordered.count
      }
    }
  }

  private mutating func sort() {
    order.sort(count: queries.count) { [queries] index in
      let query = queries[index]
      // Finer than the lines of a cache need not be. Files with more than 16 MiB of code begin again behind them.
      let place = UInt32(truncatingIfNeeded: query.address >> 8) & 0xffff
      return (UInt32(truncatingIfNeeded: query.image) & 0xff) << 16 | place
    }
  }

  /// Files without a table look at all their addresses of the block at once: each unit is then read once.
  private mutating func prepare() {
    var addresses: [Int32: [UInt64]] = [:]
    guard images.all.contains(where: { $0.lookup?.hasTable == false }) else { return }
    for query in queries where query.problem == .none && query.image >= 0 {
      if images.all[Int(query.image)].lookup?.hasTable == false {
        addresses[query.image, default: []].append(query.address)
      }
    }
    for (image, wanted) in addresses { images.all[Int(image)].lookup?.prepare(wanted) }
  }

  /// - Returns: whether one was damaged.
  private func repairTables() -> Bool {
    var found = false
    for image in images.all where image.lookup?.isDamaged == true {
      image.lookup?.abandonTable()
      found = true
    }
    return found
  }

  @inline(__always)
  private func readAhead(_ part: Range<Int>) {
    for query in sorted[part] where query.image >= 0 && query.problem == .none {
      if let reader = readers[Int(query.image)] { readAhead.add(query.address, of: reader) }
    }
    readAhead.run()
  }

  @inline(__always)
  private mutating func answer(_ query: Query, _ index: Int, to buffer: ByteBuffer) {
    if query.image >= 0, query.problem == .none, let reader = readers[Int(query.image)] {
      reader.fill(&chain, at: query.address, nearestLines: nearestLines)
      if !chain.functions.isEmpty {
        writer.write(query.address, chain, of: images, query.image, to: buffer)
        return
      }
    }
    answerSlowly(query, index, to: buffer)
  }

  /// From the files, or with no answer.
  @inline(never)
  private mutating func answerSlowly(_ query: Query, _ index: Int, to buffer: ByteBuffer) {
    guard query.image >= 0, query.problem == .none else {
      let image = query.image >= 0 ? images.all[Int(query.image)] : nil
      return writer.writeNothing(
        query.address, of: image, input: inputs[index], reason: Self.reason(for: query.problem), to: buffer)
    }
    let image = images.all[Int(query.image)]
    if let lookup = image.lookup {
      lookup.fill(&chain, at: query.address)
      if !chain.functions.isEmpty {
        return writer.write(query.address, chain, of: images, query.image, to: buffer)
      }
      image.nameless &+= 1
    }
    writer.writeNothing(query.address, of: image, input: nil, reason: image.reason, to: buffer)
  }

  private func flush() throws(Output.Failure) {
    try output.write(buffer.bytes)
    buffer.removeAll()
  }
}
