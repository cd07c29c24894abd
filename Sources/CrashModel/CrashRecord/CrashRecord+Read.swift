private import CCrashFormat

extension CrashRecord {
  /// Decodes a record.
  ///
  /// Takes any bytes and never traps. Memory is bounded by the size of the input. Damage inside becomes `notes`.
  ///
  /// ```swift
  /// let record = try CrashRecord.read(bytes: mappedFile)
  /// if record.hasCrash { print(record.report().type ?? "unknown signal") }
  /// ```
  ///
  /// - Throws: `RecordError` where the header cannot be trusted.
  public static func read(bytes: UnsafeRawBufferPointer) throws(RecordError) -> CrashRecord {
    let header = try Header(RecordBytes(bytes))
    return CrashRecord(header: header)
  }

  /// Decodes a record that was read into an array.
  public static func read(bytes: [UInt8]) throws(RecordError) -> CrashRecord {
    // `withUnsafeBytes` throws `any Error`, whatever its closure throws.
    let result: Result<CrashRecord, RecordError> = bytes.withUnsafeBytes { buffer in
      do throws(RecordError) { return .success(try read(bytes: buffer)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  /// Whether bytes begin like a record of any version: enough to tell the format, not to trust it.
  public static func matches(prefix bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: magic.utf8) }

  /// The part of the header that is written once.
  private struct Header {
    let file: RecordBytes
    let declaredSize: Int
    let sectionCount: Int

    init(_ file: RecordBytes) throws(RecordError) {
      guard file.count > 0 else { throw .empty }
      let magic = Array(CrashRecord.magic.utf8)
      guard file.buffer.prefix(magic.count).elementsEqual(magic.prefix(file.count)) else { throw .notARecord }
      // The version comes before everything else, the checksum included: another one may have another header.
      if let version: UInt32 = file.load(CRASH_HEADER_VERSION_OFFSET), version != CRASH_RECORD_VERSION {
        throw .unsupportedVersion(version)
      }
      guard let page = file.slice(0, CrashRecord.headerSize) else { throw .headerCut(length: file.count) }
      guard file.count <= CrashRecord.maximumFileSize else { throw .tooLarge(length: file.count) }
      let fixed = CRASH_HEADER_FIXED_CHECKSUM_OFFSET
      guard let checksum: UInt32 = page.load(fixed),
        checksum == crash_record_checksum(0, page.buffer.baseAddress, fixed)
      else { throw .headerDamaged }

      let headerSize: UInt32 = page.load(CRASH_HEADER_HEADER_SIZE_OFFSET) ?? 0
      guard headerSize == CRASH_RECORD_HEADER_SIZE else {
        throw .headerInvalid(field: "header_size", value: UInt64(headerSize))
      }
      let size: UInt64 = page.load(CRASH_HEADER_FILE_SIZE_OFFSET) ?? 0
      guard let declaredSize = Int(exactly: size), declaredSize <= CrashRecord.maximumFileSize,
        declaredSize >= CrashRecord.headerSize
      else { throw .headerInvalid(field: "file_size", value: size) }
      let sections: UInt32 = page.load(CRASH_HEADER_SECTION_COUNT_OFFSET) ?? 0
      guard sections <= CRASH_RECORD_MAX_SECTIONS else {
        throw .headerInvalid(field: "section_count", value: UInt64(sections))
      }
      self.declaredSize = declaredSize
      self.sectionCount = Int(sections)
      // What somebody appended is none of the record's.
      self.file = file.slice(0, declaredSize) ?? file
    }
  }

  private init(header: Header) {
    let file = header.file
    func word(_ offset: Int) -> UInt32 { file.load(offset) ?? 0 }
    runID = Array((file.slice(CRASH_HEADER_RUN_ID_OFFSET, 16) ?? file).buffer.prefix(16))
    reportEntropy = Array((file.slice(CRASH_HEADER_REPORT_ENTROPY_OFFSET, 16) ?? file).buffer.prefix(16))
    machine = word(CRASH_HEADER_ARCHITECTURE_OFFSET)
    let end = RunEnd(header: file)
    runState = end.runState
    crashState = end.crashState
    crashThread = end.crashThread
    processEnd = .none
    memoryGroups = []
    kind = .run
    tags = []
    breadcrumbs = []
    threads = []
    images = []
    messages = []
    notes = []
    isIntact = false
    if file.count < header.declaredSize {
      notes.append("The record was cut: \(file.count) of \(header.declaredSize) bytes are there.")
    }
    switch crashState {
    case .capturing: notes.append("The crash handler did not come to its end; what it had finished is here.")
    case .unknown(let value): notes.append("The record's crash state is damaged: \(value).")
    case .none, .complete: break
    }

    var sections = SectionTable(file: file, count: header.sectionCount, crashed: false)
    kind = Self.kind(in: sections[CRASH_SECTION_RUN.rawValue])
    // A crash has sections that other records need not have: now their absence is damage.
    if hasCrash { sections = SectionTable(file: file, count: header.sectionCount, crashed: true) }
    notes += sections.notes
    decodeRun(sections[CRASH_SECTION_RUN.rawValue])
    decodeProcess(sections[CRASH_SECTION_PROCESS.rawValue])
    decodeScope(sections[CRASH_SECTION_SCOPE.rawValue])
    decodeBreadcrumbs(sections[CRASH_SECTION_BREADCRUMBS.rawValue])
    decodeImages(sections[CRASH_SECTION_IMAGES.rawValue], paths: sections[CRASH_SECTION_PATHS.rawValue])
    // Everything up to here is written while the program lives: a torn slot is damage. What follows says of itself how
    // complete it is.
    if crashState != .none {
      decodeSignal(sections[CRASH_SECTION_SIGNAL.rawValue])
      decodeMessages(sections[CRASH_SECTION_MESSAGES.rawValue])
      decodeTask(sections[CRASH_SECTION_TASK.rawValue])
      decodeThreads(
        sections[CRASH_SECTION_THREADS.rawValue], frames: sections[CRASH_SECTION_FRAMES.rawValue],
        registers: sections[CRASH_SECTION_REGISTERS.rawValue])
      if hasCrash, threads.isEmpty { placeCrashedThread(registers: sections[CRASH_SECTION_REGISTERS.rawValue]) }
      decodeThreads(
        sections[CRASH_SECTION_OTHER_THREADS.rawValue], frames: sections[CRASH_SECTION_OTHER_FRAMES.rawValue],
        registers: sections[CRASH_SECTION_OTHER_REGISTERS.rawValue])
    }
    isIntact = notes.isEmpty
    if crashState != .none { decodeNotes(sections[CRASH_SECTION_NOTES.rawValue]) }
  }

  /// How a run stood when its record was last written to: a few words of the header, read without touching anything else.
  package struct RunEnd: Hashable, Sendable {
    package let runState: RunState
    package let crashState: CrashState
    /// Kernel id of the thread whose handler wrote the record.
    package let crashThread: UInt32?

    /// - Returns: nil where the bytes do not begin with a header that can be trusted.
    package init?(bytes: [UInt8]) {
      let end = bytes.withUnsafeBytes { buffer in
        (try? Header(RecordBytes(buffer))).map { RunEnd(header: $0.file) }
      }
      guard let end else { return nil }
      self = end
    }

    fileprivate init(header file: RecordBytes) {
      func word(_ offset: Int) -> UInt32 { file.load(offset) ?? 0 }
      runState =
        switch crash_record_run_state(rawValue: word(CRASH_HEADER_RUN_STATE_OFFSET)) {
        case CRASH_RUN_STARTING: .starting
        case CRASH_RUN_ALIVE: .alive
        case CRASH_RUN_EXITED: .exited
        case CRASH_RUN_STOPPED: .stopped
        case let other: .unknown(other.rawValue)
        }
      crashState =
        switch crash_record_crash_state(rawValue: word(CRASH_HEADER_CRASH_STATE_OFFSET)) {
        case CRASH_STATE_NONE: .none
        case CRASH_STATE_CAPTURING: .capturing
        case CRASH_STATE_COMPLETE: .complete
        case let other: .unknown(other.rawValue)
        }
      let thread = word(CRASH_HEADER_CRASH_THREAD_OFFSET)
      crashThread = thread == 0 ? nil : thread
    }
  }
}
