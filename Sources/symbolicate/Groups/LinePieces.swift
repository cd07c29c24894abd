internal import CrashFormats
internal import CrashModel
private import Glibc

/// Cuts a file of reports, one a line, into pieces that can be read apart.
///
/// Only between a line that ends an object and one that begins with a schema: what is there in one piece or in two is the
/// same to the reader, whatever else is in the file.
final class LinePieces {
  /// Room for the parser to look behind the end is not needed here: whoever reads a piece has a copy.
  private static let size = 1 << 20
  /// Without a place to cut at, a piece ends here. Nothing that large is a report.
  private static let limit = 2 * InputReader.documentLimit

  private let file: InputFile
  private var memory: UnsafeMutableRawBufferPointer
  private var count = 0
  private var line = 1
  private var isAtEnd = false

  /// - Parameter path: nil for standard input.
  init(_ path: FilePath?) throws(InputError) {
    file = try Self.open(path)
    memory = .allocate(byteCount: 2 * Self.size, alignment: 16)
    // A line at least, if it has an end at all.
    while count < Self.size, !beginning.contains(UInt8(ascii: "\n")), try fill() {}
  }

  private static func open(_ path: FilePath?) throws(InputError) -> InputFile {
    guard let path else { return InputFile.standardInput() }
    return try InputFile(path: path)
  }

  deinit { memory.deallocate() }

  /// Of the file, as much as tells what it is.
  var beginning: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

  private func fill() throws(InputError) -> Bool {
    guard !isAtEnd else { return false }
    if memory.count - count < Self.size {
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: memory.count * 2, alignment: 16)
      larger.copyMemory(from: beginning)
      memory.deallocate()
      memory = larger
    }
    let read = try file.readSome(into: UnsafeMutableRawBufferPointer(rebasing: memory[count..<count + Self.size]))
    count += read
    isAtEnd = read == 0
    return read > 0
  }

  /// - Returns: false at the end of the file.
  func next(_ body: (_ firstLine: Int, UnsafeRawBufferPointer) -> Bool) throws(InputError) -> Bool {
    while count < Self.size, try fill() {}
    var searched = 0
    var cut = isAtEnd ? count : Self.lastCut(in: beginning, behind: searched)
    // Seldom: a line that is longer than all else, or one that is no report behind another.
    while cut == 0, count > 0 {
      searched = count
      if count < Self.limit, try fill() { cut = Self.lastCut(in: beginning, behind: searched) } else { cut = count }
    }
    guard cut > 0 else { return false }
    let piece = UnsafeRawBufferPointer(rebasing: beginning[..<cut])
    guard body(line, piece) else { return false }
    line += piece.reduce(0) { $0 &+ ($1 == UInt8(ascii: "\n") ? 1 : 0) }
    if let base = memory.baseAddress { memmove(base, base + cut, count - cut) }
    count -= cut
    return true
  }

  /// Where the last line begins that has a schema, behind one that ends an object; 0 where there is none.
  ///
  /// - Parameter searched: so many bytes were searched before, and have none.
  private static func lastCut(in bytes: UnsafeRawBufferPointer, behind searched: Int) -> Int {
    let mark = Array("}\n{\"schema\":\"crash-report/".utf8)
    guard let base = bytes.baseAddress else { return 0 }
    // Backwards: the last line begins not far from the end. The mark may have been cut where the bytes ended before.
    var place = bytes.count - mark.count + 1
    while place > 0, place + mark.count >= searched {
      if bytes[place] == UInt8(ascii: "\n"), memcmp(base + place - 1, mark, mark.count) == 0 { return place + 1 }
      place -= 1
    }
    return 0
  }
}
