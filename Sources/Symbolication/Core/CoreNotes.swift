internal import CLibdw
internal import CrashModel

/// What the kernel writes about a process into its core, besides its memory (`fs/binfmt_elf.c`).
struct CoreNotes {
  struct Thread {
    var id: UInt32
    /// The signal that the thread was about to take.
    var signal: Int32
    /// In the kernel's order (`user_regs_struct`).
    var registers: [UInt64]
  }

  struct MappedFile {
    var addresses: AddressRange
    /// Of the mapping's first byte in the file.
    var offset: UInt64
    var path: String
  }

  /// The one that ended the process first.
  private(set) var threads: [Thread] = []
  private(set) var signal: SignalInfo?
  private(set) var processID: Int32?
  /// First 15 bytes of the name of the executable.
  private(set) var command: String?
  private(set) var files: [MappedFile] = []
  /// `AT_…` values that the kernel gave the process at its start.
  private(set) var auxiliary: [UInt64: UInt64] = [:]

  /// A hundred thousand: as many as a machine's default limit allows.
  private static let maximumThreads = 100_000

  init(_ notes: [UnsafeRawBufferPointer], machine: CoreMachine) {
    for bytes in notes {
      var cursor = ByteCursor(bytes)
      while !cursor.isAtEnd {
        let nameSize = cursor.u32()
        let size = cursor.u32()
        let type = cursor.u32()
        let nameOffset = cursor.offset
        // Both are padded to four bytes, whatever the segment's alignment says.
        cursor.skip((UInt64(nameSize) + 3) & ~3)
        let offset = cursor.offset
        cursor.skip(UInt64(size))
        guard !cursor.failed else { break }
        let name = bytes[nameOffset..<nameOffset + Int(nameSize)].prefix { $0 != 0 }
        let contents = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Int(size)])
        if name.elementsEqual("CORE".utf8) || name.elementsEqual("LINUX".utf8) {
          read(type, contents, machine: machine)
        }
        cursor.skip(min(UInt64(3 & (4 - size & 3)), UInt64(cursor.end - cursor.offset)))
      }
    }
  }

  private mutating func read(_ type: UInt32, _ bytes: UnsafeRawBufferPointer, machine: CoreMachine) {
    switch Int(type) {
    case Int(NT_PRSTATUS): readStatus(bytes, machine: machine)
    case Int(NT_PRPSINFO): readProcess(bytes)
    case Int(NT_AUXV): readAuxiliary(bytes)
    case 0x5349_4749: readSignal(bytes)  // NT_SIGINFO, "SIGI"
    case 0x4649_4c45: readFiles(bytes)  // NT_FILE, "FILE"
    default: break
    }
  }

  /// `struct elf_prstatus`: the same on both machines up to the registers.
  private mutating func readStatus(_ bytes: UnsafeRawBufferPointer, machine: CoreMachine) {
    guard threads.count < Self.maximumThreads else { return }
    var cursor = ByteCursor(bytes, at: 12)
    let signal = Int32(cursor.u16())
    var identity = ByteCursor(bytes, at: 32)
    let id = identity.u32()
    var registers = ByteCursor(bytes, at: 112)
    let values = (0..<machine.registerCount).map { _ in registers.u64() }
    guard !registers.failed, !identity.failed else { return }
    threads.append(Thread(id: id, signal: signal, registers: values))
  }

  /// `struct elf_prpsinfo`.
  private mutating func readProcess(_ bytes: UnsafeRawBufferPointer) {
    var cursor = ByteCursor(bytes, at: 24)
    let id = cursor.u32()
    guard !cursor.failed, bytes.count >= 56 else { return }
    processID = Int32(truncatingIfNeeded: id)
    let name = bytes[40..<56].prefix { $0 != 0 }
    if !name.isEmpty { command = String(decoding: name, as: UTF8.self) }
  }

  private mutating func readAuxiliary(_ bytes: UnsafeRawBufferPointer) {
    var cursor = ByteCursor(bytes)
    while !cursor.isAtEnd {
      let key = cursor.u64()
      let value = cursor.u64()
      guard !cursor.failed, key != 0 else { break }
      auxiliary[key] = value
    }
  }

  /// `siginfo_t`.
  private mutating func readSignal(_ bytes: UnsafeRawBufferPointer) {
    guard signal == nil else { return }
    var cursor = ByteCursor(bytes)
    let number = Int32(bitPattern: cursor.u32())
    cursor.skip(4)
    let code = Int32(bitPattern: cursor.u32())
    cursor.skip(4)
    let first = cursor.u64()
    guard !cursor.failed, number > 0 else { return }
    var info = SignalInfo(
      number: number, name: SignalNames.name(number), code: code,
      codeName: SignalNames.codeName(signal: number, code: code))
    // Which member of the union counts: signal(7), and `SI_FROMUSER` for codes that are not the kernel's own.
    let isFault = [4, 5, 7, 8, 11].contains(number) && code > 0 && code != 0x80
    if isFault || number == 31 && code > 0 {
      info.address = Address(rawValue: first)
    } else if code <= 0, code != -2, code != -3 {
      info.senderPID = Int32(truncatingIfNeeded: first & 0xffff_ffff)
    }
    signal = info
  }

  private mutating func readFiles(_ bytes: UnsafeRawBufferPointer) {
    var cursor = ByteCursor(bytes)
    let count = cursor.u64()
    let pageSize = cursor.u64()
    // Each has three words and a name of one byte at least.
    guard !cursor.failed, count <= UInt64(bytes.count / 25) else { return }
    let rows = (0..<Int(count)).map { _ in (cursor.u64(), cursor.u64(), cursor.u64()) }
    for (start, end, page) in rows {
      let name = cursor.offset
      cursor.skipString()
      guard !cursor.failed else { break }
      guard start < end else { continue }
      files.append(
        MappedFile(
          addresses: AddressRange(low: start, high: end),
          offset: page.multipliedReportingOverflow(by: pageSize).partialValue,
          path: String(decoding: bytes[name..<cursor.offset - 1], as: UTF8.self)))
    }
  }
}
