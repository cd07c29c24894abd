/// How the runs of a spool's service ended: the file `history` of a spool (`docs/spool.md`).
///
/// Bounded: the last runs one by one, all others as numbers per release. Read and written under the spool's lock; a line
/// that cannot be read is skipped.
public struct RunHistory: Hashable, Sendable {
  /// One run that has ended.
  public struct Run: Hashable, Sendable {
    /// UUIDv7 of the run: sorts by the time at which it began.
    public var id: String
    public var release: String?
    public var ending: Ending.Kind
    /// Name of the signal that ended it.
    public var signal: String?
    /// Of the crash that ended it.
    public var stackHash: String?

    public init(id: String, release: String?, ending: Ending.Kind, signal: String? = nil, stackHash: String? = nil) {
      self.id = id
      self.release = release
      self.ending = ending
      self.signal = signal
      self.stackHash = stackHash
    }
  }

  /// One hang of a run.
  public struct Hang: Hashable, Sendable {
    /// UUIDv7 of its report: sorts by the time at which it was found.
    public var reportID: String
    public var runID: String
    public var release: String?
    /// The name under which the service has it watched, redacted.
    public var watch: String
    /// How long it lasted; nil where it did not end while its process lived.
    public var milliseconds: Int64?

    public init(reportID: String, runID: String, release: String?, watch: String, milliseconds: Int64? = nil) {
      self.reportID = reportID
      self.runID = runID
      self.release = release
      self.watch = watch
      self.milliseconds = milliseconds
    }
  }

  /// The runs of one release.
  public struct Release: Hashable, Sendable {
    /// nil for runs that have none.
    public var name: String?
    public var counts: [Ending.Kind: Int]

    public var runs: Int { counts.values.reduce(0, &+) }
    public func count(_ kind: Ending.Kind) -> Int { counts[kind] ?? 0 }
    /// The part of the runs that did not crash, 0 to 1; nil where there are none.
    public var crashFree: Double? {
      runs > 0 ? 1 - Double(count(.crashed)) / Double(runs) : nil
    }
  }

  public static let fileName = "history"
  /// More than the records that are worked on between two writes of the file, so that none is counted twice.
  public static let maximumRuns = 512
  public static let maximumReleases = 64
  public static let maximumHangs = 64
  /// The releases that there was no room for, together.
  public static let olderReleases = "(older releases)"
  public static let maximumBytes = 1 << 20
  private static let maximumCount = 1 << 40

  /// Oldest first.
  public private(set) var runs: [Run] = []
  /// In the order in which they were first seen.
  public private(set) var releases: [Release] = []
  /// Oldest first.
  public private(set) var hangs: [Hang] = []

  public init() {}

  /// Counts a run, once.
  ///
  /// - Returns: false where it was counted before.
  @discardableResult
  public mutating func add(_ run: Run) -> Bool {
    guard !runs.contains(where: { $0.id == run.id }) else { return false }
    let place = runs.lastIndex { $0.id < run.id }.map { $0 + 1 } ?? 0
    runs.insert(run, at: place)
    if runs.count > Self.maximumRuns { runs.removeFirst(runs.count - Self.maximumRuns) }
    add(run.ending, 1, toRelease: run.release)
    return true
  }

  /// Stores a hang, or what has become of it.
  public mutating func add(_ hang: Hang) {
    hangs.removeAll { $0.reportID == hang.reportID }
    let place = hangs.lastIndex { $0.reportID < hang.reportID }.map { $0 + 1 } ?? 0
    hangs.insert(hang, at: place)
    if hangs.count > Self.maximumHangs { hangs.removeFirst(hangs.count - Self.maximumHangs) }
  }

  private mutating func add(_ kind: Ending.Kind, _ count: Int, toRelease name: String?) {
    let index: Int
    if let known = releases.firstIndex(where: { $0.name == name }) {
      index = known
    } else {
      releases.append(Release(name: name, counts: [:]))
      foldReleases()
      index = releases.endIndex - 1
    }
    releases[index].counts[kind] = min(Self.maximumCount, (releases[index].counts[kind] ?? 0) + count)
  }

