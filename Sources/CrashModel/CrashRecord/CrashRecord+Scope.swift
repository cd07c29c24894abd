private import CCrashFormat

extension CrashRecord {
  mutating func decodeProcess(_ section: RecordBytes?) {
    var info = ProcessInfo(architecture: Machine.name(machine))
    defer { process = info }
    guard let section, section.count >= CRASH_PROCESS_SIZE else {
      if section != nil { notes.append("The section process is too short.") }
      return
    }
    func text(_ length: Int, _ offset: Int, _ size: Int) -> String? {
      guard let length: UInt16 = section.load(length), length > 0, Int(length) <= size else { return nil }
      return section.text(offset, Int(length))
    }
    info.id = section.load(CRASH_PROCESS_PID_OFFSET)
    info.startTime = section.load(CRASH_PROCESS_START_REALTIME_OFFSET, as: Int64.self)
      .map(Timestamp.init(rawValue:))
    info.executable = text(
      CRASH_PROCESS_EXECUTABLE_LENGTH_OFFSET, CRASH_PROCESS_EXECUTABLE_OFFSET,
      CRASH_PROCESS_EXECUTABLE_SIZE)
    info.host = text(
      CRASH_PROCESS_HOST_LENGTH_OFFSET, CRASH_PROCESS_HOST_OFFSET,
      CRASH_PROCESS_HOST_SIZE)
    info.system = text(
      CRASH_PROCESS_SYSTEM_LENGTH_OFFSET, CRASH_PROCESS_SYSTEM_OFFSET,
      CRASH_PROCESS_SYSTEM_SIZE)
    startTicks = section.load(CRASH_PROCESS_START_TICKS_OFFSET)
    bootID = section.slice(CRASH_PROCESS_BOOT_ID_OFFSET, 16).map { Array($0.buffer) }
  }

  mutating func decodeScope(_ section: RecordBytes?) {
    guard let section else { return }
    guard section.count >= CRASH_SCOPE_SIZE else {
      notes.append("The section scope is too short.")
      return
    }
    service = slotText(section, CRASH_SCOPE_SERVICE_OFFSET, size: 128, name: "service")
    release = slotText(section, CRASH_SCOPE_RELEASE_OFFSET, size: 128, name: "release")
    environment = slotText(section, CRASH_SCOPE_ENVIRONMENT_OFFSET, size: 64, name: "environment")
    userID = slotText(section, CRASH_SCOPE_USER_OFFSET, size: 128, name: "user")
    operation = slotText(section, CRASH_SCOPE_OPERATION_OFFSET, size: 256, name: "operation")

    let size = CRASH_TAG_SIZE
    guard let slots = section.slice(CRASH_SCOPE_TAGS_OFFSET, Int(CRASH_RECORD_TAG_COUNT) * size)
    else { return }
    var torn = 0
    for slot in slots.elements(of: size) {
      let sequence: UInt32 = slot.load(0) ?? 0
      let keyLength: UInt16 = slot.load(CRASH_TAG_KEY_LENGTH_OFFSET) ?? 0
      let valueLength: UInt16 = slot.load(CRASH_TAG_VALUE_LENGTH_OFFSET) ?? 0
      guard sequence.isMultiple(of: 2), Int(keyLength) <= CRASH_TAG_KEY_SIZE,
        Int(valueLength) <= CRASH_TAG_VALUE_SIZE
      else {
        torn += 1
        continue
      }
      guard keyLength > 0, let key = slot.text(CRASH_TAG_KEY_OFFSET, Int(keyLength)),
        let value = slot.text(CRASH_TAG_VALUE_OFFSET, Int(valueLength))
      else { continue }
      tags.append(Tag(key: key, value: value))
    }
    if torn > 0 { notes.append("\(torn) tags were being written at the end, or are damaged; they were left out.") }
  }

  /// A text that guards itself by a sequence counter; nil where it is empty or torn.
  private mutating func slotText(_ section: RecordBytes, _ offset: Int, size: Int, name: String) -> String? {
    guard let sequence: UInt32 = section.load(offset + CRASH_TEXT_SEQUENCE_OFFSET),
      let length: UInt16 = section.load(offset + CRASH_TEXT_LENGTH_OFFSET)
    else { return nil }
    guard sequence.isMultiple(of: 2), Int(length) <= size else {
      notes.append("The \(name) was being written at the end, or is damaged; it was left out.")
      return nil
    }
    return length == 0 ? nil : section.text(offset + CRASH_TEXT_BYTES_OFFSET, Int(length))
  }

  mutating func decodeBreadcrumbs(_ section: RecordBytes?) {
    guard let section else { return }
    let size = CRASH_BREADCRUMB_SIZE
    let slotCount = UInt64(CRASH_RECORD_BREADCRUMB_COUNT)
    guard section.count >= CRASH_BREADCRUMBS_SIZE,
      let ring = section.slice(CRASH_BREADCRUMBS_RING_OFFSET, Int(slotCount) * size)
    else {
      notes.append("The section breadcrumbs is too short.")
      return
    }
    var torn = 0
    var numbered: [(number: UInt64, breadcrumb: Breadcrumb)] = []
    for (index, slot) in ring.elements(of: size).enumerated() {
      let sequence: UInt64 = slot.load(0) ?? 0
      guard sequence != 0 else { continue }
      let number = sequence / 2
      let categoryLength: UInt16 = slot.load(CRASH_BREADCRUMB_CATEGORY_LENGTH_OFFSET) ?? 0
      let messageLength: UInt16 = slot.load(CRASH_BREADCRUMB_MESSAGE_LENGTH_OFFSET) ?? 0
      guard sequence.isMultiple(of: 2), (number &- 1) % slotCount == UInt64(index),
        Int(categoryLength) <= CRASH_BREADCRUMB_CATEGORY_SIZE,
        Int(messageLength) <= CRASH_BREADCRUMB_MESSAGE_SIZE,
        let time: Int64 = slot.load(CRASH_BREADCRUMB_REALTIME_OFFSET),
        let category = slot.text(CRASH_BREADCRUMB_CATEGORY_OFFSET, Int(categoryLength)),
        let message = slot.text(CRASH_BREADCRUMB_MESSAGE_OFFSET, Int(messageLength))
      else {
        torn += 1
        continue
      }
      numbered.append(
        (
          number,
          Breadcrumb(
            timestamp: Timestamp(rawValue: time), category: category.isEmpty ? nil : category, message: message)
        ))
    }
    // By number, not by time: the clock may have been set back meanwhile.
    breadcrumbs = numbered.sorted { $0.number < $1.number }.map(\.breadcrumb)
    if torn > 0 {
      notes.append("\(torn) breadcrumbs were being written at the end, or are damaged; they were left out.")
    }
  }
}
