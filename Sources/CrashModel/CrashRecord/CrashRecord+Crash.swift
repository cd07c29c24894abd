private import CCrashFormat

extension CrashRecord {
  mutating func decodeImages(_ section: RecordBytes?, paths: RecordBytes?) {
    guard let section else { return }
    // Every path is stored once, so that all of them together are no longer than their section. Without this bound a
    // made-up table of images that share one long path would grow to thousands of times the file.
    var budget = paths?.count ?? 0
    var withoutPath = 0
    for row in section.elements(of: MemoryLayout<crash_record_image>.size) {
      guard let image: crash_record_image = row.load(0) else { break }
      let length = Int(image.path_length)
      var path = ""
      if length > 0 {
        if length <= budget, let offset = Int(exactly: image.path_offset), let text = paths?.text(offset, length) {
          path = text
          budget -= length
        } else {
          withoutPath += 1
        }
      }
      let idLength = min(Int(image.build_id_length), Int(CRASH_RECORD_BUILD_ID_MAX))
      let id = row.slice(CRASH_IMAGE_BUILD_ID_OFFSET, idLength).flatMap { BuildID(bytes: $0.buffer) }
      images.append(
        Image(
          path: path, buildID: id, address: Address(rawValue: image.address), size: image.size,
          firstVirtualAddress: image.address &- image.bias,
          isUnloaded: image.flags & UInt8(CRASH_IMAGE_UNLOADED) != 0))
    }
    if withoutPath > 0 { notes.append("\(withoutPath) images lost their paths.") }
  }

  mutating func decodeSignal(_ section: RecordBytes?) {
    guard let section else { return }
    guard let value: crash_record_signal = section.load(0) else {
      notes.append("The section signal is too short.")
      return
    }
    var info = SignalInfo(
      number: value.number, name: SignalNames.name(value.number), code: value.code,
      codeName: SignalNames.codeName(signal: value.number, code: value.code))
    if value.flags & UInt32(CRASH_SIGNAL_HAS_ADDRESS | CRASH_SIGNAL_HAS_SYSCALL) != 0 {
      info.address = Address(rawValue: value.address)
    }
    if value.flags & UInt32(CRASH_SIGNAL_HAS_SENDER) != 0 {
      info.senderPID = value.sender_pid
      info.senderUID = value.sender_uid
    }
    signal = info
    if value.realtime_ns != 0 { crashTime = Timestamp(rawValue: value.realtime_ns) }
    if crashThread == nil, value.thread != 0 { crashThread = value.thread }
  }

  mutating func decodeMessages(_ section: RecordBytes?) {
    guard let section else { return }
    for row in section.elements(of: CRASH_MESSAGE_SIZE).prefix(Int(CRASH_RECORD_MESSAGE_COUNT)) {
      let flags: UInt32 = row.load(CRASH_MESSAGE_FLAGS_OFFSET) ?? 0
      guard let kind: UInt32 = row.load(0), let length: UInt32 = row.load(CRASH_MESSAGE_LENGTH_OFFSET),
        length <= CRASH_RECORD_MESSAGE_MAX, let text = row.text(CRASH_MESSAGE_BYTES_OFFSET, Int(length))
      else {
        notes.append("A message is damaged: its length cannot be.")
        continue
      }
      guard !text.isEmpty else { continue }
      messages.append(
        Message(
          kind: {
            switch crash_record_message_kind(rawValue: kind) {
            case CRASH_MESSAGE_SWIFT_FATAL_ERROR: .swiftFatalError
            case CRASH_MESSAGE_ABORT: .abort
            case CRASH_MESSAGE_CXX_EXCEPTION_TYPE: .cxxExceptionType
            default: .unknown(kind)
            }
          }(), text: text, truncated: flags & UInt32(CRASH_MESSAGE_TRUNCATED) != 0))
    }
  }

