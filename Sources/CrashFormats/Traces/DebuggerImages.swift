internal import CrashModel

/// Where a debugger says that files were mapped: rows of gdb's `info proc mappings`, and of lldb's `image list`.
struct DebuggerImages {
  private struct Mapping {
    var start: UInt64
    var end: UInt64
    /// The row of the file's beginning was seen: its address is the image's.
    var hasBeginning: Bool
  }

  /// gdb's, by path.
  private var mappings: [String: Mapping] = [:]
  /// lldb's.
  private var listed: [Image] = []

  var isEmpty: Bool { mappings.isEmpty && listed.isEmpty }

  /// `0x555555554000     0x555555555000     0x1000        0x0  r--p   /srv/api`; older ones have no permissions.
  ///
  /// - Returns: whether the line is a row, whatever it maps.
  mutating func readMapping(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    var numbers: [UInt64] = []
    while numbers.count < 4, let number = scanner.hex() {
      numbers.append(number)
      scanner.skipSpaces()
    }
    guard numbers.count == 4, numbers[0] < numbers[1], numbers[2] == numbers[1] - numbers[0] else { return false }
    if !scanner.starts(with: "/") {
      let word = scanner.word()
      guard word.isEmpty || word.count == 4 || word.first == UInt8(ascii: "[") else { return false }
      scanner.skipSpaces()
    }
    guard scanner.starts(with: "/"), mappings.count < ReportDraft.imageLimit else { return true }
    // The file's name is gone or another's since then; what was mapped is what ran.
    var path = scanner.text
    if path.hasSuffix(" (deleted)") { path.removeLast(10) }
    let isBeginning = numbers[3] == 0
    guard var known = mappings[path] else {
      mappings[path] = Mapping(start: numbers[0], end: numbers[1], hasBeginning: isBeginning)
      return true
    }
    // Further segments lie behind the first one; a file that is mapped twice is no image the second time.
    if numbers[0] >= known.end, !isBeginning || !known.hasBeginning { known.end = numbers[1] }
    known.hasBeginning = known.hasBeginning || isBeginning && numbers[0] == known.start
    mappings[path] = known
    return true
  }

  /// `[  0] A4B7E00E-1409-A222-3C02-DF7C20E92919-32CCDC25 0x0000555555554000 /srv/api`
  mutating func readListed(_ text: ArraySlice<UInt8>) -> Bool {
    var scanner = LineScanner(text)
    guard scanner.skip("[") else { return false }
    scanner.skipSpaces()
    guard scanner.decimal() != nil, scanner.skip("]") else { return false }
    scanner.skipSpaces()
    let identifier = scanner.word().filter { $0 != UInt8(ascii: "-") }
    scanner.skipSpaces()
    guard let address = scanner.hex() else { return false }
    scanner.skipSpaces()
    guard scanner.starts(with: "/"), listed.count < ReportDraft.imageLimit else { return !scanner.isAtEnd }
    let digits = String(decoding: identifier, as: UTF8.self).lowercased()
    listed.append(
      Image(path: scanner.text, buildID: BuildID(digits), address: Address(rawValue: address), size: 0))
    return true
  }

  /// Puts the images into the report, and the frames into them.
  func place(in draft: inout ReportDraft) {
    for (path, mapping) in mappings.sorted(by: { $0.value.start < $1.value.start }) where mapping.hasBeginning {
      draft.add(
        Image(
          path: path, buildID: nil, address: Address(rawValue: mapping.start), size: mapping.end - mapping.start))
    }
    guard !listed.isEmpty else { return }
    // Where an image ends is not said: it reaches as far as the frames that are named to be in it.
    var ends: [String: UInt64] = [:]
    for case let captured? in draft.report.threads.lazy.flatMap(\.frames).map(\.captured) {
      guard let index = captured.imageIndex, draft.report.images.indices.contains(index) else { continue }
      let name = draft.report.images[index].name
      ends[name] = max(ends[name] ?? 0, captured.address.rawValue)
    }
    for var image in listed {
      guard let end = ends[image.name], end >= image.address.rawValue else { continue }
      let (size, overflow) = (end - image.address.rawValue).addingReportingOverflow(1)
      guard !overflow else { continue }
      image.size = size
      draft.add(image)
    }
  }
}