  private mutating func foldReleases() {
    guard releases.count > Self.maximumReleases else { return }
    let older: Int
    if let known = releases.firstIndex(where: { $0.name == Self.olderReleases }) {
      older = known
    } else {
      releases.insert(Release(name: Self.olderReleases, counts: [:]), at: 0)
      older = 0
    }
    while releases.count > Self.maximumReleases, let victim = releases.indices.first(where: { $0 != older }) {
      for (kind, count) in releases[victim].counts {
        releases[older].counts[kind] = min(Self.maximumCount, releases[older].count(kind) + count)
      }
      releases.remove(at: victim)
      // `older` stands first, so that its place holds.
    }
  }

  /// How many of the last runs in a row ended by the crash that ended the last one; 0 where that did not crash.
  public var sameCrashesInARow: Int {
    guard let last = runs.last, last.ending == .crashed, let hash = last.stackHash else { return 0 }
    return runs.reversed().prefix { $0.ending == .crashed && $0.stackHash == hash }.count
  }

  // MARK: The file

  /// Reads the file; nil bytes for one that is not there.
  public init(text: [UInt8]?) {
    for line in String(decoding: (text ?? []).prefix(Self.maximumBytes), as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      switch words.first {
      case "release" where words.count >= 2:
        guard let name = Self.decoded(words[1]), releases.count < Self.maximumReleases,
          !releases.contains(where: { $0.name == name.value })
        else { continue }
        var release = Release(name: name.value, counts: [:])
        for word in words.dropFirst(2) {
          let parts = word.split(separator: "=")
          guard parts.count == 2, let kind = Ending.Kind(rawValue: String(parts[0])), let count = Int(parts[1]),
            (0...Self.maximumCount).contains(count)
          else { continue }
          release.counts[kind] = count
        }
        releases.append(release)
      case "run" where words.count == 6:
        guard let release = Self.decoded(words[2]), let kind = Ending.Kind(rawValue: String(words[3])),
          let signal = Self.decoded(words[4]), let hash = Self.decoded(words[5]), runs.count < Self.maximumRuns
        else { continue }
        runs.append(
          Run(
            id: String(words[1]), release: release.value, ending: kind, signal: signal.value, stackHash: hash.value))
      case "hang" where words.count == 6:
        guard let release = Self.decoded(words[3]), let watch = Self.decoded(words[5]),
          words[4] == "-" || Int64(words[4]) != nil, hangs.count < Self.maximumHangs
        else { continue }
        hangs.append(
          Hang(
            reportID: String(words[1]), runID: String(words[2]), release: release.value, watch: watch.value ?? "",
            milliseconds: Int64(words[4])))
      default: continue
      }
    }
    hangs.sort { $0.reportID < $1.reportID }
    runs.sort { $0.id < $1.id }
  }

  public var text: [UInt8] {
    var text = "run-history 1\n"
    for release in releases {
      text += "release \(Self.encoded(release.name))"
      for kind in Ending.Kind.allCases where release.count(kind) > 0 {
        text += " \(kind.rawValue)=\(release.count(kind))"
      }
      text += "\n"
    }
    for run in runs {
      text += "run \(run.id) \(Self.encoded(run.release)) \(run.ending.rawValue) \(Self.encoded(run.signal)) "
      text += "\(Self.encoded(run.stackHash))\n"
    }
    for hang in hangs {
      text += "hang \(hang.reportID) \(hang.runID) \(Self.encoded(hang.release)) "
      text += "\(hang.milliseconds.map { String($0) } ?? "-") \(Self.encoded(hang.watch))\n"
    }
    return Array(text.utf8)
  }

  /// One word whatever a release is called; `-` for none.
  private static func encoded(_ text: String?) -> String {
    guard let text, !text.isEmpty else { return "-" }
    if text == "-" { return "%2d" }
    var word = ""
    for byte in text.utf8 {
      if (0x21...0x7e).contains(byte), byte != UInt8(ascii: "%") {
        word.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        word += "%" + Hex.string([byte])
      }
    }
    return word
  }

  private static func decoded(_ word: Substring) -> (value: String?, Void)? {
    if word == "-" { return (nil, ()) }
    var bytes: [UInt8] = []
    var rest = Array(word.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(Hex.digit), let low = rest.popFirst().flatMap(Hex.digit) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return (String(decoding: bytes, as: UTF8.self), ())
  }
}
