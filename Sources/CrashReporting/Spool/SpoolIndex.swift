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
    /// The counts that stored reports took along, by their ids, as long as the reports are here.
    var carried: [String: Int] = [:]
    /// Reports whose count was taken back because they are being removed, by their ids, and the count.
    var returned: [String: Int] = [:]

    var hasCount: Bool { suppressed > 0 || !carried.isEmpty || !returned.isEmpty }
  }

  private(set) var entries: [String: Entry] = [:]
  /// Ids of reports that were counted and whose record may still be there, because the run ended in between.
  private(set) var counted: Set<String> = []
  /// What to take off the wall clock to undo its jumps, in seconds.
  private(set) var clockOffset: Int64 = 0
  private var clock: SpoolClock?
  /// Counted crashes of hashes that the index had no room for, to be told.
  private(set) var forgotten = 0

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
  ///
  /// - Returns: ids of reports whose removal was begun and has to be ended: their count is here already.
  mutating func recover(presentIDs: Set<String>) -> Set<String> {
    var unfinished: Set<String> = []
    for (hash, entry) in entries {
      unfinished.formUnion(entry.returned.keys.filter(presentIDs.contains))
      // Taken away by somebody, and the count with it, or removed by us.
      entries[hash]?.returned = entry.returned.filter { presentIDs.contains($0.key) }
      entries[hash]?.carried = entry.carried.filter { presentIDs.contains($0.key) }
      guard let carrier = entry.carrier else { continue }
      entries[hash]?.carrier = nil
      if presentIDs.contains(carrier) {
        if entry.suppressed > 0 { entries[hash]?.carried[carrier] = entry.suppressed }
        entries[hash]?.suppressed = 0
        remember(carrier, hash: hash, keep: .max)
      }
    }
    return unfinished
  }

  /// The count of a report that is about to be removed goes back, for the next report of the hash to carry.
  ///
  /// - Returns: whether there was one; then the index must be on the disk before the report goes.
  mutating func takeBack(_ id: String, hash: String) -> Bool {
    guard let count = entries[hash]?.carried.removeValue(forKey: id) else { return false }
    entries[hash]?.suppressed += count
    entries[hash]?.returned[id] = count
    return true
  }

  /// The report is gone: by us, or before us by somebody who took it away and has its count.
  mutating func removed(_ id: String, hash: String, byUs: Bool) {
    guard let count = entries[hash]?.returned.removeValue(forKey: id), !byUs else { return }
    entries[hash]?.suppressed -= count
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
    let carried = suppressed(hash)
    if carried > 0 { entries[hash]?.carried[id] = carried }
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
      ($0.value.hasCount ? 1 : 0, $0.value.stored.last ?? "") < ($1.value.hasCount ? 1 : 0, $1.value.stored.last ?? "")
    }
    if let oldest {
      forgotten += oldest.value.suppressed
      entries[oldest.key] = nil
    }
  }

  /// Drops hashes that say nothing any more: nothing counted, and the last crash longer ago than `age` seconds.
  mutating func prune(olderThan age: Int64) {
    for (hash, entry) in entries where !entry.hasCount && entry.carrier == nil {
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
      for (id, count) in entry.carried.sorted(by: { $0.key < $1.key }) { text += "carried \(hash) \(id) \(count)\n" }
      for (id, count) in entry.returned.sorted(by: { $0.key < $1.key }) { text += "returned \(hash) \(id) \(count)\n" }
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
        guard ReportName.isHash(words[1]), let suppressed = Self.count(words[2]), entries.count < Self.maximumHashes
        else { continue }
        entries[String(words[1])] = Entry(
          stored: words[4].split(separator: ",").filter(ReportName.isID).map(String.init), suppressed: suppressed,
          carrier: ReportName.isID(words[3]) ? String(words[3]) : nil)
      // Behind the line of their hash.
      case "carried" where words.count == 4 && ReportName.isID(words[2]):
        if let count = Self.count(words[3]) { entries[String(words[1])]?.carried[String(words[2])] = count }
      case "returned" where words.count == 4 && ReportName.isID(words[2]):
        if let count = Self.count(words[3]) { entries[String(words[1])]?.returned[String(words[2])] = count }
      case "counted" where words.count == 2 && ReportName.isID(words[1]): counted.insert(String(words[1]))
      default: continue
      }
    }
  }

  // Sums of a whole file of such counts stay far from the end of `Int`.
  private static func count(_ word: Substring) -> Int? {
    Int(word).flatMap { $0 >= 0 && $0 < 1 << 32 ? $0 : nil }
  }
}
