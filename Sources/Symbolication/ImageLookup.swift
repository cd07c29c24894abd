package import CrashModel

/// Names addresses of one file, as the file itself numbers them, many times over.
///
/// For batches in which `Symbolicator.symbolize`, which says the same of each address, would spend its time on making
/// strings: answers from a table are bytes of that table. Not thread-safe.
///
/// ```swift
/// let lookup = try symbolicator.lookup(of: FilePath("/usr/bin/orderd"))
/// if !lookup.hasTable { lookup.prepare(addresses) }
/// var chain = AddressChain()
/// for address in addresses { lookup.fill(&chain, at: address) }
/// ```
package final class ImageLookup {
  private let source: SymbolSource
  private let nearestLines: Bool
  private var table: AddressTable?

  /// Answers of the files themselves to the addresses of the last `prepare`.
  private var answers: [UInt64: Answer] = [:]
  private var names = InternedNames()
  /// Of linker's names, by where their bytes lie.
  private var displayNames: [UnsafeRawPointer: UnsafeRawBufferPointer] = [:]
  private var displayBytes = ByteArena()
  /// Display names are kept up to so many bytes; then they are made anew.
  private static let displayLimit = 64 << 20

  private struct Answer {
    var functions: [AddressChain.Function]
    var runtimeFailure: UnsafeRawBufferPointer?
  }

  init(_ source: SymbolSource, nearestLines: Bool) {
    self.source = source
    self.nearestLines = nearestLines
    table = source.tableIfWorthIt()
  }

  /// What was found to take names from, and what was not used.
  package var status: ImageSummary.Status { source.findings.status }
  package var refusals: [FoundDebugFiles.Refusal] { source.findings.refusals }

  /// Every address can be asked without `prepare`.
  package var hasTable: Bool { table != nil }

  /// What `fill` asks where there is a table; valid until `abandonTable`, and as long as this lives.
  package var reader: AddressTableReader? { table?.reader }

  /// The table turned out to be damaged. What was filled since it was last known to be whole is not to be believed:
  /// `abandonTable`, `prepare`, and ask again.
  package var isDamaged: Bool { table.map { $0.problem != nil } ?? false }

  package func abandonTable() {
    source.abandonTable()
    table = nil
    forgetDisplayNames()
  }

  /// Makes ready for these addresses, in any order; those of earlier calls are forgotten. May make a table of the whole
  /// file, if that is worth it by now.
  package func prepare(_ addresses: some Sequence<UInt64>) {
    if table != nil { return }
    // Also those of the answers that go with this.
    forgetDisplayNames()
    answers = [:]
    names = InternedNames()
    table = source.tableIfWorthIt()
    if table != nil { return }
    let sorted = Set(addresses).sorted()
    let resolved = source.resolve(sorted, nearestLines: nearestLines)
    for (address, answer) in zip(sorted, resolved) {
      answers[address] = Answer(
        functions: answer.functions.map {
          AddressChain.Function(
            name: $0.rawFunction.map { names.bytes($0) }, file: $0.file.map { names.bytes($0) },
            line: $0.line.flatMap { UInt32(exactly: $0) }, column: $0.column.flatMap { UInt32(exactly: $0) },
            inlined: $0.inlined, approximate: $0.approximate)
        }, runtimeFailure: answer.runtimeFailure.map { names.bytes($0) })
    }
  }

  /// The functions at an address, innermost first.
  ///
  /// - Parameter chain: emptied first; stays empty where nothing is known of the address, and without a table for one that
  ///   `prepare` was not given.
  package func fill(_ chain: inout AddressChain, at address: UInt64) {
    if let table { return table.reader.fill(&chain, at: address, nearestLines: nearestLines) }
    chain.removeAll()
    guard let answer = answers[address] else { return }
    for function in answer.functions { chain.appendResolved(function) }
    chain.setRuntimeFailure(answer.runtimeFailure)
  }

  /// A linker's name as people write it.
  ///
  /// - Parameter name: of a chain that this lookup filled, and that is valid still.
  /// - Returns: bytes that are valid as long as the name, and until `trimDisplayNames`.
  package func displayName(of name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    // No bytes have no place of their own.
    guard let key = name.baseAddress, !name.isEmpty else { return name }
    if let known = displayNames[key] { return known }
    let bytes = FunctionName.withDisplay(name) { text in
      text.baseAddress == key && text.count == name.count ? name : displayBytes.add(text)
    }
    displayNames[key] = bytes
    return bytes
  }

  /// To be called now and then, when no display name is in use: makes sure that they do not grow without end.
  package func trimDisplayNames() {
    if displayBytes.count > Self.displayLimit { forgetDisplayNames() }
  }

  private func forgetDisplayNames() {
    displayNames = [:]
    displayBytes = ByteArena()
  }
}

extension Symbolicator {
  /// - Parameter path: of a program, a library, or a debug file. What the file itself lacks is searched for by its build id.
  /// - Throws: where the file itself cannot be read.
  package func lookup(of path: FilePath) throws(DebugFileError) -> ImageLookup {
    ImageLookup(try source(ofFile: path), nearestLines: nearestLines)
  }
}

/// Bytes that stay where they are.
private struct ByteArena {
  /// The pieces that bytes are put into, freed together.
  private final class Pieces {
    var all: [UnsafeMutableRawBufferPointer] = []
    deinit { for piece in all { piece.deallocate() } }
  }

  private let pieces = Pieces()
  private var free = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private(set) var count = 0
  private static let pieceSize = 64 << 10

  mutating func add(_ text: String) -> UnsafeRawBufferPointer {
    var text = text
    return text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    if free.count < bytes.count {
      free = .allocate(byteCount: max(bytes.count, Self.pieceSize), alignment: 1)
      pieces.all.append(free)
    }
    let place = UnsafeMutableRawBufferPointer(rebasing: free[..<bytes.count])
    place.copyMemory(from: bytes)
    free = UnsafeMutableRawBufferPointer(rebasing: free[bytes.count...])
    count += bytes.count
    return UnsafeRawBufferPointer(place)
  }
}

/// Names as bytes, each once.
private struct InternedNames {
  private var arena = ByteArena()
  // Not by `String`, which takes two spellings of one character for the same.
  private var known: [[UInt8]: UnsafeRawBufferPointer] = [:]

  mutating func bytes(_ text: String) -> UnsafeRawBufferPointer {
    let key = Array(text.utf8)
    if let bytes = known[key] { return bytes }
    let bytes = arena.add(text)
    known[key] = bytes
    return bytes
  }
}
