private import CLogScan
internal import CrashModel

/// Reads a file of log lines. Most of it is passed over by one scan (`CLogScan.h`); lines are taken apart from one in which
/// a crash may begin until it has ended.
struct LogFile {
  let contents: JSONContentReader

  /// A line that is longer and in which nothing begins is not kept to its end.
  private static let longLine = 1024 * 1024

  /// - Throws: where nothing was found, too.
  func read(
    _ lines: inout LineBuffer, from file: borrowing InputFile, _ event: (InputReader.Event) -> Bool
  ) throws(InputError) {
    let log = LogReader(json: contents)
    let beginning = Array(lines.unread.prefix(64))
    var number = 0
    var isEmpty = true
    while true {
      if log.isIdle, try !skip(&lines, from: file, &number) { break }
      guard let length = try lines.nextLine(from: file) else { break }
      number += 1
      if length > InputReader.documentLimit {
        try lines.skipLine(from: file)
        continue
      }
      log.read(UnsafeRawBufferPointer(rebasing: lines.unread.prefix(length)), number: number)
      lines.consume(length)
      for found in log.takeEvents() {
        isEmpty = false
        guard event(found) else { return }
      }
    }
    log.finish()
    for found in log.takeEvents() {
      isEmpty = false
      guard event(found) else { return }
    }
    if isEmpty {
      throw InputError(
        .unknownFormat,
        beginning.withUnsafeBytes { bytes in
          let start = bytes.firstIndex { ![0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0) } ?? 0
          return InputFormat.refusal(of: bytes, from: start)
        })
    }
  }

  /// Passes over the lines in which nothing begins.
  ///
  /// - Returns: false at the end of the file.
  private func skip(_ lines: inout LineBuffer, from file: borrowing InputFile, _ number: inout Int) throws(InputError)
    -> Bool
  {
    while true {
      let unread = lines.unread
      guard let start = unread.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
        if try !lines.fill(from: file) { return false }
        continue
      }
      let found = CLogScan_find(start, unread.count)
      // The last line feed before it: from there on lines are read.
      let end = CLogScan_line_start(start, found)
      number += CLogScan_count_lines(start, end)
      lines.consume(end)
      if found < unread.count { return true }
      if lines.count > Self.longLine { lines.consume(lines.count - Int(CLOGSCAN_LONGEST)) }
      if try !lines.fill(from: file) { return false }
    }
  }
}