  mutating func decodeThreads(_ section: RecordBytes?, frames: RecordBytes?, registers: RecordBytes?) {
    // No frame belongs to two threads, so that all threads together have no more than the section.
    var budget = (frames?.count ?? 0) / MemoryLayout<crash_record_frame>.size
    for row in section?.elements(of: MemoryLayout<crash_record_thread>.size).map({ $0 }) ?? [] {
      guard let value: crash_record_thread = row.load(0) else { break }
      var thread = ThreadInfo(
        id: value.id == 0 ? nil : value.id, crashed: value.flags & UInt32(CRASH_THREAD_CRASHED) != 0,
        depth: value.depth,
        status: {
          switch crash_record_thread_status(rawValue: value.status) {
          case CRASH_THREAD_CAPTURED: .captured
          case CRASH_THREAD_NO_ANSWER: .noAnswer
          case CRASH_THREAD_PARTIAL: .partial
          case CRASH_THREAD_OVER_CAP: .overCap
          default: nil
          }
        }())
      if let name = row.slice(CRASH_THREAD_NAME_OFFSET, CRASH_THREAD_NAME_SIZE) {
        let text = String(decoding: name.buffer.prefix { $0 != 0 }, as: UTF8.self)
        thread.name = text.isEmpty ? nil : text
      }
      if value.staying > 0 { thread.stayingFrames = Int(value.staying) }
      if value.registers != CRASH_RECORD_NO_REGISTERS {
        thread.registers = decodeRegisters(registers, index: Int(clamping: value.registers))
      }
      // 32 bits each, so that sums and differences fit.
      let top = Int(value.top_count)
      let bottom = Int(value.bottom_count)
      let wanted = top + bottom + Int(value.async_count)
      let decoded = decodeFrames(frames, first: Int(value.first_frame), count: min(wanted, budget))
      budget -= decoded.count
      if decoded.count < wanted {
        notes.append("Thread \(value.id) lost \(wanted - decoded.count) of its frames.")
        thread.status = .partial
      }
      thread.frames = decoded.prefix(top).map(Frame.captured)
      let (omitted, negative) = value.depth.subtractingReportingOverflow(UInt64(top + bottom))
      if omitted > 0, !negative, !thread.frames.isEmpty { thread.frames.append(.omitted(count: omitted)) }
      thread.frames += decoded.dropFirst(top).prefix(bottom).map(Frame.captured)
      let callers = decoded.dropFirst(top + bottom).map(Frame.captured)
      thread.frames.insert(
        contentsOf: callers, at: Self.index(ofFrame: UInt64(value.async_position), in: thread.frames))
      if value.flags & UInt32(CRASH_THREAD_DEPTH_CAPPED) != 0 {
        notes.append("The stack of thread \(value.id) is deeper than the walk went: \(value.depth) frames at least.")
      }
      threads.append(thread)
    }
  }

  /// Where the frame behind the first `position` ones of a stack is, or would be.
  private static func index(ofFrame position: UInt64, in frames: [Frame]) -> Int {
    var passed: UInt64 = 0
    for (index, frame) in frames.enumerated() {
      if passed >= position { return index }
      switch frame {
      case .omitted(let count): passed = passed.addingReportingOverflow(count).partialValue
      default: passed += 1
      }
    }
    return frames.count
  }

  /// The handler died before it sealed the thread that crashed. The registers were stored first, and their pc is the one
  /// frame that every crash has.
  mutating func placeCrashedThread(registers: RecordBytes?) {
    let values = decodeRegisters(registers, index: 0)
    guard !values.isEmpty else { return }
    var thread = ThreadInfo(id: crashThread, crashed: true, status: .partial, registers: values)
    if let pc = values.first(where: { $0.name == "rip" || $0.name == "pc" }) {
      thread.frames = [
        .captured(placed(CapturedFrame(kind: .programCounter, trust: .context, address: Address(rawValue: pc.value))))
      ]
    }
    threads = [thread]
  }

  mutating func decodeTask(_ section: RecordBytes?) {
    guard let section, section.count >= CRASH_TASK_SIZE, let id: UInt64 = section.load(0) else { return }
    func text(_ length: Int, _ bytes: Int, _ size: Int) -> String? {
      let count: UInt16 = section.load(length) ?? 0
      guard count > 0, Int(count) <= size else { return nil }
      return section.text(bytes, Int(count))
    }
    var task = TaskInfo(id: id)
    task.name = text(CRASH_TASK_NAME_LENGTH_OFFSET, CRASH_TASK_NAME_OFFSET, CRASH_TASK_NAME_SIZE)
    let count: UInt16 = section.load(CRASH_TASK_LOCAL_COUNT_OFFSET) ?? 0
    for index in 0..<min(Int(count), Int(CRASH_RECORD_TASK_LOCAL_COUNT)) {
      let row = CRASH_TASK_LOCALS_OFFSET + index * CRASH_TASK_LOCAL_SIZE
      if let name = text(row, row + CRASH_TASK_LOCAL_NAME_OFFSET, CRASH_TASK_LOCAL_NAME_SIZE),
        let value = text(
          row + CRASH_TASK_LOCAL_VALUE_LENGTH_OFFSET, row + CRASH_TASK_LOCAL_VALUE_OFFSET,
          CRASH_TASK_LOCAL_VALUE_SIZE)
      {
        task.locals.append(Tag(key: name, value: value))
      }
    }
    self.task = task
  }

  private func decodeRegisters(_ section: RecordBytes?, index: Int) -> [ThreadInfo.Register] {
    let size = CRASH_REGISTERS_SIZE
    let (offset, overflow) = index.multipliedReportingOverflow(by: size)
    guard let section, !overflow, let row = section.slice(offset, size), let count: UInt32 = row.load(0) else {
      return []
    }
    let values = CRASH_REGISTERS_VALUES_OFFSET
    return Machine.registerNames(machine).prefix(Int(min(count, CRASH_RECORD_REGISTER_MAX))).enumerated()
      .compactMap { index, name in
        row.load(values + 8 * index, as: UInt64.self).map { ThreadInfo.Register(name: name, value: $0) }
      }
  }

