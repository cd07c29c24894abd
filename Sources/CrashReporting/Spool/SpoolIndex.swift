private import CrashModel
private import Glibc

/// What the spool has to remember besides its files: which reports of a hash were stored lately, and how many crashes
/// were counted instead. The file `index`; every line is words separated by spaces (`docs/spool.md`).
///
/// Read and written under the spool's lock. Losing it loses counts, never reports, so that a damaged line is skipped.
struct SpoolIndex {
  struct Entry {
    /// Ids of the reports that were stored last, oldest first.
    var stored: [String] = []
    /// Crashes that were counted since the last stored report.
    var suppressed = 0
    /// The report that is being written and carries `suppressed`. Set before it is written and removed together with the
    /// count: whoever finds it knows by the report's presence whether the count has left.
    var carrier: String?
  }

  private(set) var entries: [String: Entry] = [:]
  /// Ids of reports that were counted and whose record may still be there, because the run ended in between.
  private(set) var counted: Set<String> = []
  /// What to take off the wall clock to undo its jumps, in seconds.
  private(set) var clockOffset: Int64 = 0
  private var clock: SpoolClock?

  static let fileName = "index"
  /// A bound on what a file that grew or was tampered with can make us remember.
  static let maximumHashes = 4_096
  private static let maximumBytes = 4 * 1024 * 1024

  init(in folder: borrowing Descriptor) throws(SystemError) {
    do throws(SystemError) {
      let file = try Descriptor.open(Self.fileName, in: folder, flags: O_RDONLY)
      let status = try file.status()
      guard status.st_mode & S_IFMT == S_IFREG else { return }
      decode(try file.read(count: min(Int(status.st_size), Self.maximumBytes), at: 0))
    } catch {
      guard error.number == ENOENT || error.number == ELOOP else { throw error }
    }
  }

  // MARK: Clock

  /// Notes the time, and finds out whether the wall clock was set since the last time.
  ///
  /// Without this, a clock that stands ten years ahead for a minute would make every report "too old".
  mutating func observe(_ now: SpoolClock) {
    if let clock, clock.bootID == now.bootID {
      let jump = (now.wall &- clock.wall) &- (now.boot &- clock.boot)
      // Below an hour it is drift and correction.
      if jump.magnitude > 3_600 { clockOffset &+= jump }
    }
    clock = now
  }

  /// The time as it would be without the jumps, seconds since 1970.
  var trustedNow: Int64 { (clock?.wall ?? 0) &- clockOffset }

  // MARK: Counts

  /// Brings the index in line with the reports that are there, after a run that was ended in the middle.
  mutating func recover(presentIDs: Set<String>) {
    for (hash, entry) in entries {
      guard let carrier = entry.carrier else { continue }
      entries[hash]?.carrier = nil
      if presentIDs.contains(carrier) {
        entries[hash]?.suppressed = 0
        remember(carrier, hash: hash, keep: .max)
      }
    }
  }

  func isCounted(_ id: String) -> Bool { counted.contains(id) }

  mutating func count(_ id: String, hash: String) {
    makeRoom(for: hash)
    entries[hash, default: Entry()].suppressed += 1
    counted.insert(id)
  }

  /// The record of a counted report is gone for good.
  mutating func forget(_ id: String) { counted.remove(id) }

  func suppressed(_ hash: String) -> Int { entries[hash]?.suppressed ?? 0 }

  mutating func setCarrier(_ id: String, hash: String) { entries[hash]?.carrier = id }

  mutating func stored(_ id: String, hash: String, keep: Int) {
    makeRoom(for: hash)
    entries[hash, default: Entry()].suppressed = 0
    entries[hash]?.carrier = nil
    remember(id, hash: hash, keep: keep)
  }

  private mutating func remember(_ id: String, hash: String, keep: Int) {
    var ids = entries[hash]?.stored ?? []
    if !ids.contains(id) { ids.append(id) }
    ids.sort()
    if ids.count > keep { ids.removeFirst(ids.count - keep) }
    entries[hash, default: Entry()].stored = ids
  }

  private mutating func makeRoom(for hash: String) {
    guard entries[hash] == nil, entries.count >= Self.maximumHashes else { return }
    // Without a count before with one, then the one that was stored longest ago.
    let oldest = entries.min {
      ($0.value.suppressed > 0 ? 1 : 0, $0.value.stored.last ?? "")
        < ($1.value.suppressed > 0 ? 1 : 0, $1.value.stored.last ?? "")
    }
    if let oldest { entries[oldest.key] = nil }
  }

  /// Drops hashes that say nothing any more: nothing counted, and the last crash longer ago than `age` seconds.
  mutating func prune(olderThan age: Int64) {
    for (hash, entry) in entries where entry.suppressed == 0 && entry.carrier == nil {
      let newest = entry.stored.last.flatMap(ReportName.seconds(ofID:)) ?? 0
      if newest < trustedNow &- age { entries[hash] = nil }
    }
  }

  // MARK: File

  mutating func save(in folder: borrowing Descriptor) throws(SystemError) {
    var text = "spool-index 1\n"
    if let clock { text += "clock \(clock.wall) \(clock.boot) \(clock.bootID) \(clockOffset)\n" }
    for (hash, entry) in entries.sorted(by: { $0.key < $1.key }) {
      text += "hash \(hash) \(entry.suppressed) \(entry.carrier ?? "-") \(entry.stored.joined(separator: ","))\n"
    }
    for id in counted.sorted() { text += "counted \(id)\n" }
    try folder.replace(Self.fileName, with: Array(text.utf8))
  }

  private mutating func decode(_ bytes: [UInt8]) {
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ", omittingEmptySubsequences: false)
      switch words.first {
      case "clock" where words.count == 5:
        guard let wall = Int64(words[1]), let boot = Int64(words[2]), let offset = Int64(words[4]) else { continue }
        clock = SpoolClock(wall: wall, boot: boot, bootID: String(words[3]))
        clockOffset = offset
      case "hash" where words.count == 5:
        guard ReportName.isHash(words[1]), let suppressed = Int(words[2]), suppressed >= 0, suppressed < .max / 2,
          entries.count < Self.maximumHashes
        else { continue }
        entries[String(words[1])] = Entry(
          stored: words[4].split(separator: ",").filter(ReportName.isID).map(String.init), suppressed: suppressed,
          carrier: ReportName.isID(words[3]) ? String(words[3]) : nil)
      case "counted" where words.count == 2 && ReportName.isID(words[1]): counted.insert(String(words[1]))
      default: continue
      }
    }
  }
}
