private import CCrashFormat
private import CrashModel

/// Makes the bytes of a record as the crash path would, for tests that need one without a crash.
public struct RecordForge {
  public var runID: [UInt8]
  public var entropy: [UInt8]
  public var machine: UInt32 = 62
  public var runState: UInt32 = 1
  /// 0 none, 1 capturing, 2 complete.
  public var crashState: UInt32 = 2
  /// 0 a run, 1 a snapshot, 2 a hang.
  public var kind: UInt32 = 0
  /// What does not answer.
  public var watch = "main queue"
  public var crashTime: Int64 = 1_790_000_000_123_456_789
  public var signal: Int32 = 11
  public var code: Int32 = 1
  public var signalFlags: UInt32 = 1
  public var faultAddress: UInt64 = 0x10
  public var service = "orderd"
  public var release = "1.4.0"
  public var environment = "production"
  public var user = "usr_7c1e"
  public var operation = "POST /checkout"
  public var tags: [(String, String)] = [("region", "eu-west")]
  public var breadcrumbs = ["started", "cache miss"]
  public var messages: [(kind: UInt32, text: String)] = []
  public var notes: [(kind: UInt32, stage: UInt32, value: UInt64, address: UInt64)] = []
  public var executable = "/opt/orderd/bin/orderd"
  public var images: [ForgedImage] = []
  /// Top frames, innermost first.
  public var frames: [UInt64] = []
  public var bottomFrames: [UInt64] = []
  public var depth: UInt64?
  public var threadName = "orderd"
  /// Frames of threads that did not crash, innermost first.
  public var otherThreads: [[UInt64]] = []
  /// Task id and name.
  public var task: (id: UInt64, name: String)?

  public struct ForgedImage {
    public var path: String
    public var address: UInt64
    public var size: UInt64
    public var bias: UInt64
    public var buildID: [UInt8]

    public init(path: String, address: UInt64, size: UInt64, bias: UInt64? = nil, buildID: [UInt8]) {
      self.path = path
      self.address = address
      self.size = size
      self.bias = bias ?? address
      self.buildID = buildID
    }
  }

  /// - Parameter number: makes ids that differ from those of other numbers.
  public init(number: UInt64 = 1) {
    var digest = [UInt8](repeating: 0, count: 32)
    withUnsafeBytes(of: number) { crash_sha256($0.baseAddress, $0.count, &digest) }
    runID = UUIDBytes.version7(milliseconds: 1_790_000_000_000 + Int64(number), random: Array(digest[..<16]))
    entropy = Array(digest[16...])
  }

  /// The file name that the crash path gives the record.
  public var fileName: String { Hex.string(runID) + ".crashrecord" }

  public func bytes() -> [UInt8] {
    var sections: [(type: UInt32, live: Bool, bytes: [UInt8])] = [
      (1, false, processBytes()), (2, true, scopeBytes()), (3, true, breadcrumbBytes()),
    ]
    let (images, paths) = imageBytes()
    sections += [(4, false, images), (5, false, paths)]
    if crashState != 0 {
      sections += [
        (6, false, signalBytes()), (7, false, threadBytes()), (8, false, frameBytes([frames + bottomFrames])),
        (9, false, registerBytes()),
        (10, false, messageBytes()), (11, false, noteBytes()), (12, false, taskBytes()),
        (13, false, otherThreadBytes()), (14, false, frameBytes(otherThreads)), (15, false, []),
      ]
    }
    sections.append((16, true, runBytes()))
    var header = [UInt8](repeating: 0, count: 4096)
    var body: [UInt8] = []
    for (index, section) in sections.enumerated() {
      let offset = 4096 + body.count
      let capacity = max(1, (section.bytes.count + 4095) / 4096) * 4096
      body += section.bytes + [UInt8](repeating: 0, count: capacity - section.bytes.count)
      let checksum =
        section.live ? 0 : section.bytes.withUnsafeBytes { crash_record_checksum(0, $0.baseAddress, $0.count) }
      header.put(
        crash_record_section(
          type: section.type, flags: section.live ? 1 : 0, offset: UInt64(offset), capacity: UInt64(capacity),
          length: UInt64(section.bytes.count), commit: CRASH_SECTION_COMMITTED, checksum: checksum),
        at: CRASH_HEADER_SECTIONS_OFFSET + 40 * index)
    }
    header.put(Array("crashrec".utf8), at: 0)
    header.put(UInt32(1), at: 8)
    header.put(UInt32(4096), at: 12)
    header.put(UInt64(4096 + body.count), at: 16)
    header.put(machine, at: 24)
    header.put(UInt32(sections.count), at: 28)
    header.put(runID, at: 32)
    header.put(entropy, at: 48)
    header.put(runState, at: CRASH_HEADER_RUN_STATE_OFFSET)
    header.put(crashState, at: CRASH_HEADER_CRASH_STATE_OFFSET)
    if crashState != 0 { header.put(UInt32(4242), at: CRASH_HEADER_CRASH_THREAD_OFFSET) }
    Self.seal(&header)
    return header + body
  }