  private func decodeFrames(_ section: RecordBytes?, first: Int, count: Int) -> [CapturedFrame] {
    let size = MemoryLayout<crash_record_frame>.size
    guard let section, count > 0, first < section.count / size else { return [] }
    return (first..<min(section.count / size, first + count)).compactMap { index in
      section.load(index * size, as: crash_record_frame.self).map { value in
        var frame = CapturedFrame(
          kind: {
            switch crash_record_frame_kind(rawValue: UInt32(value.kind)) {
            case CRASH_FRAME_RETURN_ADDRESS: .returnAddress
            case CRASH_FRAME_ASYNC_RESUME: .asyncResume
            default: .programCounter
            }
          }(),
          trust: {
            switch crash_record_frame_trust(rawValue: UInt32(value.trust)) {
            case CRASH_TRUST_CONTEXT: .context
            case CRASH_TRUST_CFI: .cfi
            case CRASH_TRUST_FRAME_POINTER: .framePointer
            case CRASH_TRUST_SCAN: .scan
            case CRASH_TRUST_ASYNC: .async
            default: nil
            }
          }(), address: Address(rawValue: value.address))
        if images.indices.contains(Int(value.image)), images[Int(value.image)].contains(frame.lookupAddress) {
          frame.imageIndex = Int(value.image)
          frame.imageOffset = images[Int(value.image)].offset(of: frame.address)
        }
        return frame
      }
    }
  }

  /// A frame with its image looked up here. For the few frames that no handler placed.
  private func placed(_ frame: CapturedFrame) -> CapturedFrame {
    var frame = frame
    // From behind, as the handler does: the newest image counts where two were at one place one after the other.
    frame.imageIndex = images.lastIndex { $0.contains(frame.lookupAddress) }
    frame.imageOffset = frame.imageIndex.map { images[$0].offset(of: frame.address) }
    return frame
  }

  mutating func decodeNotes(_ section: RecordBytes?) {
    guard let section else { return }
    for row in section.elements(of: MemoryLayout<crash_record_note>.size).prefix(Int(CRASH_RECORD_NOTE_COUNT)) {
      guard let note: crash_record_note = row.load(0) else { break }
      switch crash_record_note_kind(rawValue: note.kind) {
      case CRASH_NOTE_STAGE_FAULT:
        notes.append(
          "The crash handler itself met \(Self.signalName(note.value)) at \(Address(rawValue: note.address)) "
            + "while it was \(Self.stageName(note.stage)); it went on behind that.")
      case CRASH_NOTE_SECOND_CRASH:
        notes.append(
          "Thread \(note.value) crashed too, with \(Self.signalName(UInt64(note.stage))) at "
            + "\(Address(rawValue: note.address)).")
      case CRASH_NOTE_HOST_HANDLER:
        notes.append(
          "The program's own handler for \(Self.signalName(UInt64(note.stage))) at \(Address(rawValue: note.address)) got "
            + "the signal after this report was taken; it may have recovered from it.")
      case CRASH_NOTE_HANDLER_REPLACED:
        notes.append(
          "Somebody replaced the handler for \(Self.signalName(UInt64(note.stage))) after the start, by "
            + "\(Address(rawValue: note.address)): crashes by that signal are only seen where it calls ours.")
      case CRASH_NOTE_THREADS_OVER_CAP: notes.append("\(note.value) further threads found no room in the record.")
      case CRASH_NOTE_IMAGES_FULL: notes.append("\(note.value) images found no room in the record.")
      case CRASH_NOTE_WALK_ENDED:
        if let reason = Self.walkEnd(note.stage) {
          notes.append("The walk of thread \(note.value)'s stack ended early: \(reason).")
        }
      default: notes.append("The crash handler left a note of an unknown kind: \(note.kind).")
      }
    }
  }

  private static func signalName(_ number: UInt64) -> String {
    SignalNames.name(Int32(clamping: number))
  }

  private static func stageName(_ stage: UInt32) -> String {
    switch stage {
    case 1: "storing the signal and the registers"
    case 2: "walking the stack"
    case 3: "completing the images"
    case 4: "sealing the thread that crashed"
    case 5: "asking for the time and the thread"
    case 6: "copying the messages"
    case 7: "describing the task"
    case 8: "capturing the other threads"
    default: "in stage \(stage)"
    }
  }

  /// nil for a walk that came to the outermost frame.
  private static func walkEnd(_ end: UInt32) -> String? {
    switch crash_record_walk_end(rawValue: end) {
    case CRASH_WALK_OUTERMOST: nil
    case CRASH_WALK_NO_CALLER: "no unwind data, no frame pointer and nothing that looks like a return address"
    case CRASH_WALK_UNREADABLE: "the stack could not be read"
    case CRASH_WALK_NOT_ADVANCING: "the caller's stack pointer did not grow"
    case CRASH_WALK_LIMIT: "the limit of frames"
    default: "reason \(end)"
    }
  }
}
