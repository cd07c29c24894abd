private import CrashModel
private import Glibc

/// The reports in `new/`, held to the limits. Used under the spool's lock.
struct ReportStore {
  private struct Stored {
    var size: Int
    /// Seconds since 1970, by the wall clock of that time.
    var modified: Int64
  }

  let limits: SpoolLimits
  private var reports: [ReportName: Stored] = [:]
  private var totalBytes = 0

  /// Lists the folder, and removes what writers that were killed left half done.
  init(in folder: borrowing Descriptor, limits: SpoolLimits) throws(SystemError) {
    self.limits = limits
    for name in try folder.names() {
      if name.hasPrefix("."), name.hasSuffix(".tmp") {
        // Reports are written under the lock that we hold: nobody is writing this one.
        try folder.remove(name)
        continue
      }
      guard let report = ReportName(fileName: name) else { continue }
      var status = stat()
      guard fstatat(folder.raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG else {
        continue
      }
      // A sparse file may claim exabytes; the sum of many such must stay a number.
      let size = min(Int(status.st_size), 1 << 40)
      reports[report] = Stored(size: size, modified: Int64(status.st_mtim.tv_sec))
      totalBytes += size
    }
  }

  var ids: Set<String> { Set(reports.keys.map(\.id)) }

  func contains(id: String) -> Bool { reports.keys.contains { $0.id == id } }

  /// How many reports of `hash` were stored within the window around the crash of `id`, by those here and by those that
  /// `remembered` names, which may have been delivered.
  ///
  /// By the time of the crashes, not by that of their processing: after a week without a restart a record is a week old.
  func recentCount(hash: String, around id: String, remembered: [String]) -> Int {
    guard let time = ReportName.seconds(ofID: id) else { return 0 }
    let ids = Set(remembered).union(reports.keys.lazy.filter { $0.hash == hash }.map(\.id))
    return ids.count { other in
      guard other != id, let seconds = ReportName.seconds(ofID: other) else { return false }
      return (seconds - time).magnitude < limits.window.magnitude
    }
  }

  func name(ofID id: String) -> ReportName? { reports.keys.first { $0.id == id } }

  /// The oldest reports of a hash, as many as there are more than `count`.
  func oldest(hash: String, beyond count: Int) -> [ReportName] {
    let names = reports.keys.filter { $0.hash == hash }.sorted()
    return Array(names.dropLast(max(0, count)))
  }

  /// Reports that are older than the limit. A time in the future is no age.
  func old(now: Int64) -> [ReportName] {
    reports.filter { $0.value.modified < now &- limits.age }.keys.sorted()
  }

  /// The report that has to go before one more of `size` bytes may come; nil where there is room.
  ///
  /// The most frequent hash gives its oldest report first, so that a crash loop displaces itself and not the one report
  /// of another bug.
  func victim(forSize size: Int) -> ReportName? {
    guard reports.count >= max(1, limits.reports) || (totalBytes + size > limits.bytes && size <= limits.bytes) else {
      return nil
    }
    let byHash = Dictionary(grouping: reports.keys, by: \.hash)
    return byHash.values.compactMap { names in names.min().map { (count: names.count, name: $0) } }
      .min { ($1.count, $0.name) < ($0.count, $1.name) }?.name
  }

  /// - Returns: whether the report was still there; somebody may have taken it away since the folder was listed.
  mutating func remove(_ name: ReportName, in folder: borrowing Descriptor) throws(SystemError) -> Bool {
    let wasThere = try folder.remove(name.fileName)
    if let stored = reports.removeValue(forKey: name) { totalBytes -= stored.size }
    return wasThere
  }

  mutating func store(
    _ name: ReportName, _ bytes: [UInt8], in folder: borrowing Descriptor, now: Int64
  ) throws(SystemError) {
    try folder.replace(name.fileName, with: bytes)
    reports[name] = Stored(size: bytes.count, modified: now)
    totalBytes += bytes.count
  }
}