  /// Makes the checksum of the fixed part hold again after a change.
  public static func seal(_ bytes: inout [UInt8]) {
    let checksum = bytes.withUnsafeBytes { crash_record_checksum(0, $0.baseAddress, 64) }
    bytes.put(checksum, at: 64)
  }

  /// Makes a section's checksum hold again after a change, as an attacker would.
  public static func sealSection(_ index: Int, in bytes: inout [UInt8]) {
    let row = CRASH_HEADER_SECTIONS_OFFSET + 40 * index
    let offset = Int(bytes.get(UInt64.self, at: row + 8))
    let length = Int(bytes.get(UInt64.self, at: row + 24))
    let checksum = bytes.withUnsafeBytes { crash_record_checksum(0, $0.baseAddress.map { $0 + offset }, length) }
    bytes.put(checksum, at: row + 36)
  }

  private func processBytes() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: CRASH_PROCESS_SIZE)
    bytes.put(Int32(4242), at: CRASH_PROCESS_PID_OFFSET)
    bytes.put(UInt64(98_765), at: CRASH_PROCESS_START_TICKS_OFFSET)
    bytes.put(crashTime - 60_000_000_000, at: CRASH_PROCESS_START_REALTIME_OFFSET)
    for (text, length, offset) in [
      (executable, CRASH_PROCESS_EXECUTABLE_LENGTH_OFFSET, CRASH_PROCESS_EXECUTABLE_OFFSET),
      ("host-1", CRASH_PROCESS_HOST_LENGTH_OFFSET, CRASH_PROCESS_HOST_OFFSET),
      ("Debian GNU/Linux 12 (bookworm)", CRASH_PROCESS_SYSTEM_LENGTH_OFFSET, CRASH_PROCESS_SYSTEM_OFFSET),
    ] {
      bytes.put(UInt16(text.utf8.count), at: length)
      bytes.put(Array(text.utf8), at: offset)
    }
    return bytes
  }

  private func runBytes() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: CRASH_RUN_SIZE)
    bytes.put(kind, at: 0)
    bytes.put(runID, at: CRASH_RUN_OF_RUN_OFFSET)
    bytes.put(crashTime, at: CRASH_RUN_REALTIME_OFFSET)
    bytes.put(UInt32(5), at: CRASH_RUN_SAMPLES_OFFSET)
    bytes.put(UInt16(watch.utf8.count), at: CRASH_RUN_WATCH_LENGTH_OFFSET)
    bytes.put(Array(watch.utf8), at: CRASH_RUN_WATCH_OFFSET)
    return bytes
  }

  private func scopeBytes() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: CRASH_SCOPE_SIZE)
    for (text, offset) in [
      (service, CRASH_SCOPE_SERVICE_OFFSET), (release, CRASH_SCOPE_RELEASE_OFFSET),
      (environment, CRASH_SCOPE_ENVIRONMENT_OFFSET), (user, CRASH_SCOPE_USER_OFFSET),
      (operation, CRASH_SCOPE_OPERATION_OFFSET),
    ] {
      bytes.put(UInt32(2), at: offset)
      bytes.put(UInt16(text.utf8.count), at: offset + CRASH_TEXT_LENGTH_OFFSET)
      bytes.put(Array(text.utf8), at: offset + CRASH_TEXT_BYTES_OFFSET)
    }
    for (index, tag) in tags.enumerated() {
      let offset = CRASH_SCOPE_TAGS_OFFSET + index * CRASH_TAG_SIZE
      bytes.put(UInt32(2), at: offset)
      bytes.put(UInt16(tag.0.utf8.count), at: offset + CRASH_TAG_KEY_LENGTH_OFFSET)
      bytes.put(UInt16(tag.1.utf8.count), at: offset + CRASH_TAG_VALUE_LENGTH_OFFSET)
      bytes.put(Array(tag.0.utf8), at: offset + CRASH_TAG_KEY_OFFSET)
      bytes.put(Array(tag.1.utf8), at: offset + CRASH_TAG_VALUE_OFFSET)
    }
    return bytes
  }

  private func breadcrumbBytes() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: CRASH_BREADCRUMBS_SIZE)
    bytes.put(UInt64(breadcrumbs.count), at: 0)
    for (index, text) in breadcrumbs.enumerated() {
      let offset = CRASH_BREADCRUMBS_RING_OFFSET + index % 128 * CRASH_BREADCRUMB_SIZE
      bytes.put(UInt64(2 * (index + 1)), at: offset)
      // Every other one goes back in time: order comes from the number.
      bytes.put(crashTime - Int64(index % 2) * 5_000_000_000, at: offset + CRASH_BREADCRUMB_REALTIME_OFFSET)
      bytes.put(UInt16(2), at: offset + CRASH_BREADCRUMB_CATEGORY_LENGTH_OFFSET)
      bytes.put(Array("db".utf8), at: offset + CRASH_BREADCRUMB_CATEGORY_OFFSET)
      bytes.put(UInt16(text.utf8.count), at: offset + CRASH_BREADCRUMB_MESSAGE_LENGTH_OFFSET)
      bytes.put(Array(text.utf8), at: offset + CRASH_BREADCRUMB_MESSAGE_OFFSET)
    }
    return bytes
  }

  private func imageBytes() -> (rows: [UInt8], paths: [UInt8]) {
    var rows: [UInt8] = []
    var paths: [UInt8] = []
    for image in images {
      var value = crash_record_image()
      value.address = image.address
      value.size = image.size
      value.bias = image.bias
      value.path_offset = UInt32(paths.count)
      value.path_length = UInt16(image.path.utf8.count)
      value.build_id_length = UInt8(image.buildID.count)
      withUnsafeMutableBytes(of: &value.build_id) { $0.copyBytes(from: image.buildID.prefix(32)) }
      rows += withUnsafeBytes(of: value) { Array($0) }
      paths += Array(image.path.utf8)
    }
    return (rows, paths)
  }

  private func signalBytes() -> [UInt8] {
    var value = crash_record_signal()
    value.number = signal
    value.code = code
    value.flags = signalFlags
    value.address = faultAddress
    value.sender_pid = 77
    value.realtime_ns = crashTime
    value.thread = 4242
    return withUnsafeBytes(of: value) { Array($0) }
  }

  private func threadBytes() -> [UInt8] {
    var value = crash_record_thread()
    value.id = 4242
    value.flags = 1
    value.depth = depth ?? UInt64(frames.count + bottomFrames.count)
    value.top_count = UInt32(frames.count)
    value.bottom_count = UInt32(bottomFrames.count)
    withUnsafeMutableBytes(of: &value.name) { $0.copyBytes(from: threadName.utf8.prefix(15)) }
    return withUnsafeBytes(of: value) { Array($0) }
  }

  private func otherThreadBytes() -> [UInt8] {
    var first = 0
    return otherThreads.enumerated().flatMap { index, frames in
      var value = crash_record_thread()
      value.id = UInt32(5000 + index)
      value.registers = CRASH_RECORD_NO_REGISTERS
      value.depth = UInt64(frames.count)
      value.first_frame = UInt32(first)
      value.top_count = UInt32(frames.count)
      first += frames.count
      return withUnsafeBytes(of: value) { Array($0) }
    }
  }

  private func taskBytes() -> [UInt8] {
    guard let task else { return [] }
    var bytes = [UInt8](repeating: 0, count: CRASH_TASK_SIZE)
    bytes.put(task.id, at: 0)
    bytes.put(UInt16(task.name.utf8.count), at: CRASH_TASK_NAME_LENGTH_OFFSET)
    bytes.put(Array(task.name.utf8), at: CRASH_TASK_NAME_OFFSET)
    return bytes
  }

  private func frameBytes(_ stacks: [[UInt64]]) -> [UInt8] {
    stacks.flatMap { frameBytes(of: $0) }
  }

  private func frameBytes(of stack: [UInt64]) -> [UInt8] {
    var bytes: [UInt8] = []
    for (index, address) in stack.enumerated() {
      var value = crash_record_frame()
      value.address = address
      value.kind = index == 0 ? 0 : 1
      value.trust = index == 0 ? 0 : 1
      let lookup = address &- (index == 0 ? 0 : 1)
      value.image = UInt16(images.lastIndex { lookup &- $0.address < $0.size } ?? 0xffff)
      bytes += withUnsafeBytes(of: value) { Array($0) }
    }
    return bytes
  }

  private func registerBytes() -> [UInt8] {
    var value = crash_record_registers()
    value.count = machine == 183 ? 34 : 18
    withUnsafeMutableBytes(of: &value.values) { buffer in
      for index in 0..<34 { buffer.storeBytes(of: UInt64(0x1000 + index), toByteOffset: 8 * index, as: UInt64.self) }
      // The program counter.
      buffer.storeBytes(of: frames.first ?? 0, toByteOffset: 8 * (machine == 183 ? 32 : 16), as: UInt64.self)
    }
    return withUnsafeBytes(of: value) { Array($0) }
  }

  private func messageBytes() -> [UInt8] {
    messages.flatMap { message in
      var bytes = [UInt8](repeating: 0, count: CRASH_MESSAGE_SIZE)
      bytes.put(message.kind, at: 0)
      bytes.put(UInt32(message.text.utf8.count), at: CRASH_MESSAGE_LENGTH_OFFSET)
      bytes.put(Array(message.text.utf8), at: CRASH_MESSAGE_BYTES_OFFSET)
      return bytes
    }
  }

  private func noteBytes() -> [UInt8] {
    notes.flatMap { note in
      withUnsafeBytes(
        of: crash_record_note(kind: note.kind, stage: note.stage, value: note.value, address: note.address)
      ) { Array($0) }
    }
  }
}

extension [UInt8] {
  /// Stores a plain value at an offset.
  public mutating func put<Value: BitwiseCopyable>(_ value: Value, at offset: Int) {
    withUnsafeMutableBytes { $0.storeBytes(of: value, toByteOffset: offset, as: Value.self) }
  }

  /// Stores bytes at an offset.
  public mutating func put(_ bytes: [UInt8], at offset: Int) {
    replaceSubrange(offset..<offset + bytes.count, with: bytes)
  }

  /// A plain value at an offset.
  public func get<Value: BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
    withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
  }
}

enum UUIDBytes {
  static func version7(milliseconds: Int64, random: [UInt8]) -> [UInt8] {
    var bytes = random
    for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: milliseconds >> Int64(40 - 8 * index)) }
    bytes[6] = bytes[6] & 0x0f | 0x70
    bytes[8] = bytes[8] & 0x3f | 0x80
    return bytes
  }
}
