private import CrashModel

/// All functions of a file by address: what takes seconds to gather from debug information, as a table that is mapped and
/// asked in microseconds.
///
/// Nothing in the file is believed: every index is checked against its section, and every block that is used against its
/// checksum. A table that fails either check answers nothing from then on (`problem`), and is built anew.
final class AddressTable {
  private typealias Layout = AddressTableLayout

  /// Why the table cannot be used any more; nil as long as it can.
  var problem: String? { reader.state.pointee.problem.map { $0.description } }

  /// Reads the answers; valid as long as this lives.
  let reader: AddressTableReader

  private let release: () -> Void
  // By offsets, as they were when they were first asked for. All keys have one type, which the runtime looks up once.
  private var strings: [UInt64: String] = [:]
  private var functions: [UInt64: FrameNames] = [:]
  /// By the function's offset and the file's.
  private var names: [UInt64: FrameNames] = [:]
  /// Of each. A batch of ever new addresses must not keep all that the table holds as Strings, too.
  private static let limit = 50_000

  /// Why a file is no table of ours.
  struct Refusal: Error, Hashable {
    var reason: String
  }

  /// - Parameters:
  ///   - bytes: of the whole file. They stay valid until `release` is called, which happens once.
  ///   - key: 32 bytes that say what the table was made from.
  init(_ bytes: UnsafeRawBufferPointer, key: [UInt8], release: @escaping () -> Void) throws(Refusal) {
    self.release = release
    reader = AddressTableReader(state: .allocate(capacity: 1))
    let none = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)
    reader.state.initialize(
      to: AddressTableReader.State(bytes: bytes, map: AddressTableReader.Map(), verified: none, problem: nil))
    // A refusal ends this object, and its `deinit` releases what there is by then.
    let map = try Self.readHeader(bytes, key: key)
    let verified = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: map.blockCount)
    verified.initialize(repeating: 0)
    reader.state.pointee.map = map
    reader.state.pointee.verified = verified
  }

  deinit {
    reader.state.pointee.verified.deallocate()
    reader.state.deallocate()
    release()
  }

  private static func readHeader(_ bytes: UnsafeRawBufferPointer, key: [UInt8]) throws(Refusal)
    -> AddressTableReader.Map
  {
    guard bytes.count >= Layout.headerSize else { throw Refusal(reason: "it is shorter than a header") }
    let isOurs = Layout.magic.withUTF8Buffer { $0.elementsEqual(bytes[..<$0.count]) }
    guard isOurs else { throw Refusal(reason: "it is no address table") }
    let version = Self.u32(bytes, Layout.Header.version)
    guard version == Layout.version else { throw Refusal(reason: "it has version \(version)") }
    let header = UnsafeRawBufferPointer(rebasing: bytes[..<Layout.Header.checksum])
    guard Layout.checksum(header) == Self.u64(bytes, Layout.Header.checksum) else {
      throw Refusal(reason: "its header is damaged")
    }
    guard Self.u64(bytes, Layout.Header.fileSize) == UInt64(bytes.count) else {
      throw Refusal(reason: "it has \(bytes.count) bytes instead of \(Self.u64(bytes, Layout.Header.fileSize))")
    }
    guard key.count == 32, key.elementsEqual(bytes[Layout.Header.key..<Layout.Header.key + 32]) else {
      throw Refusal(reason: "it was made from another file")
    }
    var map = AddressTableReader.Map()
    map.firstAddress = Self.u64(bytes, Layout.Header.firstAddress)
    map.bucketShift = UInt64(Self.u32(bytes, Layout.Header.bucketShift))
    guard map.bucketShift < 32 else { throw Refusal(reason: "its header is damaged") }
    var end = Layout.headerSize
    for section in Layout.Section.allCases {
      let at = Layout.Header.sections + section.rawValue * 16
      let offset = Int(clamping: Self.u64(bytes, at))
      let count = Int(clamping: Self.u64(bytes, at + 8))
      let (size, overflow) = count.multipliedReportingOverflow(by: section.stride)
      guard !overflow, offset >= end, offset <= bytes.count, size <= bytes.count - offset else {
        throw Refusal(reason: "its header is damaged")
      }
      end = offset + size
      switch section {
      case .starts: map.starts = offset..<end
      case .values: map.values = offset..<end
      case .buckets: map.buckets = offset..<end
      case .entries: map.entries = offset..<end
      case .positions: map.positions = offset..<end
      case .functions: map.functions = offset..<end
      case .strings: map.strings = offset..<end
      case .checksums: map.checksums = offset..<end
      }
    }
    guard map.checksums.count / 4 >= map.blockCount,
      Layout.checksum(UnsafeRawBufferPointer(rebasing: bytes[map.checksums]))
        == Self.u64(bytes, Layout.Header.checksumOfChecksums)
    else { throw Refusal(reason: "its checksums are damaged") }
    return map
  }

  // MARK: Answers

  /// The functions at an address, innermost first, as debug information and symbol table have them together; nil where
  /// neither knows the address. With the names that people write.
  ///
  /// - Parameter nearestLines: replace line 0 by the nearest line of the same function.
  func functions(at address: UInt64, nearestLines: Bool) -> [SymbolicatedFunction]? {
    var result: [SymbolicatedFunction] = []
    let isWhole = reader.forEachEntry(at: address, nearestLines: nearestLines) { entry in
      func number(_ value: UInt32) -> Int? { value == Layout.none ? nil : Int(value) }
      result.append(
        SymbolicatedFunction(
          names: names(function: entry.name, file: entry.position.file), line: number(entry.position.line),
          column: number(entry.position.column), declarationLine: number(entry.declarationLine),
          approximate: entry.isNearest, inlined: entry.isInlined, hasDebugInformation: entry.hasDebugInformation))
    }
    return isWhole && reader.state.pointee.problem == nil && !result.isEmpty ? result : nil
  }

  private func names(function: UInt32, file: UInt32) -> FrameNames {
    let key = UInt64(function) << 32 | UInt64(file)
    if let known = names[key] { return known }
    let names = self.function(function)
    let made =
      file == Layout.none
      ? names : .of(function: names.function, rawFunction: names.rawFunction, file: path(file))
    if self.names.count >= Self.limit { self.names.removeAll(keepingCapacity: true) }
    self.names[key] = made
    return made
  }

  private func path(_ offset: UInt32) -> String? {
    if let known = strings[UInt64(offset)] { return known }
    guard let bytes = reader.string(offset) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    if strings.count >= Self.limit { strings.removeAll(keepingCapacity: true) }
    strings[UInt64(offset)] = text
    return text
  }

  /// Without a file.
  private func function(_ offset: UInt32) -> FrameNames {
    if offset == Layout.none { return .none }
    if let known = functions[UInt64(offset)] { return known }
    guard let bytes = reader.string(offset) else { return .none }
    let raw = String(decoding: bytes, as: UTF8.self)
    let names = FrameNames(function: FunctionName.display(raw), rawFunction: raw, file: nil)
    if functions.count >= Self.limit { functions.removeAll(keepingCapacity: true) }
    functions[UInt64(offset)] = names
    return names
  }

  @inline(__always)
  private static func u32(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  @inline(__always)
  private static func u64(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}
