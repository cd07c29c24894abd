private import CCrashFormat

extension CrashRecord {
  /// What a record is of.
  public enum Kind: Hashable, Sendable {
    /// A process run, and its crash where it came to one.
    case run
    /// All threads of a run that lived on.
    case snapshot
    /// The same, because something did not answer.
    case hang
    case unknown(UInt32)
  }

  /// What the process itself noticed of its end.
  public enum ProcessEnd: Hashable, Sendable {
    case none
    /// Exit handlers ran.
    case exit(status: Int32)
    /// Those of `quick_exit`, which are not told the status.
    case quickExit
    /// A signal whose default action ends the process came; when.
    case signal(SignalInfo, Timestamp?)
    case unknown(UInt32)
  }

  /// A memory cgroup of the process, or one that contains it, as it was at the start.
  public struct MemoryGroup: Hashable, Sendable {
    /// Of its folder in the cgroup file system.
    public var path: String
    /// Of that folder: a group that is made anew has another one.
    public var inode: UInt64
    /// 1 or 2.
    public var version: UInt32
    /// Processes in it that the kernel had killed for want of memory.
    public var kills: UInt64

    public init(path: String, inode: UInt64, version: UInt32, kills: UInt64) {
      self.path = path
      self.inode = inode
      self.version = version
      self.kills = kills
    }
  }

  /// Of a snapshot or a hang.
  public struct Snapshot: Hashable, Sendable {
    /// UUIDv7 of the run that it was taken in, 16 bytes.
    public var ofRun: [UInt8]
    public var time: Timestamp?
    /// How long the threads stood still, in nanoseconds.
    public var stoppedNanoseconds: UInt64
    public var silentNanoseconds: UInt64
    public var samples: UInt32
    /// Kernel id of the thread that it is about; nil where that was not known.
    public var threadID: UInt32?
    public var watch: String
  }

  /// Before the other sections are read, which ones there have to be depends on it.
  static func kind(in section: RecordBytes?) -> Kind {
    guard let section, let kind: UInt32 = section.load(0) else { return .run }
    switch crash_record_kind(rawValue: kind) {
    case CRASH_RECORD_OF_RUN: return .run
    case CRASH_RECORD_OF_SNAPSHOT: return .snapshot
    case CRASH_RECORD_OF_HANG: return .hang
    default: return .unknown(kind)
    }
  }

  mutating func decodeRun(_ section: RecordBytes?) {
    guard let section else { return }
    guard section.count >= CRASH_RUN_SIZE else {
      notes.append("The section run is too short.")
      return
    }
    decodeEnd(section)
    decodeMemoryGroups(section)
    guard kind == .snapshot || kind == .hang else { return }
    let length: UInt16 = section.load(CRASH_RUN_WATCH_LENGTH_OFFSET) ?? 0
    let thread: UInt32 = section.load(CRASH_RUN_THREAD_OFFSET) ?? 0
    let time: Int64 = section.load(CRASH_RUN_REALTIME_OFFSET) ?? 0
    let watch = Int(length) <= CRASH_RUN_WATCH_SIZE ? section.text(CRASH_RUN_WATCH_OFFSET, Int(length)) : nil
    snapshot = Snapshot(
      ofRun: section.slice(CRASH_RUN_OF_RUN_OFFSET, 16).map { Array($0.buffer) } ?? [],
      time: time == 0 ? nil : Timestamp(rawValue: time),
      stoppedNanoseconds: section.load(CRASH_RUN_STOPPED_OFFSET) ?? 0,
      silentNanoseconds: section.load(CRASH_RUN_SILENT_OFFSET) ?? 0,
      samples: section.load(CRASH_RUN_SAMPLES_OFFSET) ?? 0, threadID: thread == 0 ? nil : thread, watch: watch ?? "")
  }

  private mutating func decodeEnd(_ section: RecordBytes) {
    let end: UInt32 = section.load(CRASH_RUN_END_OFFSET) ?? 0
    switch crash_record_end(rawValue: end) {
    case CRASH_END_NONE: processEnd = .none
    case CRASH_END_EXIT: processEnd = .exit(status: section.load(CRASH_RUN_EXIT_STATUS_OFFSET) ?? 0)
    case CRASH_END_QUICK_EXIT: processEnd = .quickExit
    case CRASH_END_SIGNAL:
      let number: Int32 = section.load(CRASH_RUN_END_SIGNAL_OFFSET) ?? 0
      let flags: UInt32 = section.load(CRASH_RUN_END_FLAGS_OFFSET) ?? 0
      var signal = SignalInfo(number: number, name: SignalNames.name(number))
      if flags & UInt32(CRASH_END_HAS_CODE) != 0, let code: Int32 = section.load(CRASH_RUN_END_CODE_OFFSET) {
        signal.code = code
        signal.codeName = SignalNames.codeName(signal: number, code: code)
      }
      if flags & UInt32(CRASH_END_HAS_SENDER) != 0 {
        signal.senderPID = section.load(CRASH_RUN_SENDER_PID_OFFSET)
        signal.senderUID = section.load(CRASH_RUN_SENDER_UID_OFFSET)
      }
      let time: Int64 = section.load(CRASH_RUN_END_REALTIME_OFFSET) ?? 0
      processEnd = .signal(signal, time == 0 ? nil : Timestamp(rawValue: time))
    default: processEnd = .unknown(end)
    }
  }

  private mutating func decodeMemoryGroups(_ section: RecordBytes) {
    guard section.load(CRASH_RUN_HAS_MEMORY_GROUPS_OFFSET, as: UInt32.self) == 1 else { return }
    machineKills = section.load(CRASH_RUN_MACHINE_OOM_KILLS_OFFSET)
    let count: UInt32 = section.load(CRASH_RUN_MEMORY_GROUP_COUNT_OFFSET) ?? 0
    for index in 0..<Int(min(count, CRASH_RECORD_MEMORY_GROUP_COUNT)) {
      guard
        let row = section.slice(
          CRASH_RUN_MEMORY_GROUPS_OFFSET + index * CRASH_MEMORY_GROUP_SIZE, CRASH_MEMORY_GROUP_SIZE),
        let inode: UInt64 = row.load(0), let length: UInt16 = row.load(CRASH_MEMORY_GROUP_PATH_LENGTH_OFFSET),
        Int(length) <= CRASH_MEMORY_GROUP_PATH_SIZE, let path = row.text(CRASH_MEMORY_GROUP_PATH_OFFSET, Int(length))
      else { continue }
      memoryGroups.append(
        MemoryGroup(
          path: path, inode: inode, version: row.load(CRASH_MEMORY_GROUP_VERSION_OFFSET) ?? 0,
          kills: row.load(CRASH_MEMORY_GROUP_OOM_KILLS_OFFSET) ?? 0))
    }
  }
}
