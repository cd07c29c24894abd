private import CrashModel
private import Glibc

/// Counts for each record the processes that ended while they worked on it, so that a record that ends each of them is
/// put aside some day. The file `attempts`; used under the spool's lock.
///
/// Written before the work on a record, one small write into a file that is open: what a process wrote stays when the
/// process ends, however it does. No `fsync`, which would cost more than the work on many a record: a machine that loses
/// its power was not ended by a record.
struct Attempts: ~Copyable {
  /// After so many attempts nobody tries again.
  static let limit = 3
  static let fileName = "attempts"
  /// What a file that was tampered with can make us remember.
  private static let maximumRecords = 32
  private static let maximumBytes = 8192

  private let file: Descriptor
  /// Name of this run's own record, `-` where it has none.
  private let run: String
  private let thread: UInt32
  private var counts: [String: Int]

  /// Reads what the processes before left.
  ///
  /// - Parameter records: where the record of the process that was ended is looked for. A process that came to its end
  ///   in good order, or by a crash of another thread, was not ended by what this thread was working on.
  init(in root: borrowing Descriptor, records: borrowing Descriptor, ownRecord: String?) throws(SystemError) {
    let file = try Descriptor.open(Self.fileName, in: root, flags: O_RDWR | O_CREAT, mode: 0o600)
    guard try file.status().st_mode & S_IFMT == S_IFREG else {
      throw SystemError(number: EINVAL, "using \(Self.fileName), which must be a file")
    }
    counts = Self.counts(in: try file.read(count: Self.maximumBytes, at: 0), records: records)
    run = ownRecord ?? "-"
    thread = Self.currentThread()
    self.file = file
  }

  private static func counts(in bytes: [UInt8], records: borrowing Descriptor) -> [String: Int] {
    var counts: [String: Int] = [:]
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      switch words.first {
      case "failed" where words.count == 3:
        if let count = Int(words[2]), (1...limit).contains(count), counts.count < maximumRecords {
          counts[String(words[1])] = count
        }
      case "working" where words.count == 4:
        // Whoever came to the end took it out.
        let name = String(words[1])
        if !isInnocent(run: String(words[2]), thread: UInt32(words[3]) ?? 0, records: records) {
          counts[name] = min((counts[name] ?? 0) + 1, limit)
        }
      case "end": return counts
      default: continue
      }
    }
    return counts
  }

  /// To be called before a record is touched.
  ///
  /// - Returns: false where the record has ended enough processes.
  mutating func begin(_ name: String) throws(SystemError) -> Bool {
    let name = Self.word(name)
    guard counts[name] ?? 0 < Self.limit else { return false }
    try write("working \(name) \(run) \(thread)\n")
    return true
  }

  /// The work on a record came to an end, whichever.
  mutating func finish(_ name: String) { counts[Self.word(name)] = nil }

  /// All records were worked on.
  mutating func end() throws(SystemError) {
    counts = [:]
    try write("")
  }

  /// A file may be called anything; a word of a line may not.
  private static func word(_ name: String) -> String {
    String(decoding: name.utf8.map { $0 <= 0x20 ? UInt8(ascii: "_") : $0 }, as: UTF8.self)
  }

  private func write(_ working: String) throws(SystemError) {
    let failed = counts.sorted { $0.key < $1.key }.map { "failed \($0.key) \($0.value)\n" }.joined()
    // Nothing behind the last line is read, so that a longer text of before needs no second call.
    let bytes = Array((failed + working + "end\n").utf8)
    let length = bytes.withUnsafeBytes { pwrite(file.raw, $0.baseAddress, $0.count, 0) }
    guard length == bytes.count else {
      if length >= 0 { throw SystemError(number: ENOSPC, "writing \(Self.fileName)") }
      throw .last("writing \(Self.fileName)")
    }
  }

  // Of the dead run's record only the header is looked at: the record itself may be what ends processes.
  private static func isInnocent(run: String, thread: UInt32, records: borrowing Descriptor) -> Bool {
    guard run != "-", !run.utf8.contains(UInt8(ascii: "/")), thread != 0,
      let file = try? Descriptor.open(run, in: records, flags: O_RDONLY),
      let bytes = try? file.read(count: CrashRecord.headerSize, at: 0), let end = CrashRecord.RunEnd(bytes: bytes)
    else { return false }
    if end.crashState == .none { return end.runState == .exited || end.runState == .stopped }
    return end.crashThread.map { $0 != thread } ?? false
  }

  /// Kernel id of the calling thread; 0 without `/proc`.
  private static func currentThread() -> UInt32 {
    var buffer = [CChar](repeating: 0, count: 64)
    let length = readlink("/proc/thread-self", &buffer, buffer.count)
    guard length > 0 else { return 0 }
    // `4711/task/4712`
    let text = String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.split(separator: "/").last.flatMap { UInt32($0) } ?? 0
  }
}
